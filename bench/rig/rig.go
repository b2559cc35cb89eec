// Package rig starts what a measurement needs beside a real server, as child
// processes bound to a core each and gone when their parent is: Freshet itself
// and the canned floor. The program is started again with other arguments, so
// that what is measured is what is installed.
package rig

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"freshet/bench/cpu"
	"freshet/bench/load"
	"freshet/bench/wire"
)

// Patience with children: to come up, and to go.
const (
	startPatience = 60 * time.Second
	stopPatience  = 20 * time.Second
)

// child is a process whose first lines of output say where it listens.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	log   *tail
	lines chan string
	ended chan struct{} // closed when the process has been waited for
	err   error         // how it ended; valid once ended is closed
}

// start runs program on core. The child sees the end of its standard input
// when its parent dies.
func start(core int, program string, args ...string) (*child, error) {
	cmd := exec.Command(program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's ^C is for the parent to pass on
	c := &child{cmd: cmd, log: &tail{}, lines: make(chan string, 64), ended: make(chan struct{})}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = c.log
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cpu.Start(cmd, core); err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	go func() {
		scanner := bufio.NewScanner(stdout)
		for scanner.Scan() {
			select {
			case c.lines <- scanner.Text():
			default: // nobody waits for so many
			}
		}
		close(c.lines)
		c.err = cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

// line waits for the next line of output.
func (c *child) line(ctx context.Context) (string, error) {
	select {
	case l, ok := <-c.lines:
		if !ok {
			<-c.ended
			return "", fmt.Errorf("%s ended (%w): %s", c.cmd.Path, c.err, c.log)
		}
		return l, nil
	case <-ctx.Done():
		return "", fmt.Errorf("%s said nothing: %w: %s", c.cmd.Path, ctx.Err(), c.log)
	}
}

// stop ends the process: by signal, by the end of its input, at last by force.
func (c *child) stop() error {
	select {
	case <-c.ended:
		return fmt.Errorf("%s had ended (%w): %s", c.cmd.Path, c.err, c.log)
	default:
	}
	err := c.cmd.Process.Signal(syscall.SIGTERM)
	if e := c.stdin.Close(); !errors.Is(e, os.ErrClosed) { // it is closed when the process has ended by the signal already
		err = errors.Join(err, e)
	}
	select {
	case <-c.ended:
		return err
	case <-time.After(stopPatience):
	}
	err = errors.Join(err, fmt.Errorf("%s did not end in %s", c.cmd.Path, stopPatience), c.cmd.Process.Kill())
	<-c.ended
	return err
}

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailBytes = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if len(t.b) > tailBytes {
		t.b = append([]byte(nil), t.b[len(t.b)-tailBytes:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.b))
}

// Proxy is a Freshet in a child process.
type Proxy struct {
	Addr     string // where it listens
	HTTP     string // host:port of its metrics; empty if it has none
	Greeting string // its first line
	child    *child
	folder   string
}

// StartProxy runs `program serve` for upstream, on one loop, listening on free
// ports, with a folder of its own that goes with it.
func StartProxy(ctx context.Context, program, upstream string, core int, more ...string) (*Proxy, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	folder, err := os.MkdirTemp("", "freshet-rig-")
	if err != nil {
		return nil, err
	}
	args := []string{"serve", "--upstream", upstream, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--loops", "1", "--store", "file:" + folder}
	c, err := start(core, program, append(args, more...)...)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	p := &Proxy{child: c, folder: folder}
	if err := p.readLines(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// readLines finds the addresses: `freshet: mysql 127.0.0.1:3307 -> …`, then
// `freshet: http://127.0.0.1:6034/…`.
func (p *Proxy) readLines(ctx context.Context) error {
	for p.Addr == "" || p.HTTP == "" {
		line, err := p.child.line(ctx)
		if err != nil {
			return err
		}
		text, ok := strings.CutPrefix(line, "freshet: ")
		if !ok {
			continue
		}
		if url, ok := strings.CutPrefix(text, "http://"); ok {
			p.HTTP, _, _ = strings.Cut(url, "/")
			continue
		}
		fields := strings.Fields(text)
		if len(fields) > 3 && fields[2] == "->" {
			p.Addr, p.Greeting = fields[1], line
		}
	}
	return nil
}

// DSN is the proxy's, with the upstream's user and database.
func (p *Proxy) DSN(upstream string) (string, error) { return at(upstream, p.Addr) }

func at(dsn, addr string) (string, error) {
	t, err := wire.Parse(dsn)
	if err != nil {
		return "", err
	}
	here, err := wire.Parse(t.Dialect + "://" + addr)
	if err != nil {
		return "", err
	}
	return t.At(here.Host, here.Port).DSN(), nil
}

// Pid is the process's.
func (p *Proxy) Pid() int { return p.child.cmd.Process.Pid }

// Log is the end of what it wrote to its standard error.
func (p *Proxy) Log() string { return p.child.log.String() }

// Pause stops the process where it is, as a hung machine does; Resume lets it
// go on.
func (p *Proxy) Pause() error { return p.child.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume undoes Pause.
func (p *Proxy) Resume() error { return p.child.cmd.Process.Signal(syscall.SIGCONT) }

// Kill ends the process at once, as a crash does, and removes its folder.
func (p *Proxy) Kill() error {
	err := p.child.cmd.Process.Kill()
	<-p.child.ended // its input was closed with it
	return errors.Join(err, os.RemoveAll(p.folder))
}

// Stop drains and ends the process and removes its folder.
func (p *Proxy) Stop() error { return errors.Join(p.child.stop(), os.RemoveAll(p.folder)) }

// Floor is a canned floor in a child process.
type Floor struct {
	Addr  string
	child *child
}

// FloorCommand are the arguments with which the program must run
// floor.Serve on the recording that RecordingFile names.
var FloorCommand = []string{"bench", "floor"}

// StartFloor runs the floor on core; rec is what it repeats.
func StartFloor(ctx context.Context, program string, rec load.Recording, core int) (f *Floor, err error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	file, err := os.CreateTemp("", "freshet-floor-*.json")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	if err := errors.Join(json.NewEncoder(file).Encode(rec), file.Close()); err != nil {
		return nil, err
	}
	c, err := start(core, program, append(append([]string(nil), FloorCommand...), file.Name())...)
	if err != nil {
		return nil, err
	}
	addr, err := c.line(ctx)
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return &Floor{Addr: addr, child: c}, nil
}

// ReadRecording reads what StartFloor wrote.
func ReadRecording(path string) (rec load.Recording, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return rec, err
	}
	return rec, json.Unmarshal(b, &rec)
}

// DSN is the floor's, for clients of the upstream.
func (f *Floor) DSN(upstream string) (string, error) { return at(upstream, f.Addr) }

// Pid is the process's.
func (f *Floor) Pid() int { return f.child.cmd.Process.Pid }

// Stop ends the process.
func (f *Floor) Stop() error { return f.child.stop() }
