package cache

import (
	"fmt"
	"testing"
)

// newTestStore makes a Store whose visible position is 1.
func newTestStore(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := newStore(o, 0x9E3779B97F4A7C15)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.SetVisible(1)
	return s
}

// lead claims a key that must be free to lead.
func lead(t testing.TB, s *Store, key string, deps ...Dep) *Fill {
	t.Helper()
	f, c := s.Claim([]byte(key), deps, 0, [2]uint64{}, false, nil)
	if c != Leader {
		t.Fatalf("claim of %q: %v, want Leader", key, c)
	}
	return f
}

// fill stores a value under a key and reports whether it was stored.
func fill(t testing.TB, s *Store, key, value string, deps ...Dep) bool {
	t.Helper()
	f := lead(t, s, key, deps...)
	if !f.Append([]byte(value)) {
		return false
	}
	return f.Finish()
}

// mustFill is fill that must store.
func mustFill(t testing.TB, s *Store, key, value string, deps ...Dep) {
	t.Helper()
	if !fill(t, s, key, value, deps...) {
		t.Fatalf("%q was not stored", key)
	}
}

// get looks a key up in an event of its own.
func get(r *Reader, key string) (string, Lookup) {
	r.Enter()
	defer r.Leave()
	hit, l := r.Get([]byte(key))
	return string(hit.Value), l
}

func want(t testing.TB, r *Reader, key, value string, l Lookup) {
	t.Helper()
	v, got := get(r, key)
	if got != l || v != value {
		t.Fatalf("get %q: %q, %d; want %q, %d", key, v, got, value, l)
	}
}

// recorder is a Waiter that remembers what it was told.
type recorder struct {
	calls int
	value string
	ok    bool
}

func (r *recorder) FillDone(value []byte, ok, _ bool) {
	r.calls++
	r.value, r.ok = string(value), ok
}

func (r *recorder) want(t testing.TB, value string, ok bool) {
	t.Helper()
	if r.calls != 1 || r.value != value || r.ok != ok {
		t.Fatalf("waiter told %d times, last %q, %v; want once %q, %v", r.calls, r.value, r.ok, value, ok)
	}
}

// check verifies what must hold of every part between calls. It must be given
// all fills that have not ended.
func check(t testing.TB, s *Store, fills ...*Fill) {
	t.Helper()
	refs, running := map[uint32]int{}, 0
	for _, f := range fills {
		if f.over {
			continue
		}
		running++
		for _, c := range f.cells {
			refs[c]++
		}
	}
	for i := range s.shards {
		checkShard(t, &s.shards[i], refs)
	}
	for i := range s.cells.shards {
		sh := &s.cells.shards[i]
		used := uint64(0)
		for _, cell := range sh.heads {
			for ; cell != 0; cell = s.cells.record(cell).next {
				used++
				if got := int(s.cells.record(cell).refs); got != refs[cell] {
					t.Fatalf("cell %d has %d references, %d name it", cell, got, refs[cell])
				}
				delete(refs, cell)
			}
		}
		if used != sh.used {
			t.Fatalf("cell shard %d counts %d cells, has %d", i, sh.used, used)
		}
	}
	if len(refs) != 0 {
		t.Fatalf("%d cells are named but not in the table", len(refs))
	}
	if st := s.Stats(); st.Bytes > st.LimitBytes || st.Fills != running {
		t.Fatalf("%d bytes taken of %d, %d fills of %d", st.Bytes, st.LimitBytes, st.Fills, running)
	}
	if want := accounted(s); s.acct.used.Load() != want {
		t.Fatalf("account says %d, the parts have %d", s.acct.used.Load(), want)
	}
}

func checkShard(t testing.TB, sh *shard, refs map[uint32]int) {
	t.Helper()
	s := sh.store
	tab := sh.table.Load()
	slots, live := uint64(0), map[uint64]uint64{}
	linked := map[uint64]uint32{}
	for i := range tab.n {
		w := tab.load(i)
		if w == 0 {
			continue
		}
		slots++
		off := slotOffset(w)
		e := s.entryAt(off)
		if got, at := tab.get(s.arena, w>>locationBits, e.key()); got != e || at != i {
			t.Fatalf("key %q in slot %d is found in %d", e.key(), i, at)
		}
		live[off>>s.segShift] += e.size()
		linked[off>>s.segShift]++
		for _, c := range e.cells() {
			refs[c]++
		}
	}
	if slots != sh.slots {
		t.Fatalf("shard counts %d slots, has %d", sh.slots, slots)
	}
	owned := append(append([]int32{}, sh.free...), sh.sealed[0]...)
	owned = append(append(owned, sh.sealed[1]...), sh.open[:]...)
	owned = append(owned, sh.victim)
	for _, l := range sh.limbo {
		owned = append(owned, l.seg)
	}
	n := 0
	for _, id := range owned {
		if id == none {
			continue
		}
		n++
		seg := s.segments[id]
		if uint64(seg.live) != live[uint64(id)] || seg.linked != linked[uint64(id)] {
			t.Fatalf("segment %d counts %d bytes in %d entries, has %d in %d", id, seg.live, seg.linked, live[uint64(id)], linked[uint64(id)])
		}
		delete(live, uint64(id))
	}
	if n != sh.owned || len(live) != 0 {
		t.Fatalf("shard owns %d segments, has %d; %d others hold its entries", sh.owned, n, len(live))
	}
}

// accounted adds up what the account must say.
func accounted(s *Store) int64 {
	n := int64(recentBytes) + int64(len(s.shards)*len(s.shards[0].ghost.prints)*4)
	for i := range s.shards {
		n += int64(s.shards[i].owned)*int64(s.pool.segSize) + s.shards[i].table.Load().bytes()
	}
	for _, r := range s.reclaim.tables {
		n += r.table.bytes()
	}
	for i := range s.cells.shards {
		n += int64(len(s.cells.shards[i].heads)) * 4
	}
	return n + int64(s.cells.taken)*cellBytes
}

func keyOf(i int) string { return fmt.Sprintf("key-%08d", i) }

// spread makes dependencies that differ in every part, as real hashes do.
func spread(i int) Dep { return Dep(uint64(i) * 0x9E3779B97F4A7C15) }
