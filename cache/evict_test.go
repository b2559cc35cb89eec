package cache

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Memory is reused when no Reader is inside an event that could have seen it,
// and not before.
func TestReaderHoldsMemory(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: small})
	holder, idle := s.NewReader(), s.NewReader()
	value := func(i int) string { return strings.Repeat(keyOf(i), 100) }
	mustFill(t, s, keyOf(0), value(0), 1)
	holder.Enter()
	hit, l := holder.Get([]byte(keyOf(0)))
	if l != Found {
		t.Fatal("not found")
	}
	i, failed := 1, 0
	for ; i < 50000 && failed < 100; i++ {
		if !fill(t, s, keyOf(i), value(i), 1) {
			failed++
		}
	}
	if failed == 0 {
		t.Fatal("memory was reused under a Reader")
	}
	if string(hit.Value) != value(0) {
		t.Fatal("the bytes changed before Leave")
	}
	if st := s.Stats(); st.NoSegment == 0 {
		t.Fatalf("%+v", st)
	}
	check(t, s)
	holder.Leave()
	for end := i + 20000; i < end; i++ {
		mustFill(t, s, keyOf(i), value(i), 1)
	}
	want(t, idle, keyOf(0), value(0), Found) // used, so moved on
	want(t, idle, keyOf(1), "", Cold)
	// A Reader that is closed inside an event holds nothing either.
	holder.Enter()
	holder.Close()
	for end := i + 20000; i < end; i++ {
		mustFill(t, s, keyOf(i), value(i), 1)
	}
	check(t, s)
}

// A scan of many keys asked for once must not push out what is asked for again
// and again.
func TestScanResistance(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: 16 << 20, MaxEntryBytes: 4096})
	r := s.NewReader()
	value := strings.Repeat("v", 400)
	const hot = 8000 // about a quarter of the memory
	next, rounds := hot, 16
	if checkedMemory {
		rounds = 10 // the race detector is slow
	}
	missed := 0
	for round := range rounds {
		for i := range hot {
			if _, l := get(r, keyOf(i)); l != Found {
				if round > 2 {
					missed++
				}
				fill(t, s, keyOf(i), value)
			}
			for range 2 {
				fill(t, s, keyOf(next), value)
				next++
			}
		}
	}
	if share := float64(missed) / float64((rounds-3)*hot); share > 0.02 {
		t.Fatalf("%.1f %% of asks for hot keys missed during a scan", share*100)
	}
	check(t, s)
}

// On a skewed load the hit ratio must be near what keeping the most popular
// keys would give.
func TestZipfHitRatio(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := newTestStore(t, Options{LimitBytes: small, MaxEntryBytes: 4096})
	r := s.NewReader()
	rng := rand.New(rand.NewPCG(seed, 3))
	const keys = 100000
	asks := 400000
	if checkedMemory {
		asks = 200000
	}
	z := rand.NewZipf(rng, 1.01, 8, keys-1)
	value := strings.Repeat("v", 400)
	counts := make([]int, keys)
	hits := 0
	for n := range asks {
		i := int(z.Uint64())
		_, l := get(r, keyOf(i))
		if l != Found {
			fill(t, s, keyOf(i), value)
		}
		if n >= asks/2 {
			counts[i]++
			if l == Found {
				hits++
			}
		}
	}
	held := int(s.Stats().Entries)
	best := 0
	for _, c := range counts[:held] { // popularity falls with the number
		best += c
	}
	ratio, ideal := float64(hits)/float64(asks/2), float64(best)/float64(asks/2)
	t.Logf("hit ratio %.3f with %d entries; the %d most popular keys would give %.3f", ratio, held, held, ideal)
	if ratio < ideal*0.92 {
		t.Fatalf("hit ratio %.3f, ideal %.3f", ratio, ideal)
	}
	check(t, s)
}

// Entries that were replaced leave room without anything valid being evicted.
func TestReplacedEntriesAreReclaimed(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: small})
	r := s.NewReader()
	value := strings.Repeat("v", 1000)
	at := Position(1)
	const keys = 2000 // about 2 MiB
	for round := range 20 {
		for i := range keys {
			mustFill(t, s, keyOf(i), value, spread(i))
		}
		for i := range keys {
			at++
			s.Mark(spread(i), at)
		}
		s.SetVisible(at)
		if round == 19 {
			break
		}
	}
	for i := range keys {
		mustFill(t, s, keyOf(i), value, spread(i))
	}
	for i := range keys {
		want(t, r, keyOf(i), value, Found)
	}
	if st := s.Stats(); st.Evictions > keys/10 {
		t.Fatalf("%d valid entries evicted although they fit", st.Evictions)
	}
	check(t, s)
}

// A working set that is all hot and does not fit must not stop the store.
func TestAllHot(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: small})
	r := s.NewReader()
	value := strings.Repeat("v", 1000)
	for i := range 40000 {
		mustFill(t, s, keyOf(i), value, 1)
		for range 4 {
			get(r, keyOf(i))
		}
	}
	if st := s.Stats(); st.NoSegment != 0 || st.Entries < 3000 {
		t.Fatalf("%+v", st)
	}
	check(t, s)
}

// Values of all sizes, far more than fit, keep within the limit.
func TestMixedSizes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 4))
	s := newTestStore(t, Options{LimitBytes: small})
	block := make([]byte, 256<<10)
	dropped := 0
	for i := range 5000 {
		f := lead(t, s, keyOf(rng.IntN(4000)), spread(i), 7)
		n := 1 << rng.IntN(19)
		if !f.Append(block[:rng.IntN(min(n, s.MaxEntryBytes()))]) || !f.Finish() {
			dropped++
		}
		if st := s.Stats(); st.Bytes > st.LimitBytes {
			t.Fatalf("%d bytes of %d", st.Bytes, st.LimitBytes)
		}
	}
	if dropped > 50 {
		t.Fatalf("%d answers were not stored", dropped)
	}
	check(t, s)
}
