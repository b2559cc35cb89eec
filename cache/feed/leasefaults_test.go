package feed

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"freshet/bench/seed"
	"freshet/bench/upstream"
	"freshet/cache"
)

// kept is what a cache would keep of the one row, by the store's rules.
type kept struct {
	value   int
	at      cache.Position
	flushes int
	ok      bool
}

// fill reads the row as a fill does: the readable position first.
func (w *watchedShape) fill() (k kept) {
	k.flushes, k.at = w.store.flushed(), w.store.Visible()
	if since, up := w.Shape.Since(); !up || k.at == 0 || k.at < since || w.Gone() {
		return kept{}
	}
	if err := w.db.QueryRow("SELECT a FROM faulty WHERE id = 1").Scan(&k.value); err != nil {
		return kept{}
	}
	k.ok = true
	return k
}

// valid tells whether the entry may be served.
func (w *watchedShape) valid(k kept, key cache.Dep) bool {
	return k.ok && w.store.at(key) <= k.at && w.store.at(cache.DepOfShape(w.Shape.ID)) <= k.at && w.store.flushed() == k.flushes
}

// TestLeaseUnderFaults has sessions that bypass the feed count a row up while
// the feed's lines are frozen, let go and broken. Whoever reads the row from
// the server, and then from a cache under a lease, must not go back in time. That
// holds however late anybody is, so a busy machine is but one more fault.
func TestLeaseUnderFaults(t *testing.T) {
	t.Parallel()
	ownKinds(t, allKinds, func(t *testing.T, s *upstream.Server) {
		seed := seed.Of(t, "FRESHET_SEED", 1)
		t.Logf("seed %d", seed)
		rnd := rand.New(rand.NewPCG(seed, 1))
		w := newWire(t, s.Address())
		r := synchronous(t, s, time.Second, w.through(s))
		r.fresh("faulty", "id INT PRIMARY KEY, a INT, b INT")
		r.exec("INSERT INTO faulty VALUES (1, 0, 0)")
		r.wantsLease()
		ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
		defer cancel()
		var running sync.WaitGroup
		defer running.Wait()
		var commits atomic.Int64
		for range 2 {
			running.Go(func() {
				for ctx.Err() == nil {
					if _, err := r.db.Exec("UPDATE faulty SET a = a + 1 WHERE id = 1"); err != nil {
						t.Error(err)
						return
					}
					commits.Add(1)
					sleep(ctx, time.Duration(rand.IntN(60))*time.Millisecond)
				}
			})
		}
		running.Go(func() {
			defer w.set(false) // whoever waits for the feed is let go
			for sleep(ctx, time.Duration(rnd.IntN(500))*time.Millisecond) {
				for i := 0; i < 3000 && !r.leased() && sleep(ctx, time.Millisecond); i++ {
					continue // a fault without a lease shows little
				}
				w.fault(ctx, rnd)
			}
		})
		hits, leases := r.readTwice(ctx)
		t.Logf("%d commits, %d reads under a lease, %d hits", commits.Load(), leases, hits)
		if hits == 0 || leases == 0 {
			t.Error("nothing was shown")
		}
	})
}

// readTwice reads the server and then the cache, over and over.
func (r *rig) readTwice(ctx context.Context) (hits, leases int) {
	var sh *watchedShape
	var key cache.Dep
	var entry kept
	for ctx.Err() == nil {
		if sh == nil || sh.Gone() {
			if sh = r.tryFollow(); sh == nil {
				sleep(ctx, 10*time.Millisecond)
				continue
			}
			key, entry = sh.key("1"), kept{}
		}
		var seen int
		if err := r.db.QueryRow("SELECT a FROM faulty WHERE id = 1").Scan(&seen); err != nil {
			r.t.Error(err)
			return
		}
		leased := Now() < r.feed.LeaseUntil()
		valid := sh.valid(entry, key)
		if leased {
			leases++
		}
		if leased && valid {
			if hits++; entry.value < seen {
				r.t.Errorf("the server said %d, and then the cache %d", seen, entry.value)
			}
		}
		if !valid {
			r.feed.Kick()
			entry = sh.fill()
		}
	}
	return hits, leases
}

// tryFollow follows the table if that can be had now.
func (r *rig) tryFollow() *watchedShape {
	tb, err := r.tracker.Follow(r.spec("faulty", intKinds))
	if err != nil {
		return nil
	}
	w := &watched{rig: r, Table: tb, kinds: intKinds}
	return &watchedShape{watched: w, Shape: r.tracker.ShapeOf(tb, ShapeSpec{Equal: []int{w.ordinal("id")}, Range: -1})}
}

// fault freezes or breaks the lines, for less or more than the server waits.
func (w *wire) fault(ctx context.Context, rnd *rand.Rand) {
	switch kind := rnd.IntN(4); kind {
	case 0:
		w.breakAll()
	case 1:
		w.set(true)
		sleep(ctx, time.Duration(rnd.IntN(300))*time.Millisecond)
		w.breakAll()
		w.set(false)
	default:
		w.set(true)
		sleep(ctx, time.Duration(300+rnd.IntN(2000))*time.Millisecond)
		w.set(false)
	}
}

// breakAll closes every connection through the wire.
func (w *wire) breakAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.ends {
		closeQuietly(c)
	}
	w.ends = nil
}
