package cache

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// A shard holds the keys whose hashes end with its number. Everything but
// lookup runs under mu.
type shard struct {
	// What Readers read, away from what writers write. Tables are replaced
	// rarely; moves changes with every removal and is read on misses only.
	table atomic.Pointer[table]
	_     [120]byte
	moves atomic.Uint64 // odd while slots are being moved up
	_     [120]byte

	mu      sync.Mutex
	store   *Store
	epoch   uint32 // the epoch that entries counts; see syncEpoch
	slots   uint64 // slots in use, of any epoch
	running map[uint64]*Fill
	ghost   ghost

	owned    int // segments that are this shard's, in whatever state
	open     [queues]int32
	sealed   [queues][]int32 // oldest first
	free     []int32
	limbo    []limboSegment // oldest first
	flushed  int            // sealed segments, and perhaps the victim, that are flushed
	keepHits uint32

	// The segment being evicted: out of its queue, entries before cursor done.
	victim      int32
	victimQueue int
	cursor      uint32
	copied      uint64 // bytes of it copied forward
	sparse      bool   // it was chosen because most of it is dead

	stats shardStats
}

type shardStats struct {
	entries, liveBytes, fills           int64
	stored, notStored, refused, joined  uint64
	evicted, segmentsEvicted, noSegment uint64
}

// minOwned is how many segments a shard has from the start and keeps: two open,
// one to evict and one to move entries to.
const minOwned = 4

func (sh *shard) init(s *Store, slots ghost) error {
	t, err := newTable(0)
	if err != nil {
		return err
	}
	sh.store = s
	sh.table.Store(t)
	sh.running = make(map[uint64]*Fill)
	sh.ghost = slots
	sh.open = [queues]int32{none, none}
	sh.victim = none
	sh.keepHits = 1
	for range minOwned {
		seg := s.pool.take()
		if seg == none {
			return errTooSmall
		}
		sh.free = append(sh.free, seg)
		sh.owned++
	}
	return nil
}

// lookAgain is what a Reader does that has not found a key: it may have been
// passed by a slot moving up (table.remove), so a miss counts only if no slot
// moved meanwhile. It tries a few times and then settles for the miss, which
// costs a needless fill; it does not wait, since whoever moves slots may have
// been taken off its core.
func (sh *shard) lookAgain(arena unsafe.Pointer, tag uint64, key []byte) *entry {
	for range 4 {
		before := sh.moves.Load()
		if e, _ := sh.table.Load().get(arena, tag, key); e != nil {
			return e
		}
		if before&1 == 0 && sh.moves.Load() == before {
			return nil
		}
	}
	return nil
}

// syncEpoch notices a Flush since the shard was last used: whatever is in its
// segments is of the past, so they are sealed and are the next to be reused.
// Their entries stay linked until then; Readers see their epoch.
func (sh *shard) syncEpoch() {
	epoch := sh.store.loadEpoch()
	if epoch == sh.epoch {
		return
	}
	sh.epoch = epoch
	sh.stats.entries = 0
	sh.seal(queueSmall)
	sh.seal(queueMain)
	for _, list := range sh.sealed {
		for _, id := range list {
			sh.flush(id)
		}
	}
	if sh.victim != none {
		sh.flush(sh.victim)
	}
}

func (sh *shard) flush(id int32) {
	if seg := &sh.store.segments[id]; !seg.flushed {
		seg.flushed = true
		sh.flushed++
	}
}

// put stores a fill's answer; false if it cannot be kept. On success the
// fill's references to its cells are the entry's.
func (sh *shard) put(f *Fill) bool {
	s := sh.store
	sh.syncEpoch()
	// A change or a Flush right after this test does no harm: it makes an entry
	// that no Reader takes for valid.
	if f.displaced || f.epoch != sh.epoch || f.epoch == epochMax || !s.valid(f.cells, f.filledAt) {
		return false
	}
	size := entrySize(len(f.cells), len(f.key), len(f.buf))
	// Everything that may evict comes first; from the look-up on, the table and
	// the old entry stay put.
	sh.maintain(size)
	if !sh.roomForSlot() {
		sh.evict(scanLeast)
		return false
	}
	tag := tagOf(f.hash)
	off, ok := sh.reserve(sh.queueFor(tag, f), size, false)
	if !ok {
		sh.stats.noSegment++
		return false
	}
	s.entryAt(off).write(f)
	return sh.link(tag, off, size, f)
}

// queueFor chooses the queue for a new answer: main if the key was asked for
// before (it has an entry, or left small unused and is back).
func (sh *shard) queueFor(tag uint64, f *Fill) int {
	if old, _ := sh.table.Load().get(sh.store.arena, tag, f.key); old != nil || sh.ghost.recall(f.hash) {
		return queueMain
	}
	return queueSmall
}

// link publishes the entry at off, in place of the key's old one if it has one.
// The slot is written before the old entry's cells are released; see Reader.Get
// for Readers that still hold the old entry.
func (sh *shard) link(tag, off, size uint64, f *Fill) bool {
	s := sh.store
	t := sh.table.Load()
	old, slot := t.get(s.arena, tag, f.key)
	if old == nil {
		if !t.insert(slotWord(tag, off)) {
			return false
		}
		sh.slots++
	} else {
		oldOff := slotOffset(t.load(slot))
		t.store(slot, slotWord(tag, off))
		sh.forget(old, oldOff)
	}
	sh.linkedAt(off, size)
	sh.stats.entries++
	return true
}

// unlink removes the entry at off from the index.
func (sh *shard) unlink(t *table, slot uint64, e *entry, off uint64) {
	if t.load(t.next(slot)) == 0 {
		t.store(slot, 0)
	} else {
		sh.moves.Add(1)
		t.remove(slot)
		sh.moves.Add(1)
	}
	sh.slots--
	sh.forget(e, off)
}

// forget does the accounts for an entry that no slot names any more.
func (sh *shard) forget(e *entry, off uint64) {
	if epoch, _ := e.loadWord(); epoch == sh.epoch {
		sh.stats.entries--
	}
	sh.unlinkedAt(off, e.size())
	sh.store.cells.release(e.cells())
}

func (sh *shard) linkedAt(off, size uint64) {
	seg := &sh.store.segments[off>>sh.store.segShift]
	seg.linked++
	seg.live += uint32(size)
	sh.stats.liveBytes += int64(size)
}

func (sh *shard) unlinkedAt(off, size uint64) {
	seg := &sh.store.segments[off>>sh.store.segShift]
	seg.linked--
	seg.live -= uint32(size)
	sh.stats.liveBytes -= int64(size)
}

// roomForSlot makes sure that one more slot can be used. Tables grow by an
// eighth when thirteen sixteenths are in use, which makes 10 to 11 bytes an
// entry. What is there is found in 3 probes on average, what is not there in
// 10, twice: a cache line or three.
func (sh *shard) roomForSlot() bool {
	t := sh.table.Load()
	if sh.slots+1 <= t.n*13/16 {
		return true
	}
	if sh.resize(t, t.n+t.n/8) {
		return true
	}
	return sh.slots+1 <= t.n*15/16
}

// fitTable gives memory back when most of a table is unused.
func (sh *shard) fitTable() {
	if t := sh.table.Load(); t.n > slotsPerPage && sh.slots < t.n*2/5 {
		sh.resize(t, sh.slots*3/2)
	}
}

// resize replaces the table. The new one is paid for while the old one is still
// there; shards are many, so this is a small part of all tables.
func (sh *shard) resize(t *table, slots uint64) bool {
	s := sh.store
	s.reclaim.freeTables(&s.acct)
	bytes := tableBytes(slots)
	if !s.acct.take(bytes, 0) {
		return false
	}
	to := t.rebuild(slots)
	if to == nil {
		s.acct.give(bytes)
		return false
	}
	sh.table.Store(to)
	s.reclaim.retireTable(t)
	return true
}
