package proxy

import (
	"encoding/binary"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"freshet/cache"
	"freshet/planner"
)

// Session is what both dialects' sessions share. Its fields belong to its
// loop.
type Session struct {
	ID       uint64
	Loop     *Loop
	Upstream *Upstream
	Handler  Handler
	Link     *Link // attached, or nil
	Remote   net.Addr
	// Full: the client came when there was no room; say so and close.
	Full bool
	// Blocked: waiting for something other than the client's bytes.
	Blocked bool
	// Last is what EXPLAIN LAST STATEMENT tells.
	Last Last
	// CacheOff is SET freshet.cache = off.
	CacheOff bool
	saved    *options // what SET LOCAL freshet.… has changed, until the transaction ends
	User     string   // see SetUser
	owner    atomic.Pointer[string]

	client  *Socket
	lane    *lane
	level   Level
	barrier barrier
	// behind tells of the last Lookup: an entry was there that only the barrier
	// kept from being served; waited: the barrier was waited for in vain.
	behind, waited bool
	wantKey        string
	// wantGeneration is that of the server's defaults when it asked.
	wantGeneration uint64
	waitTimer      *time.Timer
	touched        bool
	joined         *join
	deps           []cache.Dep
	// missWasStale tells of the last Lookup: an entry was there, but outdated.
	missWasStale bool
	over         bool
	connectedAt  time.Time
	loggedIn     bool
	sentAt       int64
	leading      *cache.Fill // the fill that this session's statement feeds
	// forwardedRead: the statement under way is a read that may have an entry,
	// and its answer is not kept.
	forwardedRead bool
}

// Last describes the session's last statement.
type Last struct {
	Source Source
	Reason string
	Query  uint32 // index into the upstream's queries; 0 for none
}

func (s *Session) opened() { s.Handler.Open() }

func (s *Session) received(in []byte) int {
	if s.Blocked {
		s.Loop.touch(s)
		return 0
	}
	if s.Link != nil {
		s.Loop.touch(s)
	}
	return s.Handler.Data(in)
}

func (s *Session) closed(error) {
	if s.over {
		return
	}
	s.over = true
	s.stopWaiting()
	s.lane.pool.forget(s)
	s.joined = nil
	s.Handler.Closed()
	if s.Link != nil {
		s.DropLink()
	}
	s.Loop.server.left(s)
}

// LoggedIn notes that the client was let in.
func (s *Session) LoggedIn() { s.loggedIn = true }

// Write adds bytes to what this event sends to the client. They are copied;
// several calls in one event make one write(2).
func (s *Session) Write(b []byte) { s.client.Write(b) }

// Close closes the client once what was written has been sent.
func (s *Session) Close() { s.client.Close() }

// Over tells whether the client is gone.
func (s *Session) Over() bool { return s.over }

// Log is the session's logger.
func (s *Session) Log() *slog.Logger {
	return s.Loop.server.log.With("session", s.ID)
}

// Post runs f on the session's loop, from any goroutine, unless the client is
// gone by then.
func (s *Session) Post(f func()) {
	s.Loop.post(func() {
		if !s.over {
			f()
		}
	})
}

// Unblock ends a wait and offers the handler what has come meanwhile. It is
// not called from within Data.
func (s *Session) Unblock() {
	s.Blocked = false
	s.offer()
}

// offer gives the handler the client's bytes that it left.
func (s *Session) offer() {
	s.Loop.touch(s)
	if !s.Blocked && s.client.waiting() > 0 && !s.client.done {
		s.client.consume(nil)
	}
}

// wake ends a wait, lets f act on what was waited for, and goes on.
func (s *Session) wake(f func()) {
	s.Blocked = false
	f()
	s.offer()
}

// AcquireLink attaches a link with the pool key. It tells true when the link
// is there already; otherwise the session is Blocked until LinkReady.
func (s *Session) AcquireLink(key string) bool {
	s.wantKey = key
	s.Blocked = !s.lane.pool.acquire(s)
	return !s.Blocked
}

// ReleaseLink gives the link back. Nothing may be pending on it and the
// session must have left no state there.
func (s *Session) ReleaseLink() {
	l := s.Link
	s.Link = nil
	l.PinnedBy = ""
	l.pool.release(l)
}

// KeepsLink is why the session's link stays with it though nothing of the
// session's is on it; "" when it does not: see PoolSession.
func (s *Session) KeepsLink() string {
	if s.Upstream.pool == PoolSession && !s.over {
		return "--pool session"
	}
	return ""
}

// DropLink closes the link.
func (s *Session) DropLink() {
	l := s.Link
	s.Link = nil
	l.session = nil
	l.pool.busyCount.Add(-1)
	l.pool.discard(l)
}

func (s *Session) ready(err error) {
	if s.over {
		return
	}
	s.wake(func() { s.Handler.LinkReady(err) })
}

func (s *Session) stopWaiting() {
	if s.waitTimer != nil {
		s.waitTimer.Stop()
		s.waitTimer = nil
	}
}

// balance parks the sides whose bytes nobody can take now, so that one slow
// peer costs a bounded amount of memory, and lets them go on afterwards.
func (s *Session) balance() {
	if s.over {
		return
	}
	c := s.client
	var up *Socket
	if s.Link != nil {
		up = s.Link.sock
	}
	full := func(x *Socket) bool {
		if x == nil {
			return false
		}
		if x.leave || len(x.backlog) > highWater {
			return len(x.backlog) > lowWater
		}
		return false
	}
	clientFull := len(c.backlog) > highWater || c.leave && len(c.backlog) > lowWater
	upFull := full(up) || up != nil && c.leave && len(up.backlog) > lowWater
	waiting := s.Blocked && c.waiting() > highWater
	set(c, clientFull || upFull || waiting)
	if up != nil {
		set(up, clientFull)
	}
}

func set(x *Socket, park bool) {
	if park {
		x.park()
	} else {
		x.unpark()
	}
}

// Key starts a store key in the loop's scratch space: what kind of entry, and
// in which context (see Upstream.Context). The caller appends what tells the
// statement and its parameters apart and hands it to Lookup before the event
// ends. Fixed widths come first, so no two keys run into each other.
func (s *Session) Key(kind byte, context uint64) []byte {
	k := append(s.Loop.key[:0], kind)
	return binary.LittleEndian.AppendUint64(k, context)
}

// KeepKey gives the scratch space back, grown.
func (s *Session) KeepKey(k []byte) { s.Loop.key = k[:0] }

// planWait bounds how long a statement waits for its plan. The catalog may be
// locked, even by a transaction of the very session that waits.
const planWait = 250 * time.Millisecond

// Plan has a statement planned off the loop; then runs on the loop, and the
// session is Blocked until it does. late tells that there is still no plan, and
// that it is not to be waited for: what the statement does is unknown.
func (s *Session) Plan(st *planner.Statement, then func(late bool)) {
	s.Blocked = true
	var once sync.Once
	end := func(late bool) {
		once.Do(func() { s.Post(func() { s.wake(func() { then(late) }) }) })
	}
	timer := time.AfterFunc(planWait, func() { end(true) })
	s.Upstream.Planner.Make(st, func() {
		timer.Stop()
		end(false)
	})
}

// Sent notes that a statement went upstream; Completed, that its reply is
// whole.
func (s *Session) Sent() { s.sentAt = s.Loop.now() }

// Completed counts a statement that was answered upstream.
func (s *Session) Completed() {
	s.catchUp()
	if s.sentAt == 0 {
		return
	}
	s.lane.stats.completed(s.Last.Source, s.Last.Query, s.Loop.now()-s.sentAt)
	s.sentAt = 0
}

// Forwarded notes what is forwarded without a look at the cache, and why. st
// may be nil when there is nothing planned to name.
func (s *Session) Forwarded(st *planner.Statement, reason string) {
	s.Last = Last{Source: SourceForward, Reason: reason}
	if st == nil {
		return
	}
	if p := st.Plan(); p != nil {
		s.Last.Query = s.Upstream.Queries.of(p).index
	}
}

// InTransaction notes a read that was forwarded because of its transaction.
func (s *Session) InTransaction(st *planner.Statement) {
	s.Forwarded(st, "inside a transaction")
	s.lane.stats.bypassed(BypassTransaction)
}

// Malformed counts bytes that are not the protocol.
func (s *Session) Malformed() { s.lane.stats.errors.add(1) }

// options are what SET freshet.… changes.
type options struct {
	level    Level
	cacheOff bool
}

// ResetOptions takes back every SET freshet.…: RESET ALL and the like.
func (s *Session) ResetOptions() {
	s.level, s.CacheOff, s.saved = s.Loop.server.level(), false, nil
}

// saveOptions keeps the options for the end of the transaction, before the
// first SET LOCAL in it.
func (s *Session) saveOptions() {
	if s.saved == nil {
		s.saved = &options{s.level, s.CacheOff}
	}
}

// EndTransaction takes back every SET LOCAL freshet.… of the transaction.
func (s *Session) EndTransaction() {
	if s.saved != nil {
		s.level, s.CacheOff, s.saved = s.saved.level, s.saved.cacheOff, nil
	}
}

// Caches tells whether the session may be answered from memory at all.
func (s *Session) Caches() bool {
	u := s.Upstream
	return !s.CacheOff && u.Store != nil && u.mode != CacheOff && u.Feed != nil
}
