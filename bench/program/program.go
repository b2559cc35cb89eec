// Package program builds Freshet from the source at hand, as it is or with a
// mistake put in on purpose, for tests that start it as a program.
package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var (
	// folder holds what was built, if anything was.
	folder string
	built  = sync.OnceValues(func() (path string, err error) {
		if folder, err = os.MkdirTemp("", "freshet-built-"); err != nil {
			return "", err
		}
		path = filepath.Join(folder, "freshet")
		return path, build(path)
	})
)

// Path is that of FRESHET_BIN, or of a Freshet built once for the test
// binary, which Clean takes away.
func Path(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("FRESHET_BIN"); path != "" {
		return path
	}
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Clean removes what Path built. It takes the status that the test binary is
// about to end with, and returns it, or 1 if that was 0 and something stays.
func Clean(status int) int {
	if folder == "" {
		return status
	}
	if err := os.RemoveAll(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(status, 1)
	}
	return status
}

// Faulty is the path of a Freshet that has the mistake, in a folder of the
// test's own. It fails the test when the source has no place for it any more.
func Faulty(t testing.TB, f Fault) string {
	t.Helper()
	folder := t.TempDir()
	path := filepath.Join(folder, "freshet")
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	list, err := f.overlay(strings.TrimSpace(string(module)), folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := build(path, "-overlay", list); err != nil {
		t.Fatal(err)
	}
	return path
}

func build(to string, flags ...string) error {
	cmd := exec.Command("go", append(append([]string{"build", "-o", to}, flags...), "freshet/cmd/freshet")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}
