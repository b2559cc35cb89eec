package upstream

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a started server program. done is closed once it has ended and
// been waited for; err (its exit status, which a killed server has too) and
// cmd.ProcessState are set before.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// start runs the command as the engine's account, in the engine's root, with
// its output in log, bound to the cores if any are named. death is the signal
// that the kernel sends it when this process dies.
func (e *engine) start(command []string, log *os.File, cores []int, death syscall.Signal) (*process, error) {
	cmd := e.command(command)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr.Pdeathsig = death
	// Its own session: a Ctrl-C in the terminal must not reach it before this process.
	cmd.SysProcAttr.Setsid = true
	if err := launcher().start(cmd, cores); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// command prepares a command that runs as the engine's account in its root
// with nothing of this process's environment.
func (e *engine) command(command []string) *exec.Cmd {
	// Not exec.Command: it would look the program up outside the root.
	cmd := &exec.Cmd{
		Path: command[0],
		Args: command,
		Dir:  "/",
		Env:  []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC"},
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: e.root}
	if e.account != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: e.account.uid, Gid: e.account.gid}
	}
	return cmd
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// ended says whether the process is over.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// end sends the signal and waits; after the patience it kills.
func (p *process) end(signal syscall.Signal, patience time.Duration) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(patience):
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return fmt.Errorf("upstream: server %d did not end within %s of %s and was killed", p.pid(), patience, signal)
}

// StartProcess starts a command that must not outlive this process, such as
// Freshet itself before a test's server: the kernel kills it when this process
// dies. It is bound to the cores if any are named.
func StartProcess(cmd *exec.Cmd, cores []int) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return launcher().start(cmd, cores)
}

// threadLauncher starts processes from one operating system thread that never
// ends. The kernel sends Pdeathsig when the thread that started the child ends,
// not the process, and Go does end threads: one whose goroutine returns while
// locked to it, as event loops do. The thread's own core binding is changed for
// the time of a start, and inherited.
type threadLauncher struct {
	requests chan launchRequest
}

type launchRequest struct {
	cmd   *exec.Cmd
	cores []int
	reply chan error
}

var launcher = sync.OnceValue(func() *threadLauncher {
	l := &threadLauncher{requests: make(chan launchRequest)}
	go l.run()
	return l
})

func (l *threadLauncher) start(cmd *exec.Cmd, cores []int) error {
	reply := make(chan error, 1)
	l.requests <- launchRequest{cmd, cores, reply}
	return <-reply
}

func (l *threadLauncher) run() {
	runtime.LockOSThread()
	for r := range l.requests {
		r.reply <- startBound(r.cmd, r.cores)
	}
}

func startBound(cmd *exec.Cmd, cores []int) error {
	if len(cores) == 0 {
		return cmd.Start()
	}
	var before, during unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("reading the core binding: %w", err)
	}
	for _, core := range cores {
		during.Set(core)
	}
	if err := unix.SchedSetaffinity(0, &during); err != nil {
		return fmt.Errorf("binding to cores %v: %w", cores, err)
	}
	err := cmd.Start()
	return errors.Join(err, unix.SchedSetaffinity(0, &before))
}
