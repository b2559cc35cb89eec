package proxy

import (
	"container/list"
	"crypto/tls"
	"errors"
	"net"
	"slices"
)

// secure is the TLS of one client's socket. The handshake runs on a goroutine
// (handshakes.go), records are opened and sealed on the loop, within the event in
// which they come or go. So between events all that waits is what waits without
// TLS: plain bytes in Socket.held, sealed ones in Socket.backlog, within the same
// bounds, and less than a record inside crypto/tls.
type secure struct {
	sock    *Socket
	certs   *certificates
	line    sealedLine
	conn    *tls.Conn
	config  *tls.Config
	then    func()
	shaking bool
	place   *list.Element // in handshakes' line; its mutex guards it
	state   tls.ConnectionState
}

var errShakingFlood = errors.New("the client sent too much before its TLS handshake was done")

// startTLS makes what comes next on the socket, what is held included, the
// client's TLS handshake; then is called on the loop once it is done. What was
// written before leaves in clear, what is written meanwhile not at all. It is
// called from within received, which consumes nothing more.
func (s *Socket) startTLS(certs *certificates, application string, remote net.Addr, then func()) {
	s.push()
	if s.done || s.closing {
		return
	}
	h := s.loop.server.handshakes
	t := &secure{sock: s, certs: certs, config: certs.forClient(application), then: then, shaking: true}
	t.line = sealedLine{shaking: true, remote: remote, come: make(chan struct{}, 1), turns: h.turns,
		post: func(b []byte) { s.loop.post(func() { s.sendIfOpen(b) }) }}
	s.tls = t
	h.begin(t)
}

// sendIfOpen sends a handshake's bytes, which come from elsewhere.
func (s *Socket) sendIfOpen(b []byte) {
	if !s.done && !s.closing {
		s.send(b)
	}
}

// shake runs off the loop. It returns once the handshake is done.
func (t *secure) shake() error {
	t.conn = tls.Server(&t.line, t.config)
	if err := t.conn.Handshake(); err != nil {
		return err
	}
	t.state = t.conn.ConnectionState()
	return nil
}

// shaken ends the handshake, on the loop. What the client has sent after it is
// with the line already.
func (t *secure) shaken(err error) {
	s := t.sock
	if s.done {
		return
	}
	if err != nil {
		s.loop.server.log.Debug("TLS handshake failed", "client", t.line.remote, "cause", err)
		sessionOf(s).Malformed()
		s.Close()
		return
	}
	t.shaking, t.line.shaking = false, false
	t.then()
	if !s.done {
		t.take(t.line.in) // empty or not: crypto/tls may have read ahead
	}
}

// consume is Socket.consume for sealed bytes.
func (t *secure) consume(in []byte) {
	s := t.sock
	if s.done {
		return
	}
	if t.shaking {
		if !t.line.feed(in) {
			s.fail(errShakingFlood)
		}
		return
	}
	if len(in) == 0 {
		s.decrypted(nil)
		return
	}
	t.take(in)
}

// take offers the owner what sealed bytes hold.
func (t *secure) take(in []byte) {
	s := t.sock
	plain, err := t.open(in)
	s.decrypted(plain)
	if err != nil { // after the event, as a connection's end comes after its last bytes
		s.loop.post(func() { s.fail(err) })
	}
}

// keep is consume for a socket that is being parked: nothing is offered yet.
func (t *secure) keep(in []byte) {
	if t.shaking {
		t.consume(in)
		return
	}
	plain, err := t.open(in)
	t.sock.keep(plain)
	if err != nil {
		t.sock.loop.post(func() { t.sock.fail(err) })
	}
}

// open takes sealed bytes and returns what they hold, in the loop's scratch
// space, where it stays until open is called again. An error is the end: after it
// there is nothing more (io.EOF: the client said goodbye).
func (t *secure) open(in []byte) (plain []byte, err error) {
	l := t.sock.loop
	plain = l.plain[:0]
	t.line.in, t.line.out = in, l.sealed[:0]
	for err == nil {
		plain = slices.Grow(plain, len(t.line.in)+minOpen)
		var n int
		n, err = t.conn.Read(plain[len(plain):cap(plain)])
		plain = plain[:len(plain)+n]
	}
	t.line.in = nil
	if errors.Is(err, errNoMore) {
		err = nil
	}
	if out := t.takeOut(); len(out) > 0 { // an alert, or the answer to a key update
		t.sock.send(out)
	}
	l.plain = plain
	if cap(plain) > maxScratch {
		l.plain = nil
	}
	return plain, err
}

const (
	minOpen    = 4 << 10        // room for each read of crypto/tls
	maxScratch = 4 * flushEarly // what a loop keeps of its scratch space
)

// seal returns the records for what is written, in the loop's scratch space,
// where they stay until it is called again.
func (t *secure) seal(b []byte) []byte {
	if t.shaking || len(b) == 0 {
		return nil
	}
	t.line.out = t.sock.loop.sealed[:0]
	// The line takes everything. A Conn that was ended by an alert takes nothing
	// more, and neither does its client.
	_, err := t.conn.Write(b)
	out := t.takeOut()
	if err != nil {
		t.sock.loop.server.log.Debug("sealed bytes dropped", "cause", err)
	}
	return out
}

// takeOut gives what crypto/tls has written; the scratch space stays the loop's.
func (t *secure) takeOut() []byte {
	out := t.line.out
	t.line.out = nil
	if l := t.sock.loop; cap(out) <= maxScratch {
		l.sealed = out[:0]
	} else {
		l.sealed = nil
	}
	return out
}

// leave is told when the socket is let go of: politely, if everything was sent.
// The client can then tell the end from a line that was cut.
func (t *secure) leave(politely bool) {
	if t.shaking {
		t.line.end(net.ErrClosed)
		t.sock.loop.server.handshakes.leave(t)
		return
	}
	if !politely {
		return
	}
	t.line.out = t.sock.loop.sealed[:0]
	err := t.conn.CloseWrite()
	if out := t.takeOut(); err == nil && len(out) > 0 {
		// The line may be full or gone: then there is nobody to tell.
		if _, err := writeSome(t.sock.fd, out); err != nil {
			t.sock.loop.server.log.Debug("no goodbye", "cause", err)
		}
	}
}
