package cache

import (
	"sync/atomic"
	"unsafe"
)

// A table is a shard's index: 8-byte slots, open addressing, linear probing.
// A slot is 0 when empty, else tag << locationBits | location.
//
// The tag is 28 bits of the key's hash. It also decides where probing starts
// (tag * slots >> 28), so a table can be rebuilt at any size from its slots
// alone, in order, without touching an entry. The location is the entry's
// offset in the arena in units of 8 bytes; offset 0 is never used.
//
// Slots are written under the shard's lock and read by anyone, atomically; a
// slot is never torn, and the entry behind it is whole (see reclaimer). A table
// itself never changes its size: it is replaced, and the old one stays readable
// until no Reader can hold it. What a Reader finds in a replaced table was true
// when the Reader loaded the pointer, which is within its Get.
type table struct {
	slots unsafe.Pointer
	n     uint64
	mem   memory
}

const (
	tagBits      = 28
	locationBits = 64 - tagBits
	locationMask = 1<<locationBits - 1
	maxArena     = entryAlign << locationBits

	// slotsPerPage: tables grow by whole pages, because that is what they cost.
	slotsPerPage = 4096 / 8

	// maxProbe and maxSameTag bound what keys chosen to collide can cost: past
	// them an answer is not stored. With honest keys neither is ever reached.
	maxProbe   = 1024
	maxSameTag = 8
)

func newTable(slots uint64) (*table, error) {
	slots = wholePages(slots)
	mem, err := mapMemory(int(slots*8), false)
	if err != nil {
		return nil, err
	}
	return &table{slots: mem.base(), n: slots, mem: mem}, nil
}

// wholePages rounds slots up to what at least one page, and whole ones, hold.
func wholePages(slots uint64) uint64 {
	return max((slots+slotsPerPage-1)/slotsPerPage, 1) * slotsPerPage
}

// tableBytes is what newTable(slots) will occupy.
func tableBytes(slots uint64) int64 { return int64(wholePages(slots) * 8) }

func (t *table) bytes() int64 { return int64(t.n * 8) }

func (t *table) slot(i uint64) *uint64 { return (*uint64)(unsafe.Add(t.slots, i*8)) }

func (t *table) load(i uint64) uint64 { return atomic.LoadUint64(t.slot(i)) }

func (t *table) store(i, word uint64) { atomic.StoreUint64(t.slot(i), word) }

func (t *table) home(tag uint64) uint64 { return tag * t.n >> tagBits }

func (t *table) next(i uint64) uint64 {
	if i++; i == t.n {
		return 0
	}
	return i
}

func slotWord(tag, off uint64) uint64 { return tag<<locationBits | off/entryAlign }

func slotOffset(word uint64) uint64 { return word & locationMask * entryAlign }

// get returns the entry with the key, or nil. It is the only look-up by key,
// for Readers and under the lock alike. A Reader that races with remove may
// get nil for a key that is there (see shard.lookAgain); it never gets another
// key's entry, since the whole key is compared.
func (t *table) get(arena unsafe.Pointer, tag uint64, key []byte) (*entry, uint64) {
	i := t.home(tag)
	// Slots moving under a Reader could keep it from ever seeing an empty one.
	for left := t.n; left > 0; left-- {
		w := t.load(i)
		if w == 0 {
			return nil, i
		}
		if w>>locationBits == tag {
			e := (*entry)(unsafe.Add(arena, slotOffset(w)))
			if string(e.key()) == string(key) {
				return e, i
			}
		}
		i = t.next(i)
	}
	return nil, i
}

// find returns the slot that holds exactly this word. Under the lock.
func (t *table) find(word uint64) (uint64, bool) {
	i := t.home(word >> locationBits)
	for {
		switch t.load(i) {
		case word:
			return i, true
		case 0:
			return 0, false
		}
		i = t.next(i)
	}
}

// insert puts a word whose key is not in the table into the first empty slot
// of its probe sequence; false when that lies past the bounds. Under the lock.
func (t *table) insert(word uint64) bool {
	i, same := t.home(word>>locationBits), 0
	for range maxProbe {
		w := t.load(i)
		if w == 0 {
			t.store(i, word)
			return true
		}
		if w>>locationBits == word>>locationBits {
			if same++; same == maxSameTag {
				return false
			}
		}
		i = t.next(i)
	}
	return false
}

// remove empties slot i and moves later slots of the cluster up, so that no
// probe sequence is broken. Under the lock, inside shard.moving: a Reader that
// has passed the new place of a moved slot and has not reached the old one
// misses it. Each slot is written at its new place before its old one is
// overwritten, so no other kind of gap arises.
func (t *table) remove(i uint64) {
	for j := t.next(i); ; j = t.next(j) {
		w := t.load(j)
		if w == 0 {
			break
		}
		// w may move to i unless its home lies cyclically in (i, j].
		if t.distance(t.home(w>>locationBits), j) >= t.distance(i, j) {
			t.store(i, w)
			i = j
		}
	}
	t.store(i, 0)
}

func (t *table) distance(from, to uint64) uint64 {
	if to >= from {
		return to - from
	}
	return to + t.n - from
}

// rebuild returns a table of another size with the same slots, or nil when
// there is no memory or the slots would not go in. Under the lock.
func (t *table) rebuild(slots uint64) *table {
	to, err := newTable(slots)
	if err != nil {
		return nil
	}
	for i := range t.n {
		if w := t.load(i); w != 0 && !to.insert(w) {
			to.mem.free()
			return nil
		}
	}
	return to
}
