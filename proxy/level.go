package proxy

// Level is a consistency level, of the server, a saved query or a session.
type Level uint8

const (
	LevelSession Level = iota // the default
	LevelBounded
	LevelLinearizable
)

var levelNames = [...]string{"session", "bounded", "linearizable"}

// wantLevel says in errors what a level can be.
const wantLevel = "bounded, session or linearizable"

func (l Level) String() string { return levelNames[l] }

// ParseLevel reads a level's name.
func ParseLevel(name string) (Level, bool) {
	for l, n := range levelNames {
		if n == name {
			return Level(l), true
		}
	}
	return 0, false
}

// proof is what the feed has proven, and the time, before the cells are read:
// they then show at least every change that the proof speaks of.
type proof struct {
	at     int64  // everything visible upstream then has been applied; 0: nothing is known
	ticket uint64 // the newest probe of which the same holds
	now    int64  // after the request came
	lease  int64  // until then no commit becomes visible without being marked
}

func (s *Session) proof() proof {
	f := s.Upstream.Feed
	if f == nil {
		return proof{}
	}
	return proof{ticket: f.ProvenTicket(), at: f.ProvenAt(), now: s.Loop.now(), lease: f.LeaseUntil()}
}

// fresh judges a proof against what was promised. Under a lease the cells show
// every commit that was visible when the clock was read, which was after the
// request came; so they do for the session's own writes.
func (s *Session) fresh(q *Query, p proof) (Bypass, bool) {
	level, bound := q.promise(s.level, s.Upstream.maxStaleness)
	switch {
	case p.at == 0:
		return BypassFeed, false
	case level == LevelLinearizable && p.now >= p.lease:
		return BypassStaleness, false
	case level == LevelLinearizable:
		return 0, true
	case p.now-p.at > int64(bound):
		return BypassStaleness, false
	case level == LevelSession && p.ticket < s.barrier.ticket:
		return BypassBarrier, false
	}
	return 0, true
}
