package cache

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// Random insertions and removals, with tags crowded into few homes, against a
// map; at every step each word must be found.
func TestTableAgainstMap(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	tab, err := newTable(0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { tab.mem.free() }()
	words := map[uint64]bool{}
	var list []uint64
	for step := range 60000 {
		if len(list) == 0 || rng.IntN(100) < 52 && uint64(len(list)) < tab.n*9/10 {
			// Half the tags lie at the end, so that clusters wrap around.
			tag := rng.Uint64() & (1<<tagBits - 1)
			if rng.IntN(2) == 0 {
				tag = 1<<tagBits - 1 - rng.Uint64N(1<<20)
			}
			w := slotWord(tag, uint64(step+1)*entryAlign)
			if tab.insert(w) {
				words[w] = true
				list = append(list, w)
			}
		} else {
			i := rng.IntN(len(list))
			w := list[i]
			list[i] = list[len(list)-1]
			list = list[:len(list)-1]
			at, ok := tab.find(w)
			if !ok {
				t.Fatalf("step %d: word %x is lost", step, w)
			}
			tab.remove(at)
			delete(words, w)
			if _, ok := tab.find(w); ok {
				t.Fatalf("step %d: word %x is still there", step, w)
			}
		}
		if step%997 == 0 {
			checkTable(t, tab, words)
		}
		if step%20011 == 20010 {
			to := tab.rebuild(tab.n + tab.n/4)
			if to == nil {
				t.Fatal("rebuild failed")
			}
			tab.mem.free()
			tab = to
			checkTable(t, tab, words)
		}
	}
}

func checkTable(t *testing.T, tab *table, words map[uint64]bool) {
	t.Helper()
	n := 0
	for i := range tab.n {
		if w := tab.load(i); w != 0 {
			n++
			if at, ok := tab.find(w); !words[w] || !ok || at != i {
				t.Fatalf("word %x in slot %d: known %v, found %v in %d", w, i, words[w], ok, at)
			}
		}
	}
	if n != len(words) {
		t.Fatalf("%d words in the table, want %d", n, len(words))
	}
}

// The head of an entry is what the package comment and the budget of 64 bytes
// say it is.
func TestEntryLayout(t *testing.T) {
	var e entry
	if o := unsafe.Offsetof(e.word) + 4; o != entryHead {
		t.Fatalf("head is %d bytes, want %d", o, entryHead)
	}
	if n := entrySize(2, 20, 100); n != 168 {
		t.Fatalf("entry with 120 bytes of key and value takes %d", n)
	}
}

func TestEntryWidths(t *testing.T) {
	e := entry{lens: uint64(maxValueLen)<<32 | MaxKeyBytes<<12 | MaxDeps}
	if e.valueLen() != maxValueLen || e.keyLen() != MaxKeyBytes || e.cellCount() != MaxDeps {
		t.Fatal(e.valueLen(), e.keyLen(), e.cellCount())
	}
}

// Readers must find a key that is there while its slot and those around it are
// moved all the time. (After several failed tries in a row a Reader gives up.)
func TestFoundWhileSlotsMove(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: small})
	const keys = 440 // of 512 slots: long clusters
	for i := range keys {
		mustFill(t, s, keyOf(i), keyOf(i))
	}
	var stop atomic.Bool
	var looks, missed, again atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		r := s.NewReader()
		defer r.Close()
		tab := s.shards[0].table.Load()
		for !stop.Load() {
			for i := range keys {
				looks.Add(1)
				key := []byte(keyOf(i))
				if e, _ := tab.get(s.arena, tagOf(s.hash(key)), key); e == nil {
					again.Add(1)
				}
				v, l := get(r, keyOf(i))
				if l == Cold {
					missed.Add(1)
				} else if l != Found || v != keyOf(i) {
					t.Errorf("%q: %q, %d", keyOf(i), v, l)
				}
			}
		}
	})
	deadline := time.Now().Add(800 * time.Millisecond)
	for again.Load() < 10 && time.Now().Before(deadline) {
		for i := range keys {
			jostle(s, keyOf(i))
		}
	}
	stop.Store(true)
	wg.Wait()
	t.Logf("%d of %d look-ups had to look again, %d missed", again.Load(), looks.Load(), missed.Load())
	if again.Load() == 0 {
		t.Skip("no look-up was ever passed by a slot: nothing was tested")
	}
	if missed.Load() > again.Load()/10 {
		t.Fatal("too many misses")
	}
}

// jostle gives the key a second slot at the end of its cluster and takes the
// first away, so that it always has one.
func jostle(s *Store, key string) {
	h := s.hash([]byte(key))
	sh := s.shardOf(h)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	tab := sh.table.Load()
	_, at := tab.get(s.arena, tagOf(h), []byte(key))
	tab.insert(tab.load(at))
	sh.moves.Add(1)
	tab.remove(at)
	sh.moves.Add(1)
}
