package load

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// conn is one connection of the load. It has at most one write under way.
type conn struct {
	fd      int
	index   int
	source  Source
	framer  framer
	bye     []byte
	pending int       // replies still to come for the newest write
	since   time.Time // when the newest write was (open loop: should have been) sent
	sent    int64     // writes so far
	buf     []byte
}

// engine is the event loop; it belongs to one locked thread.
type engine struct {
	cfg     Config
	epoll   int
	conns   []*conn
	byFD    map[int32]*conn
	events  []unix.EpollEvent
	read    []byte
	depth   int
	latency *hdrhistogram.Histogram
	calls   int64
	errors  int64

	// Open loop: write k is due at epoch + k*interval, on connection k mod n.
	epoch    time.Time
	interval time.Duration
	due      int64
	stopping bool
}

// Latencies from 1 µs to a minute, with three digits.
const (
	shortest = int64(time.Microsecond)
	longest  = int64(time.Minute)
)

func newEngine(cfg Config) (*engine, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	e := &engine{
		cfg: cfg, epoll: epoll, byFD: make(map[int32]*conn), events: make([]unix.EpollEvent, 256),
		read: make([]byte, 256<<10), depth: max(1, cfg.Workload.Depth), latency: hdrhistogram.New(shortest, longest, 3),
	}
	if cfg.Rate > 0 {
		e.interval = time.Duration(float64(time.Second) * float64(e.depth) / cfg.Rate)
	}
	return e, nil
}

// open connects, prepares, and puts the socket under the loop's hands.
func (e *engine) open(ctx context.Context, index int) error {
	s, err := e.cfg.Workload.connect(ctx, e.cfg.DSN, index)
	if err != nil {
		return err
	}
	c := &conn{fd: s.fd, index: index, source: s.source, framer: s.framer, bye: s.bye}
	e.conns = append(e.conns, c)
	e.byFD[int32(c.fd)] = c
	if err := unix.EpollCtl(e.epoll, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.fd)}); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

func (e *engine) close() error {
	var errs []error
	for _, c := range e.conns {
		// A server that was not told would count an aborted client. It may be gone.
		if _, err := unix.Write(c.fd, c.bye); err != nil && err != unix.EPIPE && err != unix.ECONNRESET {
			errs = append(errs, err)
		}
		errs = append(errs, unix.Close(c.fd))
	}
	return errors.Join(append(errs, unix.Close(e.epoll))...)
}

// until runs the loop to the deadline. Every idle connection of a closed loop
// is set going first.
func (e *engine) until(ctx context.Context, deadline time.Time) error {
	now := time.Now()
	if e.interval > 0 && e.epoch.IsZero() {
		e.epoch = now
	}
	if e.interval == 0 {
		for _, c := range e.conns {
			if c.pending == 0 {
				if err := e.send(c, now); err != nil {
					return err
				}
			}
		}
	}
	for now.Before(deadline) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := e.turn(now, deadline); err != nil {
			return err
		}
		now = time.Now()
	}
	return nil
}

// turn sends what is due, waits for replies and handles them.
func (e *engine) turn(now, deadline time.Time) error {
	timeout := deadline.Sub(now)
	if e.interval > 0 && !e.stopping {
		if err := e.sendDue(now); err != nil {
			return err
		}
		timeout = min(timeout, e.epoch.Add(time.Duration(e.due)*e.interval).Sub(now))
	}
	// Sub-millisecond waits are spun: the core is the load's own.
	n, err := unix.EpollWait(e.epoll, e.events, int(min(timeout, 100*time.Millisecond)/time.Millisecond))
	if err == unix.EINTR {
		return nil
	}
	if err != nil {
		return fmt.Errorf("epoll_wait: %w", err)
	}
	for _, ev := range e.events[:n] {
		if err := e.readable(e.byFD[ev.Fd]); err != nil {
			return err
		}
	}
	return nil
}

// sendDue starts every write whose time has come, on the connections that are
// free; the others send theirs once they are answered.
func (e *engine) sendDue(now time.Time) error {
	n := int64(len(e.conns))
	for {
		at := e.epoch.Add(time.Duration(e.due) * e.interval)
		if at.After(now) {
			return nil
		}
		c := e.conns[e.due%n]
		if c.pending == 0 && c.sent == e.due/n {
			if err := e.send(c, at); err != nil {
				return err
			}
		}
		e.due++
	}
}

// intended is when a connection's next write of the open loop is due.
func (e *engine) intended(c *conn) time.Time {
	k := int64(c.index) + c.sent*int64(len(e.conns))
	return e.epoch.Add(time.Duration(k) * e.interval)
}

// send writes the connection's next request. Requests are far smaller than a
// socket's buffer, which is empty, so a short write is an error here.
func (e *engine) send(c *conn, since time.Time) error {
	c.buf = c.buf[:0]
	for range e.depth {
		c.buf = c.source.Append(c.buf)
	}
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(c.fd), uintptr(unsafe.Pointer(&c.buf[0])), uintptr(len(c.buf)))
	if errno != 0 {
		return fmt.Errorf("write: %w", errno)
	}
	if int(n) != len(c.buf) {
		return fmt.Errorf("write: %d of %d bytes", n, len(c.buf))
	}
	c.pending, c.since = e.depth, since
	c.sent++
	return nil
}

// readable reads what is there and counts the replies that are complete.
func (e *engine) readable(c *conn) error {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(c.fd), uintptr(unsafe.Pointer(&e.read[0])), uintptr(len(e.read)))
	if errno == syscall.EAGAIN || errno == syscall.EINTR {
		return nil
	}
	if errno != 0 {
		return fmt.Errorf("read: %w", errno)
	}
	if n == 0 {
		return errors.New("the server closed a connection")
	}
	done, failed, err := c.framer.feed(e.read[:n])
	if err != nil {
		return err
	}
	if done > c.pending {
		return fmt.Errorf("%d replies to %d requests", done, c.pending)
	}
	e.calls += int64(done)
	e.errors += int64(failed)
	if done == 0 {
		return nil
	}
	now := time.Now()
	waited := min(max(now.Sub(c.since).Nanoseconds(), shortest), longest)
	if err := e.latency.RecordValues(waited, int64(done)); err != nil {
		return err
	}
	if c.pending -= done; c.pending > 0 || e.stopping {
		return nil
	}
	if e.interval == 0 {
		return e.send(c, now)
	}
	if at := e.intended(c); !at.After(now) && e.due > int64(c.index)+c.sent*int64(len(e.conns)) {
		return e.send(c, at)
	}
	return nil
}

// drain waits for the replies still under way, so that a server is at rest
// when the next one is measured.
func (e *engine) drain(ctx context.Context) error {
	e.stopping = true
	deadline := time.Now().Add(drainSeconds * time.Second)
	for {
		waiting := 0
		for _, c := range e.conns {
			waiting += c.pending
		}
		now := time.Now()
		if waiting == 0 {
			return nil
		}
		if now.After(deadline) {
			return fmt.Errorf("%d replies did not come within %d s", waiting, drainSeconds)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := e.turn(now, deadline); err != nil {
			return err
		}
	}
}
