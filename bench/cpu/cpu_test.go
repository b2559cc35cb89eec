package cpu

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	parent, ticks, err := parseStat([]byte("42 (a) b (c) S 7 1 1 0 -1 4194560 1 2 3 4 150 25 0 0 20 0 1 0\n"))
	if err != nil || parent != 7 || ticks != 175 {
		t.Errorf("parent %d, ticks %d, error %v", parent, ticks, err)
	}
	for _, bad := range []string{"", "42 (x", "42 (x) S", "42 (x) S p 1 1 0 -1 4194560 1 2 3 4 150 25", "42 (x) S 1 1 1 0 -1 4194560 1 2 3 4 y 25"} {
		if _, _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

// TestTimeOfChild: a busy child's time shows, in it and in us who have it.
func TestTimeOfChild(t *testing.T) {
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := Start(cmd, 0); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Error("a killed child ended well")
		}
	}()
	deadline := time.Now().Add(20 * time.Second)
	for {
		child, err := Time(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := Time(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if child >= 5*tick && ours >= child {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("child %s, ours %s after 20 s", child, ours)
		}
		time.Sleep(tick)
	}
}
