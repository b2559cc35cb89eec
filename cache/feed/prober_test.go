package feed

import (
	"context"
	"testing"
	"time"

	"freshet/bench/upstream"
)

// TestGlance: a probe that did not look at definitions tells what is visible,
// and proves nothing, not even once the stream has caught up with it.
func TestGlance(t *testing.T) {
	b := newBench(t)
	b.applier.start(10, nil)
	run, _ := b.applier.current()
	tx := newTxn(b.applier)
	tx.begin()
	if err := tx.end(commit{raw: 20, xid: 1}); err != nil {
		t.Fatal(err)
	}
	all := func(*commit) bool { return true }
	b.applier.sighted(run, probe{ticket: 1, glance: true, sighting: byHand{all, 20, true}})
	if b.store.visible != b.store.applied || b.proven != 0 {
		t.Errorf("visible %d of %d, ticket %d is proven", b.store.visible, b.store.applied, b.proven)
	}
	b.applier.advance(30)
	if b.proven != 0 {
		t.Errorf("ticket %d is proven by a glance", b.proven)
	}
	b.applier.sighted(run, probe{ticket: 2, sighting: byHand{all, 30, true}})
	if b.proven != 2 {
		t.Errorf("ticket %d is proven, want 2", b.proven)
	}
}

// TestGlancesSeeNoDefinition changes definitions while everybody only asks what
// can be read. What is proven then has the change marked.
func TestGlancesSeeNoDefinition(t *testing.T) {
	kinds(t, postgresKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		for n := range 10 {
			r.fresh("glanced", "id INT PRIMARY KEY, a INT")
			w := r.follow("glanced", intKinds)
			turn, end := context.WithCancel(ctx)
			go func() {
				for sleep(turn, 200*time.Microsecond) {
					r.feed.Look()
				}
			}()
			r.exec("ALTER TABLE glanced ADD COLUMN b INT DEFAULT 1")
			ticket := r.feed.Ticket()
			eventually(t, "something is proven", func() bool { return r.feed.ProvenTicket() >= ticket })
			if !w.Gone() {
				t.Errorf("round %d: proven past a change of a definition that was not noticed", n)
			}
			end()
		}
	})
}

// TestProbesInTurn: who asks what is visible is not held up by what proofs cost,
// proofs leave the server alone in between, and are made unasked.
func TestProbesInTurn(t *testing.T) {
	began := time.Now()
	const costly = 10 * time.Millisecond
	for name, c := range map[string]struct {
		asked        bool // for a proof
		look         bool
		wholeTook    time.Duration
		glanceAgo    time.Duration // before the last whole one; 0: never
		after        time.Duration
		wantsToProve bool
	}{
		"nobody asks":           {after: 100 * time.Millisecond, wantsToProve: true},
		"a proof is asked":      {asked: true, after: probeSpacing, wantsToProve: true},
		"proofs are costly":     {asked: true, wholeTook: costly, after: probeRest * costly, wantsToProve: true},
		"a look between proofs": {asked: true, look: true, wholeTook: costly, after: probeSpacing},
		"both are due":          {asked: true, look: true, after: probeSpacing, wantsToProve: true},
		"a look alone":          {look: true, glanceAgo: time.Second, after: probeSpacing},
		"never beyond the rest": {asked: true, wholeTook: time.Second, after: 100 * time.Millisecond, wantsToProve: true},
	} {
		p := &prober{feed: &Feed{cfg: Config{ProbeEvery: 100 * time.Millisecond}}}
		p.whole = turn{began: began, took: c.wholeTook, wanted: c.asked}
		p.glance.wanted = c.look
		if c.glanceAgo != 0 {
			p.glance.began = began.Add(-c.glanceAgo)
		}
		if at, whole := p.next(); at.Sub(began) != c.after || whole != c.wantsToProve {
			t.Errorf("%s: after %s, to prove %v; want %s, %v", name, at.Sub(began), whole, c.after, c.wantsToProve)
		}
	}
}
