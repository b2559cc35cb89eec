package feed

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"freshet/bench/upstream"
	"freshet/cache"
)

// errBadSession makes database/sql drop a connection.
var errBadSession = driver.ErrBadConn

func TestMain(m *testing.M) { os.Exit(upstream.Main(m)) }

// store is a Marks that remembers, and holds the feed to its promises.
type store struct {
	mu       sync.Mutex
	marks    map[cache.Dep]cache.Position
	applied  cache.Position
	visible  cache.Position
	flushes  int
	broken   []string
	onMarked func(cache.Dep, cache.Position)
}

func newStore() *store { return &store{marks: make(map[cache.Dep]cache.Position)} }

func (s *store) Mark(d cache.Dep, p cache.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p <= s.applied {
		s.broken = append(s.broken, "marked at a position that was applied already")
	}
	s.marks[d] = max(s.marks[d], p)
	if s.onMarked != nil {
		s.onMarked(d, p)
	}
}

func (s *store) SetApplied(p cache.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p <= s.applied {
		s.broken = append(s.broken, "applied did not rise")
	}
	s.applied = p
}

func (s *store) SetVisible(p cache.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p > s.applied {
		s.broken = append(s.broken, "visible passed applied")
	}
	if p != 0 && p < s.visible {
		s.broken = append(s.broken, "visible fell")
	}
	s.visible = p
}

func (s *store) Applied() cache.Position { s.mu.Lock(); defer s.mu.Unlock(); return s.applied }
func (s *store) Visible() cache.Position { s.mu.Lock(); defer s.mu.Unlock(); return s.visible }
func (s *store) Flush()                  { s.mu.Lock(); defer s.mu.Unlock(); s.flushes++ }

func (s *store) at(d cache.Dep) cache.Position { s.mu.Lock(); defer s.mu.Unlock(); return s.marks[d] }

func (s *store) flushed() int { s.mu.Lock(); defer s.mu.Unlock(); return s.flushes }

// check fails the test if the feed broke a promise.
func (s *store) check(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.broken {
		t.Error("the store was told nonsense: " + b)
	}
}

// eventually waits for a condition, and fails with what it was.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// rig is a server, a feed of it and a store that remembers.
type rig struct {
	t       *testing.T
	server  *upstream.Server
	from    string // Config.From
	db      *sql.DB
	store   *store
	tracker *Tracker
	feed    *Feed
	log     *lines
	mu      sync.Mutex
	changed []nameKey
}

func newRig(t *testing.T, s *upstream.Server) *rig {
	t.Helper()
	return newRigFrom(t, s, "")
}

// newRigFrom takes the change stream from a replica.
func newRigFrom(t *testing.T, s *upstream.Server, from string) *rig {
	t.Helper()
	r := &rig{t: t, server: s, from: from, db: s.DB(t), store: newStore()}
	r.tracker = NewTracker(r.store)
	r.open()
	t.Cleanup(func() {
		if r.feed != nil {
			r.feed.Close()
		}
		r.store.check(t)
	})
	return r
}

func (r *rig) open() {
	r.t.Helper()
	level := slog.LevelWarn
	if os.Getenv("FEED_DEBUG") != "" {
		level = slog.LevelDebug
	}
	r.log = &lines{show: func(l slog.Level, line string) {
		if l >= level {
			r.t.Log(line)
		}
	}}
	f, err := Open(context.Background(), Config{DSN: r.server.DSN(), From: r.from, Store: r.store, Tracker: r.tracker, Log: slog.New(r.log),
		OnSchemaChange: func(schema, table string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.changed = append(r.changed, nameKey{schema: schema, name: table})
		}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.feed = f
	eventually(r.t, "the feed runs", func() bool { return f.Status().Up && f.ProvenTicket() > 0 })
}

func (r *rig) exec(statements ...string) {
	r.t.Helper()
	for _, s := range statements {
		if _, err := r.db.Exec(s); err != nil {
			r.t.Fatalf("%s: %v", s, err)
		}
	}
}

// settle waits until everything visible now is applied.
func (r *rig) settle() {
	r.t.Helper()
	ticket := r.feed.Ticket()
	r.feed.Kick()
	eventually(r.t, "a probe is proven", func() bool { return r.feed.ProvenTicket() >= ticket })
}

// sawChange tells whether OnSchemaChange named the table.
func (r *rig) sawChange(schema, table string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.changed {
		if k == (nameKey{schema: schema, name: table}) {
			return true
		}
	}
	return false
}
