package proxy

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/panjf2000/gnet/v2"

	"freshet/cache"
	"freshet/cache/feed"
)

// stallRetry is how soon a backlog is tried again. A socket's kernel buffer
// holds megabytes on a fast line, so a millisecond costs no throughput.
const stallRetry = time.Millisecond

// Loop is one event loop. Everything in it belongs to the loop's goroutine,
// but for post, which may be called from anywhere, and the counters, which
// others may read.
type Loop struct {
	server *Server
	el     gnet.EventLoop
	index  int

	depth    int
	nowNanos int64 // shared by the whole event; 0 until somebody asks
	dirty    []*Socket
	closing  []*Socket
	touched  []*Session
	buffers  [][]byte
	key      []byte
	// plain and sealed are scratch space for TLS, unpacked and packed for Packing.
	plain, sealed, unpacked, packed []byte

	stalled  map[*Socket]struct{}
	retrying bool

	sessions map[uint64]*Session
	lanes    []*lane // by upstream
}

// lane is what one loop has of one upstream.
type lane struct {
	reader  *cache.Reader
	entered bool
	pool    *pool
	stats   *laneStats

	connections atomic.Int64
	// hitsBefore is the hit count when the event began, so that end knows how
	// many hits the event's time is to be counted for.
	hitsBefore uint64
}

func newLoop(s *Server, el gnet.EventLoop, index int) *Loop {
	l := &Loop{server: s, el: el, index: index, stalled: map[*Socket]struct{}{}, sessions: map[uint64]*Session{}}
	for _, u := range s.upstreams {
		ln := &lane{stats: u.stats.lane()}
		if u.Store != nil {
			ln.reader = u.Store.NewReader()
		}
		ln.pool = newPool(l, u)
		l.lanes = append(l.lanes, ln)
	}
	return l
}

// begin and end bracket every event. What was written in between leaves in
// one write per socket, and the store's bytes stay valid until end.
func (l *Loop) begin() {
	l.depth++
	if l.depth == 1 {
		l.nowNanos = 0
	}
}

func (l *Loop) end() {
	if l.depth > 1 {
		l.depth--
		return
	}
	for {
		for i := 0; i < len(l.dirty); i++ {
			s := l.dirty[i]
			s.push()
			s.dirty = false
			l.buffers = append(l.buffers, s.out)
			s.out = nil
		}
		l.dirty = l.dirty[:0]
		if len(l.closing) == 0 {
			break
		}
		l.closeDrained()
	}
	for _, s := range l.touched {
		s.touched = false
		s.balance()
	}
	l.touched = l.touched[:0]
	for _, ln := range l.lanes {
		if !ln.entered {
			continue
		}
		ln.entered = false
		ln.reader.Leave()
		if hits := ln.stats.sources[SourceHit].get(); hits != ln.hitsBefore {
			ln.stats.hits.observe(feed.Now()-l.now(), hits-ln.hitsBefore)
			ln.hitsBefore = hits
		}
	}
	l.depth--
}

// closeDrained finishes the sockets that were closed in this event; one with a
// backlog is finished by retryStalled.
func (l *Loop) closeDrained() {
	closing := l.closing
	l.closing = nil
	for _, s := range closing {
		if !s.done && len(s.backlog) == 0 {
			s.finish(nil)
		}
	}
}

// now is the time of this event, in nanoseconds of feed.Now.
func (l *Loop) now() int64 {
	if l.nowNanos == 0 {
		l.nowNanos = feed.Now()
	}
	return l.nowNanos
}

func (l *Loop) takeBuffer() []byte {
	if n := len(l.buffers); n > 0 {
		b := l.buffers[n-1]
		l.buffers = l.buffers[:n-1]
		if cap(b) <= 2*flushEarly {
			return b[:0]
		}
	}
	return make([]byte, 0, 4096)
}

// read enters the store's reader for the rest of this event.
func (ln *lane) read() *cache.Reader {
	if !ln.entered {
		ln.entered = true
		ln.reader.Enter()
		ln.hitsBefore = ln.stats.sources[SourceHit].get()
	}
	return ln.reader
}

// post runs f on the loop, as an event of its own. It may be called from any
// goroutine; once the server is shutting down f is dropped.
func (l *Loop) post(f func()) {
	run := gnet.RunnableFunc(func(context.Context) error {
		l.begin()
		f()
		l.end()
		return nil
	})
	if err := l.el.Execute(context.Background(), run); err != nil {
		l.server.log.Debug("event dropped", "cause", err)
	}
}

// enroll hands a connection to the loop; attach follows on the loop.
func (l *Loop) enroll(conn net.Conn, s *Socket) error {
	_, err := l.el.Enroll(gnet.NewContext(context.Background(), s), conn)
	return err
}

func (l *Loop) closeConn(c gnet.Conn) {
	if err := l.el.Close(c); err != nil {
		l.server.log.Debug("close", "cause", err)
	}
}

func (l *Loop) stall(s *Socket) {
	s.stalled = true
	l.stalled[s] = struct{}{}
	if !l.retrying {
		l.retrying = true
		time.AfterFunc(stallRetry, func() { l.post(l.retryStalled) })
	}
}

func (l *Loop) retryStalled() {
	l.retrying = false
	for s := range l.stalled {
		if !s.drain() {
			continue
		}
		s.stalled = false
		delete(l.stalled, s)
		if s.closing {
			s.finish(nil)
			continue
		}
		s.settle()
	}
	for s := range l.stalled {
		l.touch(sessionOf(s))
	}
	if len(l.stalled) > 0 {
		l.retrying = true
		time.AfterFunc(stallRetry, func() { l.post(l.retryStalled) })
	}
}

// reapStrangers closes the clients that are not logged in after so long.
func (l *Loop) reapStrangers(after time.Duration) {
	for _, s := range l.sessions {
		if !s.loggedIn && time.Since(s.connectedAt) > after {
			s.client.fail(errNoLogin)
		}
	}
}

var errNoLogin = errors.New("the client did not log in in time")

// touch has a session's flow looked at when the event ends.
func (l *Loop) touch(s *Session) {
	if s != nil && !s.touched {
		s.touched = true
		l.touched = append(l.touched, s)
	}
}

// settle has the flow around a socket looked at when the event ends.
func (s *Socket) settle() { s.loop.touch(sessionOf(s)) }

func sessionOf(s *Socket) *Session {
	switch o := s.owner.(type) {
	case *Session:
		return o
	case *Link:
		return o.session
	}
	return nil
}
