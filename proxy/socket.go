package proxy

import (
	"errors"
	"net"
	"os"

	"github.com/panjf2000/gnet/v2"
	"golang.org/x/sys/unix"
)

// Bounds of what may wait in memory for one slow peer. Above highWater its
// sources are parked; below lowWater they go on.
const (
	highWater = 1 << 20
	lowWater  = 256 << 10
	// flushEarly is how much one event may gather before it is written.
	flushEarly = 64 << 10
)

// receiver is the owner of a socket: a session's client side or a link.
type receiver interface {
	opened()
	received(in []byte) int
	closed(err error)
}

// Socket is a connection on a loop. gnet polls and reads it; writes go
// straight to the descriptor, so gnet's own outbound buffer is always empty
// and the socket can leave the loop at any time: gnet cannot pause reading,
// so a socket whose bytes nobody can take is parked, that is, its descriptor
// is duplicated, gnet's side closed, and the duplicate enrolled again later.
type Socket struct {
	loop  *Loop
	owner receiver
	conn  gnet.Conn // nil while parked or not yet enrolled
	fd    int       // where writes go; -1 once closed

	tls     *secure // nil for a socket in clear
	packed  *packed // nil for a socket that packs nothing
	held    []byte  // read (in clear), not yet consumed
	out     []byte  // written in this event (in clear)
	backlog []byte  // did not fit the kernel's buffer

	dirty, stalled         bool
	closing, done          bool // closing: close once the backlog has drained
	parked, parking, leave bool
}

// Write adds bytes to what this event sends. They are copied.
func (s *Socket) Write(b []byte) {
	if s == nil || s.done || s.closing {
		return
	}
	if !s.dirty {
		s.dirty = true
		s.out = s.loop.takeBuffer()
		s.loop.dirty = append(s.loop.dirty, s)
	}
	s.out = append(s.out, b...)
	if len(s.out) >= flushEarly {
		s.push()
	}
}

// push moves this event's bytes to the kernel, or to the backlog. The owner, who
// may be in the middle of writing, is told of a failure after the event: a session
// would else hear that its link is lost before it has noted what it awaits there.
func (s *Socket) push() {
	b := s.out
	s.out = b[:0]
	if s.done {
		return
	}
	if s.packed != nil {
		b = s.packed.seal(b)
	}
	if s.tls != nil {
		b = s.tls.seal(b)
	}
	s.send(b)
}

// send is push for bytes as they go over the line.
func (s *Socket) send(b []byte) {
	if len(s.backlog) == 0 {
		n, err := writeSome(s.fd, b)
		if err != nil {
			s.closing = true
			s.loop.post(func() { s.fail(err) })
			return
		}
		b = b[n:]
	}
	if len(b) > 0 {
		s.backlog = append(s.backlog, b...)
		s.loop.stall(s)
	}
}

// drain tries the backlog again and tells whether it is gone.
func (s *Socket) drain() bool {
	if s.done {
		return true
	}
	n, err := writeSome(s.fd, s.backlog)
	if err != nil {
		s.fail(err)
		return true
	}
	rest := copy(s.backlog, s.backlog[n:])
	s.backlog = s.backlog[:rest]
	if rest == 0 && cap(s.backlog) > lowWater {
		s.backlog = nil
	}
	return rest == 0
}

// writeSome writes until the kernel takes no more.
func writeSome(fd int, b []byte) (int, error) {
	sent := 0
	for sent < len(b) {
		n, err := unix.Write(fd, b[sent:])
		switch err {
		case nil:
			sent += n
		case unix.EINTR:
		case unix.EAGAIN:
			return sent, nil
		default:
			return sent, os.NewSyscallError("write", err)
		}
	}
	return sent, nil
}

// Close closes the socket once what was written has been sent.
func (s *Socket) Close() {
	if s == nil || s.done || s.closing {
		return
	}
	s.closing = true
	s.loop.closing = append(s.loop.closing, s)
}

// fail closes the socket at once.
func (s *Socket) fail(err error) {
	if s.done {
		return
	}
	s.closing = true
	s.backlog = nil
	s.finish(err)
}

// finish lets go of the descriptor and tells the owner, once.
func (s *Socket) finish(err error) {
	if s.done {
		return
	}
	s.done = true
	if s.tls != nil {
		s.tls.leave(err == nil && len(s.backlog) == 0 && (s.conn != nil || s.parked))
	}
	s.backlog, s.held = nil, nil
	switch {
	case s.conn != nil:
		c := s.conn
		s.conn = nil
		s.loop.post(func() { s.loop.closeConn(c) })
	case s.parked && s.fd >= 0:
		closeFD(s.fd)
	}
	s.fd = -1
	s.owner.closed(err)
}

// attach is called on the loop when gnet has (again) taken the socket up.
func (s *Socket) attach(c gnet.Conn) {
	if s.done {
		s.loop.post(func() { s.loop.closeConn(c) })
		return
	}
	if s.parked {
		closeFD(s.fd)
		s.parked = false
	}
	s.parking = false
	s.conn, s.fd = c, c.Fd()
	if s.leave { // asked to park again while it was on its way back
		s.loop.post(s.parkNow)
		return
	}
	if s.waiting() > 0 {
		s.consume(nil)
	}
}

// consume takes what has come over the line.
func (s *Socket) consume(in []byte) {
	if s.tls != nil {
		s.tls.consume(in)
		return
	}
	s.decrypted(in)
	if s.tls != nil { // begun meanwhile: what follows is its handshake
		in, s.held = s.held, nil
		s.tls.consume(in)
	}
}

// decrypted takes what has come, out of TLS.
func (s *Socket) decrypted(in []byte) {
	if s.packed != nil {
		s.packed.take(in)
		return
	}
	s.offer(in)
	if s.packed != nil { // begun meanwhile
		in, s.held = s.held, nil
		s.packed.take(in)
	}
}

// keep is decrypted for a socket that is being parked: nothing is offered yet.
func (s *Socket) keep(in []byte) {
	if s.packed != nil {
		s.packed.in = append(s.packed.in, in...)
		return
	}
	s.held = append(s.held, in...)
}

// waiting is how many bytes have come that the owner has not taken.
func (s *Socket) waiting() int {
	n := len(s.held)
	if s.packed != nil {
		n += len(s.packed.in)
	}
	return n
}

// offer offers the owner what is held and what is new.
func (s *Socket) offer(in []byte) {
	if len(s.held) > 0 {
		// Not held while it is looked at: a link given back meanwhile is judged
		// by what is left on it.
		all := append(s.held, in...)
		s.held = nil
		n := s.owner.received(all)
		if s.done {
			return
		}
		if rest := copy(all, all[n:]); rest > 0 {
			s.held = all[:rest]
		}
		return
	}
	n := s.owner.received(in)
	if s.done || n >= len(in) {
		return
	}
	s.held = append(s.held, in[n:]...)
}

// park stops reading; unpark goes on. Both are idempotent and take effect
// between events.
func (s *Socket) park() {
	if s.leave || s.done || s.closing {
		return
	}
	s.leave = true
	if s.conn != nil {
		s.loop.post(s.parkNow)
	}
}

func (s *Socket) unpark() {
	if !s.leave || s.done {
		return
	}
	s.leave = false
	if s.parked && !s.parking {
		s.enrollAgain()
	}
}

// parkNow runs between events: the duplicate keeps the connection open while
// gnet closes its own descriptor. OnClose finds s.conn nil and does nothing.
func (s *Socket) parkNow() {
	if s.done || s.conn == nil {
		return
	}
	if !s.leave { // called off meanwhile; attach may have left bytes for later
		if s.waiting() > 0 && !s.closing {
			s.consume(nil)
		}
		return
	}
	fd, err := unix.FcntlInt(uintptr(s.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		s.fail(os.NewSyscallError("dup", err))
		return
	}
	c := s.conn
	if rest, err := c.Next(-1); err == nil && len(rest) > 0 {
		if s.tls != nil {
			s.tls.keep(rest)
		} else {
			s.keep(rest)
		}
	}
	s.conn, s.fd, s.parked = nil, fd, true
	s.loop.closeConn(c)
}

// enrollAgain gives gnet a duplicate; the parked descriptor stays ours, and
// takes writes, until attach.
func (s *Socket) enrollAgain() {
	s.parking = true
	conn, err := connOf(s.fd)
	if err == nil {
		err = s.loop.enroll(conn, s)
	}
	if err != nil {
		s.fail(err)
	}
}

// connOf makes a net.Conn over a duplicate of fd.
func connOf(fd int) (net.Conn, error) {
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	f := os.NewFile(uintptr(dup), "socket")
	conn, err := net.FileConn(f)
	return conn, errors.Join(err, f.Close())
}

func closeFD(fd int) {
	// Nothing can be done about a failed close, and the number must not be
	// used again by us either way.
	if err := unix.Close(fd); err != nil && !errors.Is(err, unix.EBADF) {
		return
	}
}
