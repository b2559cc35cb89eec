package cache

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestClassesBelongToOneShard: the recent changes of a class are under the lock
// of one cell shard, so two dependencies of a class must be of one.
func TestClassesBelongToOneShard(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 6))
	for shards := 1; shards <= maxCellShards; shards *= 2 {
		r := recent{slots: make([]uint64, recentSlots)}
		c := cells{}
		if err := c.init(&account{limit: 64 << 20}, &r, shards, rng.Uint64()|1); err != nil {
			t.Fatal(err)
		}
		owner, used, classes := make([]*cellShard, recentSlots), map[*cellShard]bool{}, 0
		for range 2 * recentSlots {
			dep := rng.Uint64()
			at, sh := r.class(dep), c.shard(dep)
			switch owner[at] {
			case nil:
				owner[at], used[sh] = sh, true
				classes++
			case sh:
			default:
				t.Fatalf("of %d shards, two have one class of recent changes", shards)
			}
		}
		if len(used) != shards || classes < recentSlots/2 {
			t.Errorf("%d of %d shards and %d classes in use", len(used), shards, classes)
		}
		c.free()
	}
}

// Claims, releases and marks against a map. Positions must never fall, and a
// cell must have at least the position of its dependency's last change.
func TestCellsAgainstMap(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	s := newTestStore(t, Options{LimitBytes: small})
	c := &s.cells
	const deps = 5000
	var (
		refs    [deps]int
		cellOf  [deps]uint32
		changed [deps]Position
		floor   = map[uint32]Position{}
	)
	for at := Position(1); at < 200000; at++ {
		i := rng.IntN(deps)
		dep := uint64(spread(i))
		switch rng.IntN(3) {
		case 0:
			cell := c.claim(dep)
			if cell == 0 {
				t.Fatal("no memory")
			}
			if refs[i]++; refs[i] > 1 && cell != cellOf[i] {
				t.Fatalf("dep %d has cells %d and %d", i, cellOf[i], cell)
			}
			cellOf[i] = cell
		case 1:
			if refs[i] > 0 {
				refs[i]--
				c.release([]uint32{cellOf[i]})
			}
		case 2:
			s.Mark(Dep(dep), at)
			changed[i] = at
		}
		if refs[i] == 0 {
			continue
		}
		p := c.changedAt(cellOf[i])
		if p < changed[i] {
			t.Fatalf("dep %d changed at %d, its cell says %d", i, changed[i], p)
		}
		if p < floor[cellOf[i]] {
			t.Fatalf("cell %d fell from %d to %d", cellOf[i], floor[cellOf[i]], p)
		}
		floor[cellOf[i]] = p
	}
	used := uint64(0)
	for i := range refs {
		if refs[i] > 0 {
			used++
		}
		for ; refs[i] > 0; refs[i]-- {
			c.release([]uint32{cellOf[i]})
		}
	}
	if st := s.Stats(); st.Cells != 0 || used == 0 {
		t.Fatalf("%d cells left of %d", st.Cells, used)
	}
	check(t, s)
}

// A cell that is claimed while its dependency is being marked has the mark once
// both are done, whichever came first.
func TestClaimAgainstMark(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: small})
	c := &s.cells
	dep := spread(1)
	var marked atomic.Uint64
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for at := uint64(1); !stop.Load(); at++ {
			s.Mark(dep, Position(at))
			marked.Store(at)
		}
	})
	overlaps := 0
	for begun := time.Now(); overlaps < 1000 && time.Since(begun) < 1500*time.Millisecond; {
		before := marked.Load()
		cell := c.claim(uint64(dep))
		if marked.Load() != before {
			overlaps++
		}
		for range 3 {
			if m := marked.Load(); uint64(c.changedAt(cell)) < m {
				t.Errorf("marked at %d, the cell says %d", m, c.changedAt(cell))
			}
		}
		c.release([]uint32{cell})
		if t.Failed() {
			break
		}
	}
	stop.Store(true)
	wg.Wait()
	t.Logf("%d claims overlapped a mark", overlaps)
}

// What nobody depends on leaves no cell behind.
func TestMarkOfUnknownLeavesNoTrace(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: small})
	before := s.Stats()
	for i := range 100000 {
		s.Mark(spread(i), 2)
	}
	if st := s.Stats(); st.Cells != 0 || st.Bytes != before.Bytes || st.MarksMissed != 100000 {
		t.Fatalf("%+v", st)
	}
}

// Without memory for cells claims are refused, and the refusals themselves
// make room, so that filling goes on.
func TestCellsRunOut(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: small})
	next := 0
	deps := func(n int) []Dep {
		d := make([]Dep, n)
		for i := range d {
			next++
			d[i] = spread(next)
		}
		return d
	}
	stored, refused, storedAfter := 0, 0, 0
	for i := range 6000 {
		f, c := s.Claim([]byte(keyOf(i)), deps(100), 0, [2]uint64{}, false, nil)
		if c == Refused {
			refused++
			continue
		}
		if f.Finish() {
			stored++
			if refused > 0 {
				storedAfter++
			}
		}
	}
	if refused == 0 || storedAfter < 1000 {
		t.Fatalf("%d stored, %d refused, %d stored after the first refusal", stored, refused, storedAfter)
	}
	check(t, s)
}
