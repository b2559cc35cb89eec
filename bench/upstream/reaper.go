package upstream

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// reaper is a small shell that waits for the end of its standard input, whose
// other end only this process holds. That end comes when Stop closes it or when
// this process dies, be it by SIGKILL. It then makes sure that the server (its
// id is in the folder's file server.pid) is dead and removes the folder. A
// server that did not get its death signal, because it changed its user after
// the start, is ended too.
//
// It runs in a session of its own, so that no signal for the terminal's group
// reaches it, and holds none of this process's output open: `go test` would
// wait for that.
type reaper struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

const reaperScript = `
trap '' INT TERM HUP
while read -r _; do :; done
pid=$(cat "$1/server.pid" 2>/dev/null)
if [ -n "$pid" ]; then
	tries=0
	while kill -0 "$pid" 2>/dev/null && [ $tries -lt 50 ]; do
		[ $tries = 20 ] && kill -QUIT "$pid" 2>/dev/null
		sleep 0.1
		tries=$((tries + 1))
	done
	kill -KILL "$pid" 2>/dev/null
fi
tries=0
while ! rm -rf "$1" && [ $tries -lt 20 ]; do
	sleep 0.1
	tries=$((tries + 1))
done
`

func newReaper(folder string) (*reaper, error) {
	cmd := exec.Command("/bin/sh", "-c", reaperScript, "freshet-reaper", folder)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the reaper: %w", err)
	}
	return &reaper{cmd, stdin}, nil
}

// watch notes the server that has to be dead before the folder goes; 0: none.
func (r *reaper) watch(folder string, pid int) error {
	file := filepath.Join(folder, "server.pid")
	if pid == 0 {
		return os.Remove(file)
	}
	return os.WriteFile(file, []byte(strconv.Itoa(pid)+"\n"), 0o600)
}

// finish lets the reaper remove the folder and waits until it has.
func (r *reaper) finish() error {
	if err := r.stdin.Close(); err != nil {
		return err
	}
	return r.cmd.Wait()
}
