package proxy

import "time"

// Link is one upstream connection, on the same loop as the session that uses
// it. Links with equal keys are interchangeable: a session that gives one back
// must leave no state on it.
type Link struct {
	Key string
	// State is the dialect's own: what Dial learned, statements prepared there.
	State any

	// generation of the server's defaults (see Upstream.Generation) that it
	// started with, or an older one.
	generation uint64

	sock    *Socket
	pool    *pool
	session *Session // nil while idle
	ID      uint64
	// PinnedBy says in words why the link cannot be given back; "" when it can.
	PinnedBy  string
	idleSince time.Time
	leaving   bool // closed by the pool
}

// Write adds bytes to what this event sends upstream. They are copied.
func (l *Link) Write(b []byte) { l.sock.Write(b) }

// opened is the first event of a link: it goes to whoever waits.
func (l *Link) opened() { l.pool.arrived(l) }

func (l *Link) received(in []byte) int {
	if l.session == nil {
		// Bytes nobody asked for: a notice, a changed setting, a farewell.
		// What the link's state is now is unknown, so it is not handed on.
		l.sock.Close()
		return len(in)
	}
	s := l.session
	s.Loop.touch(s)
	return s.Handler.LinkData(in)
}

func (l *Link) closed(err error) {
	s := l.session
	l.session = nil
	l.pool.lost(l)
	if s != nil && s.Link == l {
		s.Link = nil
		s.Loop.touch(s)
		s.Handler.LinkLost(err)
	}
}
