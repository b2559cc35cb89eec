package proxy

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"freshet/cache"
	"freshet/planner"
	"freshet/planner/scan"
)

// Source says where an answer came from.
type Source uint8

const (
	SourceForward Source = iota
	SourceHit
	SourceFill
	SourceJoin
	SourceConsole
)

func (s Source) String() string {
	return [...]string{"forward", "hit", "fill", "join", "console"}[s]
}

// Bypass is why an answer that was there was not served.
type Bypass uint8

const (
	BypassBarrier Bypass = iota
	BypassStaleness
	BypassFeed
	BypassTransaction
	BypassPolicy
	bypasses
)

func (b Bypass) String() string {
	return [...]string{"barrier", "staleness", "feed", "transaction", "policy"}[b]
}

// Lookup answers from the store. The bytes are valid until the event ends.
//
// What the feed has proven is read before the cells are: the cells then show
// at least every change that the proof speaks of. The other way round, a
// change could be applied and proven between the two reads, and an answer from
// before it be served under the new proof.
func (s *Session) Lookup(key []byte) ([]byte, bool) {
	u := s.Upstream
	s.behind = false
	if s.CacheOff || u.Store == nil || u.mode == CacheOff {
		return nil, false
	}
	proof := s.proof()
	hit, found := s.lane.read().Get(key)
	if found != cache.Found {
		s.missWasStale = found == cache.Stale
		return nil, false
	}
	s.missWasStale = true
	q := u.Queries.at(uint32(hit.Meta[0]))
	if q == nil || q.version.Load() != uint32(hit.Meta[0]>>32) {
		return nil, false
	}
	if expires := int64(hit.Meta[1]); expires > 0 {
		if s.Loop.now() >= expires {
			return nil, false
		}
	} else if why, ok := s.fresh(q, proof); ok || why == BypassBarrier && s.holds(key) {
		s.hitOn(key, hit.Meta[1], proof)
	} else {
		if s.behind = why == BypassBarrier; !s.mayWait() {
			s.lane.stats.bypassed(why)
		}
		return nil, false
	}
	s.waited = false
	s.lane.stats.hit(q.index)
	s.Last = Last{Source: SourceHit, Query: q.index}
	return hit.Value, true
}

// Miss is what becomes of a read that Lookup did not answer.
type Miss uint8

const (
	MissForward Miss = iota // send it upstream, keep nothing
	MissFill                // send it upstream and append the answer to the fill
	MissJoin                // wait: Handler.Joined follows
	MissWait                // call AwaitProof, then Lookup again
)

// Miss decides whether the answer to a planned read is to be kept, and joins
// a fill of the same key that is under way. With MissJoin the session is
// Blocked until Handler.Joined. With MissWait there is an answer for later.
func (s *Session) Miss(key []byte, st *planner.Statement, params []planner.Param) (Miss, *cache.Fill) {
	plan := st.Plan()
	if s.mayWait() {
		return MissWait, nil
	}
	s.leading, s.forwardedRead, s.behind, s.waited = nil, false, false, false
	if plan == nil { // dropped since the caller looked: a definition has changed
		s.Forwarded(nil, "its tables' definitions are changing")
		return MissForward, nil
	}
	q := s.Upstream.Queries.of(plan)
	s.Last = Last{Source: SourceForward, Query: q.index}
	s.forwardedRead = plan.Class == planner.ClassRead && !(plan.Cacheable && len(plan.Tables) == 0)
	ttl, reason := s.keep(plan, q)
	if plan.NoCache && reason == noCache {
		reason = hintReason(st.Text)
	}
	if reason != "" {
		s.Last.Reason = reason
		return MissForward, nil
	}
	deps, since, ok := plan.Deps(s.deps[:0], params)
	s.deps = deps[:0]
	if !ok {
		if ttl == 0 {
			s.Last.Reason = orElse(plan.Refuses(params), "a table is just being taken up by the feed")
			return MissForward, nil
		}
		deps, since = nil, 0
	}
	miss, fill := s.claim(key, q, deps, since, ttl)
	if miss == MissFill && ttl == 0 && st.Plan() == nil {
		// A definition changed after the plan was looked up, and what the answer
		// depends on by now may be more than what was claimed. Had it changed
		// after the claim, the claim would be marked.
		fill.Abandon()
		s.leading, s.forwardedRead = nil, true
		s.Forwarded(nil, "its tables' definitions are changing")
		return MissForward, nil
	}
	return miss, fill
}

// keep says for how long an answer may be kept by time (0: as long as the
// feed does not change it) or why not at all.
func (s *Session) keep(plan *planner.Plan, q *Query) (time.Duration, string) {
	u, policy := s.Upstream, q.policy()
	ttl := policy.TTL
	if plan.TTLMillis > 0 {
		ttl = time.Duration(plan.TTLMillis) * time.Millisecond
	}
	switch {
	case u.mode == CacheOff || u.Store == nil:
		return 0, "the cache is off (--cache off)"
	case s.CacheOff:
		return 0, "the cache is off in this session (freshet.cache)"
	case plan.NoCache:
		return 0, noCache
	case plan.Class != planner.ClassRead:
		return 0, orElse(plan.Reason, "not a read")
	case u.mode == CacheExplicit && !q.created() && plan.TTLMillis == 0:
		return 0, "no CREATE CACHE for it (--cache explicit)"
	case ttl > 0:
		return ttl, ""
	case !plan.Cacheable:
		return 0, plan.Reason
	case u.Feed == nil:
		return 0, "the change feed is off; only caches WITH (TTL …) are kept"
	}
	return 0, ""
}

const noCache = "a comment in the statement says no-cache"

// hintReason tells a no-cache hint from one that is not understood, which
// counts as no-cache: that is the safe half of what it may mean.
func hintReason(text string) string {
	for {
		_, after, ok := strings.Cut(text, "/*+")
		if !ok {
			return noCache
		}
		var hint string
		hint, text, _ = strings.Cut(after, "*/")
		words := strings.Fields(strings.ToLower(hint))
		if len(words) < 1 || words[0] != "freshet:" || len(words) == 2 && words[1] == "no-cache" || !scan.ReadHints([]string{hint}).NoCache {
			continue
		}
		return fmt.Sprintf("the hint %.60q is not understood, so nothing is kept: want no-cache, or ttl 10s (ms, s, m, h or d)", strings.TrimSpace(hint))
	}
}

func (s *Session) claim(key []byte, q *Query, deps []cache.Dep, since cache.Position, ttl time.Duration) (Miss, *cache.Fill) {
	meta := [2]uint64{uint64(q.index) | uint64(q.version.Load())<<32, 0}
	canJoin := true
	if ttl > 0 {
		meta[1] = uint64(s.Loop.now() + int64(ttl))
	} else {
		_, canJoin = s.fresh(q, s.proof())
	}
	j := &join{session: s, query: q.index}
	fill, claim := s.Upstream.Store.Claim(key, deps, since, meta, canJoin, j)
	switch claim {
	case cache.Leader:
		s.Last.Source, s.Last.Reason = SourceFill, "there was no entry"
		if s.missWasStale {
			s.Last.Reason = "the entry was out of date"
		}
		s.leading, s.forwardedRead = fill, false
		s.lane.stats.missed(q.index, s.missWasStale)
		return MissFill, fill
	case cache.Joined:
		j.key = bytes.Clone(key)
		s.joined = j
		s.Blocked = true
		return MissJoin, nil
	}
	s.Last.Reason = "the position that can be read upstream is not known yet"
	if s.Upstream.Feed != nil {
		s.Upstream.Feed.Look()
	}
	return MissForward, nil
}

// join is a session's place in another session's fill.
type join struct {
	session *Session
	query   uint32
	key     []byte
}

// FillDone is called on whatever goroutine ended the fill.
func (j *join) FillDone(value []byte, ok, stored bool) {
	s := j.session
	s.Post(func() {
		if s.joined != j {
			return
		}
		s.joined = nil
		if ok {
			s.Last = Last{Source: SourceJoin, Query: j.query}
			s.lane.stats.joined(j.query)
			if !stored {
				j.key = nil // another may be stored in its place, and be older
			}
			s.shown(j.key)
		}
		s.wake(func() { s.Handler.Joined(value, ok) })
	})
}

func orElse(s, other string) string {
	if s != "" {
		return s
	}
	return other
}
