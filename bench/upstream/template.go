package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// CacheFolder is where what takes long to make is kept between runs:
// FRESHET_CACHE, else freshet in the user's cache folder.
func CacheFolder() string {
	if folder := os.Getenv("FRESHET_CACHE"); folder != "" {
		return folder
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".cache", "freshet")
	}
	return filepath.Join(os.TempDir(), "freshet-cache")
}

// SidFolder is where sid.sh puts the newer servers.
func SidFolder() string { return filepath.Join(CacheFolder(), "sid") }

// template gives an initialised data folder of the engine, made once for each
// version and recipe. Runs at the same time wait for one another; the folder
// appears whole, by renaming, or not at all.
func (e *engine) template(ctx context.Context) (string, error) {
	folder := filepath.Join(CacheFolder(), "templates", string(e.kind)+"-"+e.fingerprint())
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return "", err
	}
	unlock, err := lockFile(folder + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return folder, e.makeTemplate(ctx, folder)
}

// fingerprint changes with the server's program and with the way in which the
// folder is made.
func (e *engine) fingerprint() string {
	sum := sha256.New()
	fmt.Fprintln(sum, e.version, e.root, e.initialise(e, e.root+"/folder"), e.input())
	if e.account != nil {
		fmt.Fprintln(sum, e.account.uid, e.account.gid)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}

func (e *engine) makeTemplate(ctx context.Context, target string) (err error) {
	folder, err := e.workFolder()
	if err != nil {
		return err
	}
	// Removed by the reaper, so that it also goes if this process is killed meanwhile.
	r, err := newReaper(folder)
	if err != nil {
		return errors.Join(err, os.RemoveAll(folder))
	}
	defer func() { err = errors.Join(err, r.finish()) }()
	files := map[string]string{"input.sql": e.input(), "password": "freshet\n"}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	commands := e.initialise(e, folder)
	for i, command := range commands {
		stdin := ""
		if i == len(commands)-1 {
			stdin = e.input()
		}
		if err := e.run(ctx, command, stdin); err != nil {
			return err
		}
	}
	data := filepath.Join(folder, "data")
	// MySQL: every server made from the template has to give itself a UUID of its own.
	if err := os.Remove(filepath.Join(data, "auto.cnf")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	part := target + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if err := copyTree(ctx, data, part); err != nil {
		return err
	}
	return os.Rename(part, target)
}

// run runs one command to its end, as the server's account in its root.
func (e *engine) run(ctx context.Context, command []string, stdin string) error {
	cmd := e.command(command)
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.Stdin = strings.NewReader(stdin)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := launcher().start(cmd, nil); err != nil {
		return fmt.Errorf("%s: %w", command[0], err)
	}
	stop := context.AfterFunc(ctx, func() {
		// Too late to matter if it has just ended; Wait tells what happened either way.
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			panic(err)
		}
	})
	defer stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, tail(output.String(), 30))
	}
	return nil
}

// copyTree copies a folder with owners and modes; target does not exist yet.
func copyTree(ctx context.Context, source, target string) error {
	output, err := exec.CommandContext(ctx, "cp", "-a", "--reflink=auto", "--sparse=always", "--", source, target).CombinedOutput()
	if err != nil {
		return fmt.Errorf("copying %s: %w\n%s", source, err, tail(string(output), 10))
	}
	return nil
}

// lockFile takes an exclusive lock (flock(2)), waiting for it; the lock also
// goes with the process.
func lockFile(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), file.Close())
	}
	return func() { file.Close() }, nil
}
