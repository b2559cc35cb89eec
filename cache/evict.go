package cache

// Eviction works on one sealed segment of a shard at a time, the victim, a few
// entries with every answer that is stored, so that no caller pays for a whole
// segment at once. What was used is copied forward into main's open segment,
// the rest is dropped.
const (
	// spareSegments is how many emptied segments a shard tries to have ready,
	// in limbo or free.
	spareSegments = 2

	// scanFactor is how many bytes of the victim are looked at for every byte
	// stored. At least half a victim is dropped as a rule (keepShare), so 2
	// would keep up; the rest is margin.
	scanFactor = 4
	scanLeast  = 4096

	// smallShare is the small queue's part of the shard's segments: 1/10.
	smallShare = 10
)

// maintain does the share of eviction work that goes with size bytes stored.
func (sh *shard) maintain(size uint64) {
	if sh.flushed == 0 && (len(sh.free)+len(sh.limbo) >= spareSegments || sh.store.pool.room()) {
		return
	}
	sh.evict(int(size)*scanFactor + scanLeast)
}

// evict looks at up to quota bytes of victims.
func (sh *shard) evict(quota int) {
	for quota > 0 && (sh.victim != none || sh.pickVictim()) {
		n := sh.scan(quota)
		if n == 0 {
			return
		}
		quota -= n
	}
}

// evictSegment empties one segment, the open ones too if no other is left, and
// reports whether it did. It does not while Readers hold up what was emptied
// before: memory would not come any sooner, and all would be lost in time.
func (sh *shard) evictSegment() bool {
	if len(sh.limbo) > spareSegments {
		return false
	}
	if sh.victim == none && !sh.pickVictim() {
		sh.seal(queueSmall)
		sh.seal(queueMain)
		if !sh.pickVictim() {
			return false
		}
	}
	for sh.victim != none {
		if sh.scan(int(sh.store.pool.segSize)) == 0 {
			return false
		}
	}
	return true
}

// scan evicts entries of the victim from the cursor on and returns how many
// bytes it passed, and one more; 0 if it must wait for memory to copy to. It
// retires the victim at its end.
func (sh *shard) scan(quota int) int {
	s := sh.store
	seg := &s.segments[sh.victim]
	start := sh.cursor
	for seg.linked > 0 && sh.cursor < seg.used && int(sh.cursor-start) < quota {
		off := uint64(sh.victim)<<s.segShift + uint64(sh.cursor)
		e := s.entryAt(off)
		if !sh.evictEntry(e, off) {
			return 0
		}
		sh.cursor += uint32(e.size())
	}
	passed := int(sh.cursor - start)
	if seg.linked == 0 || sh.cursor >= seg.used {
		sh.retireVictim()
	}
	return passed + 1
}

// retireVictim sends the emptied victim to limbo.
func (sh *shard) retireVictim() {
	s := sh.store
	if s.segments[sh.victim].flushed {
		sh.flushed--
	}
	sh.adaptKeep()
	sh.limbo = append(sh.limbo, limboSegment{sh.victim, s.reclaim.retire()})
	sh.victim = none
	sh.stats.segmentsEvicted++
	sh.fitTable()
}

// evictEntry drops the entry or moves it on. An entry that no slot names was
// replaced before; its cells were released then. It reports false, and does
// nothing, if the entry should be moved on and there is no place yet.
func (sh *shard) evictEntry(e *entry, off uint64) bool {
	s := sh.store
	h := s.hash(e.key())
	t := sh.table.Load()
	slot, linked := t.find(slotWord(tagOf(h), off))
	if !linked {
		return true
	}
	epoch, hits := e.loadWord()
	valid := epoch == s.loadEpoch() && s.valid(e.cells(), e.filledAt)
	if valid && sh.keep(hits, e.size()) {
		if sh.moveOn(t, slot, e, off, epoch, hits) {
			return true
		}
		if len(sh.limbo) > 0 {
			return false
		}
	}
	if valid {
		sh.stats.evicted++
		if sh.victimQueue == queueSmall {
			sh.ghost.remember(h)
		}
	}
	sh.unlink(t, slot, e, off)
	return true
}

// keep decides whether an entry of the victim is worth copying.
func (sh *shard) keep(hits uint32, size uint64) bool {
	segSize := sh.store.pool.segSize
	if sh.sparse {
		return true // mostly dead already: compacting it, at most a quarter is copied
	}
	if sh.copied+size > segSize*3/4 {
		return false // each victim must free something, however hot all of it is
	}
	if sh.victimQueue == queueSmall {
		return hits > 0
	}
	return hits >= sh.keepHits
}

// adaptKeep moves the number of hits that main asks of an entry, so that about
// half of a victim goes at most: with more than that worth keeping by the
// present measure the working set does not fit, and copying it round and round
// would cost more than it saves.
func (sh *shard) adaptKeep() {
	if sh.victimQueue != queueMain || sh.sparse {
		return
	}
	switch segSize := sh.store.pool.segSize; {
	case sh.copied > segSize/2:
		sh.keepHits = min(sh.keepHits+1, hitMax)
	case sh.copied < segSize/4:
		sh.keepHits = max(sh.keepHits-1, 1)
	}
}

// moveOn copies the entry forward and points its slot at the copy. Readers that
// hold the old one go on reading it: the victim is not reused before they leave.
// The copy has the same cells and inherits the references. What comes from
// small starts in main without hits, what stays in main keeps all but one.
func (sh *shard) moveOn(t *table, slot uint64, e *entry, off uint64, epoch, hits uint32) bool {
	s := sh.store
	q := queueMain
	switch {
	case sh.sparse:
		q = sh.victimQueue
	case sh.victimQueue == queueSmall:
		hits = 0
	default:
		hits--
	}
	size := e.size()
	to, ok := sh.reserve(q, size, true)
	if !ok {
		return false
	}
	e.copyTo(s.entryAt(to), epoch, hits)
	word := t.load(slot)
	t.store(slot, slotWord(word>>locationBits, to))
	sh.linkedAt(to, size)
	sh.unlinkedAt(off, size)
	sh.copied += size
	return true
}

// pickVictim takes a sealed segment out of its queue: one from before a flush,
// else one that is mostly dead, else the oldest of small if small has more than
// its share, else the oldest of main. It reports false if none is sealed.
func (sh *shard) pickVictim() bool {
	s := sh.store
	best, bestQueue, bestLive := -1, 0, uint32(s.pool.segSize/4)
	for q := range sh.sealed {
		for i, id := range sh.sealed[q] {
			seg := &s.segments[id]
			live := seg.live
			if seg.flushed {
				live = 0
			}
			if live < bestLive {
				best, bestQueue, bestLive = i, q, live
			}
		}
	}
	sh.sparse = best >= 0
	if best < 0 {
		best, bestQueue = 0, queueMain
		small := len(sh.sealed[queueSmall])
		if small > sh.owned/smallShare || len(sh.sealed[queueMain]) == 0 {
			bestQueue = queueSmall
		}
		if len(sh.sealed[bestQueue]) == 0 {
			return false
		}
	}
	list := sh.sealed[bestQueue]
	sh.victim, sh.victimQueue = list[best], bestQueue
	sh.sealed[bestQueue] = append(list[:best], list[best+1:]...)
	sh.cursor, sh.copied = segmentStart, 0
	return true
}

// A ghost remembers, by fingerprint, what left the small queue unused. A key
// that comes back soon goes to main at once. Each new fingerprint takes the
// place of whatever had its slot, so memory of the past fades at random.
type ghost struct{ prints []uint32 }

func (g *ghost) remember(h uint64) { *g.slot(h) = uint32(h >> 8) }

// recall reports whether h was remembered, and forgets it.
func (g *ghost) recall(h uint64) bool {
	p := g.slot(h)
	if *p != uint32(h>>8) {
		return false
	}
	*p = 0
	return true
}

func (g *ghost) slot(h uint64) *uint32 {
	return &g.prints[(h>>32)*uint64(len(g.prints))>>32]
}
