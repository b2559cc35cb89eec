package history

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// scope is a part of Freshet's connections to the upstream; each contains the
// ones before it.
type scope int

const (
	nothing    scope = iota
	streamOnly       // what brings the changes
	feedAll          // and the lines beside it: probes, leases, catalog
	everything       // and the links, on which clients' statements go
)

func (s scope) String() string {
	return [...]string{"nothing", "the stream", "the feed's connections", "all connections"}[s]
}

// relay carries connections to a server, and can hold, slow down or cut some
// of them, as a network does.
type relay struct {
	target   string
	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	held    scope
	slowed  scope
	delay   time.Duration
	open    map[*carried]bool
	closed  bool
}

// carried is one connection through the relay. What it is for shows in what the
// client says first.
type carried struct {
	client, server net.Conn
	scope          scope  // by relay.mu
	said           []byte // by the pump from the client
}

func newRelay(target string) (*relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{target: target, listener: l, open: make(map[*carried]bool)}
	r.changed = sync.NewCond(&r.mu)
	r.running.Go(r.accept)
	return r, nil
}

// address is host and port.
func (r *relay) address() *net.TCPAddr { return r.listener.Addr().(*net.TCPAddr) }

func (r *relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return // closed
		}
		r.running.Go(func() { r.carry(client) })
	}
}

// carry serves one connection to its end.
func (r *relay) carry(client net.Conn) {
	defer client.Close()
	server, err := net.DialTimeout("tcp", r.target, time.Second)
	if err != nil {
		return // so it is for the client: the server is down
	}
	c := &carried{client: client, server: server, scope: everything}
	r.mu.Lock()
	r.open[c] = true
	over := r.closed
	r.mu.Unlock()
	if over {
		c.cut()
	}
	var pumps sync.WaitGroup
	pumps.Go(func() { r.pump(c, server, client, true) })
	pumps.Go(func() { r.pump(c, client, server, false) })
	pumps.Wait()
	r.mu.Lock()
	delete(r.open, c)
	r.mu.Unlock()
}

// pump copies one direction. The end of one ends both, but not before what is
// held has been let go: nobody hears of a peer's death over a dead line.
func (r *relay) pump(c *carried, to io.Writer, from io.Reader, fromClient bool) {
	defer c.cut()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 && fromClient {
			r.judge(c, b[:n])
		}
		time.Sleep(r.pass(c))
		if err != nil {
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// mostSaid is how much of what a client says first is looked at.
const mostSaid = 4 << 10

// judge finds out what a connection is for, by what the feed's say and links
// never do: it names itself (MySQL's connection attributes), or commits without
// waiting for a standby (PostgreSQL's startup message); and by what begins a
// change stream.
func (r *relay) judge(c *carried, b []byte) {
	if len(c.said) > mostSaid {
		return
	}
	c.said = append(c.said, b...)
	is := everything
	for _, sign := range []string{"program_name\x07freshet", "synchronous_commit\x00local\x00"} {
		if bytes.Contains(c.said, []byte(sign)) {
			is = feedAll
		}
	}
	for _, sign := range []string{"_binlog_checksum = @@", "\x00replication\x00"} {
		if bytes.Contains(c.said, []byte(sign)) {
			is = streamOnly
		}
	}
	r.mu.Lock()
	c.scope = is
	r.mu.Unlock()
}

// pass waits while the connection is held and says how long it is then slowed.
func (r *relay) pass(c *carried) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.open[c] && c.scope <= r.held {
		r.changed.Wait()
	}
	if c.scope <= r.slowed {
		return r.delay
	}
	return 0
}

// hold holds what comes in either direction on connections of that scope, new
// ones as well; nothing lets all go.
func (r *relay) hold(s scope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = s
	r.changed.Broadcast()
}

// slow delays everything on connections of that scope.
func (r *relay) slow(s scope, by time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slowed, r.delay = s, by
}

// cut breaks the connections of that scope, with what is held on them, and says
// how many they were.
func (r *relay) cut(s scope) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		if c.scope <= s {
			c.cut()
			delete(r.open, c)
			n++
		}
	}
	r.changed.Broadcast()
	return n
}

// count says how many connections of exactly that scope there are.
func (r *relay) count(s scope) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		if c.scope == s {
			n++
		}
	}
	return n
}

func (r *relay) close() error {
	err := r.listener.Close()
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.hold(nothing)
	r.cut(everything)
	r.running.Wait()
	return err
}

// cut closes both ends, however often.
func (c *carried) cut() {
	if err := errors.Join(c.client.Close(), c.server.Close()); err != nil {
		return // the other pump, or a fault, was first
	}
}
