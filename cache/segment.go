package cache

import (
	"sync"
	"unsafe"
)

// The two queues of a shard (S3-FIFO, SOSP '23): what is new goes to small, a
// tenth of the memory, and only what is used again there moves on to main, so
// a scan of things asked for once passes through small and leaves main alone.
const (
	queueSmall = iota
	queueMain
	queues
)

// none is no segment.
const none = int32(-1)

// A segment is the account of one piece of the arena. It belongs to the shard
// that took it and is changed under that shard's lock. Entries are written one
// after another from segmentStart on; when the next one does not fit the
// segment is sealed, and it is reused as a whole (Segcache, NSDI '21).
type segment struct {
	used    uint32 // bytes written, segmentStart included
	live    uint32 // bytes of those that an index slot names
	linked  uint32 // number of those
	flushed bool   // everything in it is of an epoch that has passed
}

// segmentStart keeps offset 0 of the arena unused, so that no slot is 0;
// segmentEnd keeps an empty value at the very end inside the segment.
const (
	segmentStart = entryAlign
	segmentEnd   = entryAlign
)

// A pool hands out the arena's segments to shards and takes them back. It
// keeps a spare part of the limit for cells and index tables, which cannot be
// moved out of the way once they are needed.
type pool struct {
	mem     memory
	acct    *account
	segSize uint64
	spare   int64

	mu    sync.Mutex
	fresh int32   // segments from here on were never taken
	total int32   // segments that the arena has room for
	back  []int32 // given back, their pages discarded
}

// take returns a segment that nobody uses, or none.
func (p *pool) take() int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.back); n > 0 && p.acct.take(int64(p.segSize), p.spare) {
		seg := p.back[n-1]
		p.back = p.back[:n-1]
		return seg
	}
	if p.fresh < p.total && p.acct.take(int64(p.segSize), p.spare) {
		p.fresh++
		return p.fresh - 1
	}
	return none
}

// room reports whether take would probably succeed.
func (p *pool) room() bool { return p.acct.left() >= int64(p.segSize)+p.spare }

// short reports whether cells and tables have used up half of what is kept for
// them, so that segments should be given back.
func (p *pool) short() bool { return p.acct.left() < p.spare/2 }

// give takes back a segment that no Reader can see. It reports false, and the
// shard keeps the segment, when the kernel did not take its pages.
func (p *pool) give(seg int32) bool {
	if !p.mem.discard(uintptr(seg)*uintptr(p.segSize), uintptr(p.segSize)) {
		return false
	}
	p.mu.Lock()
	p.back = append(p.back, seg)
	p.mu.Unlock()
	p.acct.give(int64(p.segSize))
	return true
}

// limboSegment is an evicted segment that some Reader may still see.
type limboSegment struct {
	seg   int32
	epoch uint64
}

// takeSegment returns an empty segment without evicting anything, or none. The
// last free one is for entries that eviction moves on (moving): without a place
// for those, what is worth most would be dropped to make room for what is new.
func (sh *shard) takeSegment(moving bool) int32 {
	sh.reap()
	var seg int32
	if n := len(sh.free); n > 1 || n == 1 && moving {
		seg = sh.free[n-1]
		sh.free = sh.free[:n-1]
	} else if seg = sh.store.pool.take(); seg != none {
		sh.owned++
	}
	return seg
}

// reap moves segments that no Reader can see any more out of limbo.
func (sh *shard) reap() {
	if len(sh.limbo) == 0 {
		return
	}
	s := sh.store
	low, n := s.reclaim.oldest(), 0
	for ; n < len(sh.limbo) && sh.limbo[n].epoch <= low; n++ {
		seg := sh.limbo[n].seg
		if checkedMemory {
			poison(s.at(uint64(seg)<<s.segShift), s.pool.segSize)
		}
		if s.pool.short() && sh.owned > minOwned && s.pool.give(seg) {
			sh.owned--
			continue
		}
		sh.free = append(sh.free, seg)
	}
	sh.limbo = append(sh.limbo[:0], sh.limbo[n:]...)
}

// poison overwrites memory that is about to be reused, so that a Reader which
// kept bytes past Leave sees that at once.
func poison(p unsafe.Pointer, n uint64) {
	b := unsafe.Slice((*byte)(p), n)
	for i := range b {
		b[i] = 0xDB
	}
}

// bump reserves size bytes in the queue's open segment, or reports false.
func (sh *shard) bump(q int, size uint64) (off uint64, ok bool) {
	id := sh.open[q]
	if id == none {
		return 0, false
	}
	seg := &sh.store.segments[id]
	if uint64(seg.used)+size+segmentEnd > sh.store.pool.segSize {
		return 0, false
	}
	off = uint64(id)<<sh.store.segShift + uint64(seg.used)
	seg.used += uint32(size)
	return off, true
}

// seal closes the queue's open segment, if any.
func (sh *shard) seal(q int) {
	if id := sh.open[q]; id != none {
		sh.sealed[q] = append(sh.sealed[q], id)
		sh.open[q] = none
	}
}

// reserve finds size bytes in a queue, opening another segment if need be and,
// unless this is for an entry that eviction moves on, emptying one for it. It
// fails when every segment that could serve may still be seen by some Reader.
func (sh *shard) reserve(q int, size uint64, moving bool) (off uint64, ok bool) {
	if size > sh.store.pool.segSize-segmentStart-segmentEnd {
		return 0, false
	}
	for try := 0; ; try++ {
		if off, ok = sh.bump(q, size); ok {
			return off, true
		}
		if seg := sh.takeSegment(moving); seg != none {
			sh.seal(q)
			sh.store.segments[seg] = segment{used: segmentStart}
			sh.open[q] = seg
			continue
		}
		if moving || try >= 3 || !sh.evictSegment() {
			return 0, false
		}
	}
}
