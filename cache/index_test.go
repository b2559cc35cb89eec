package cache

import (
	"math/rand/v2"
	"testing"
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
