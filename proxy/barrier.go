package proxy

import (
	"sync"
	"time"

	"freshet/cache"
)

// What a session has been shown, it must not be shown an older state of
// afterwards, by whatever statement: neither than its own writes, nor than what
// the upstream or a younger entry told it. So each answer from upstream, and each
// hit on an entry that may hold what the feed has not brought yet, raises the
// session's barrier, a ticket of the feed; and hits wait until the feed has
// proven it. Forwarding them instead would show something newer each time and
// raise the barrier again: a session that asks faster than the feed proves would
// never hit any more.

// barrier is how far the feed must have come before the session may hit.
type barrier struct {
	ticket uint64
	// wrote is the ticket of the newest answer that may have changed something.
	wrote uint64
	// key is that of the answer that raised ticket last, if it is kept: the entry
	// of this key is that answer or a younger one, whatever is proven. Everything
	// else that the session saw is older, or proven. Empty for none.
	key []byte
}

// maxBarrierKey bounds the keys that sessions remember.
const maxBarrierKey = 512

// tracked marks the second word of the Meta of an entry that is not kept by time:
// the rest of the word is a ticket then. Once that is proven, so is all that the
// answer shows.
const tracked = uint64(1) << 63

// Wrote raises the session's barrier: hits wait until everything visible
// upstream now has been applied. Call it when a statement that was not a
// plain cached read has completed upstream.
func (s *Session) Wrote() {
	if f := s.Upstream.Feed; f != nil {
		s.raise(f.Ticket(), nil)
		s.barrier.wrote = s.barrier.ticket
	}
}

// raise puts the barrier where all that the session has been shown is proven;
// key is that of the entry that has its latest answer, or nil.
func (s *Session) raise(ticket uint64, key []byte) {
	b := &s.barrier
	b.ticket = max(b.ticket, ticket)
	b.key = b.key[:0]
	if len(key) <= maxBarrierKey {
		b.key = append(b.key, key...)
	}
}

// shown notes that a read was answered from upstream, as the entry of the key if
// there is one.
func (s *Session) shown(key []byte) {
	if f := s.Upstream.Feed; f != nil {
		s.raise(f.Ticket(), key)
	}
}

// hitOn notes a hit on an entry, of whose answer not all may be proven yet. meta
// is the second word of its Meta.
func (s *Session) hitOn(key []byte, meta uint64, p proof) {
	if ticket := meta &^ tracked; ticket > p.ticket {
		s.raise(ticket, key)
	}
}

// holds tells whether the key's entry is what raised the barrier, or younger.
func (s *Session) holds(key []byte) bool {
	return len(key) > 0 && string(s.barrier.key) == string(key)
}

// CaughtUp tells whether the feed has proven everything that the session may
// have written, within the server's bound of staleness. Like Lookup, it reads the
// proof before whatever the caller then looks at.
func (s *Session) CaughtUp() bool {
	f := s.Upstream.Feed
	if f == nil {
		return false
	}
	ticket, at := f.ProvenTicket(), f.ProvenAt()
	return at != 0 && ticket >= s.barrier.wrote && s.Loop.now()-at <= int64(s.Upstream.maxStaleness)
}

// catchUp raises the barrier after a cacheable read that was answered upstream.
func (s *Session) catchUp() {
	switch {
	case s.leading != nil && s.leading.Stored():
		s.shown(s.leading.Key())
	case s.leading != nil, s.forwardedRead:
		s.shown(nil)
	}
	s.forwardedRead, s.leading = false, nil
}

// Keep ends a fill with the answer whole, and tells whether it is kept. The
// entry tells those who hit it what must be proven before they are shown
// anything else.
func (s *Session) Keep(fill *cache.Fill) bool {
	if meta := fill.Meta(); meta[1] == 0 && s.Upstream.Feed != nil {
		meta[1] = tracked | s.Upstream.Feed.Ticket()
		fill.SetMeta(meta)
	}
	return fill.Finish()
}

// proofWait bounds how long a hit waits for the barrier. The feed is a
// millisecond behind as a rule; where it is more, the upstream is busy, too, and
// what is forwarded waits there.
const proofWait = 100 * time.Millisecond

// mayWait tells whether the statement under way is worth a wait: an entry is
// there that the barrier alone forbids, it has not been waited for in vain, and
// the feed has proven something since anyone last did.
func (s *Session) mayWait() bool {
	return s.behind && !s.waited && s.Upstream.Feed.ProvenTicket() != s.Upstream.proofLate.Load()
}

// AwaitProof blocks the session until the barrier is proven, or for proofWait;
// then runs on the loop before the statement is offered again.
func (s *Session) AwaitProof(then func()) {
	s.Blocked, s.behind = true, false
	u := s.Upstream
	var once sync.Once
	end := func(late bool) {
		once.Do(func() {
			s.Post(func() {
				if s.waited = late; late {
					u.proofLate.Store(u.Feed.ProvenTicket())
				}
				s.wake(then)
			})
		})
	}
	timer := time.AfterFunc(proofWait, func() { end(true) })
	u.Feed.Await(s.barrier.ticket, func() {
		timer.Stop()
		end(false)
	})
}
