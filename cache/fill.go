package cache

import "bytes"

// Claim is what a call of Store.Claim got.
type Claim uint8

const (
	// Refused: forward the statement and keep nothing. What is visible
	// upstream is not known or is before since, or a dependency changed after
	// it, so that a probe may help; or too much is being filled at the moment,
	// or there is no memory for cells.
	Refused Claim = iota
	// Leader: the caller runs the statement and ends the fill with Finish or
	// Abandon.
	Leader
	// Joined: the Waiter will be told.
	Joined
)

// A Waiter has joined a fill that another session leads.
type Waiter interface {
	// FillDone is called once, by the goroutine that ends the fill, with no
	// lock held. It must not block. With ok the value is the whole answer, in
	// Go memory that never changes; else the waiter must run the statement by
	// itself. stored tells whether it is also the key's entry.
	FillDone(value []byte, ok, stored bool)
}

// A Fill is one answer being fetched. All methods are for its leader, from one
// goroutine at a time. It must be ended by Finish or Abandon.
type Fill struct {
	store    *Store
	shard    *shard
	key      []byte
	hash     uint64
	cells    []uint32 // a reference to each is held until ended, or passed to the entry
	fewCells [4]uint32
	filledAt Position
	epoch    uint32
	meta     [2]uint64

	buf      []byte // the answer so far; the leader's, fixed once ended
	maxValue int
	charged  int64 // bytes taken from store.fillAcct
	over     bool  // the leader's own note that the fill has ended
	stored   bool  // likewise, that its answer was kept

	waiters []Waiter // under the shard's lock
	joined  bool     // under the shard's lock: there were waiters
	// displaced, under the shard's lock: another fill leads in its place.
	displaced bool
}

// fillCost is what a running fill is charged besides its key and answer.
const fillCost = 512

// Claim asks to fill a key whose answer depends on deps; what was hashed for
// them before since is not known to the feed. At most MaxKeyBytes of key and
// MaxDeps dependencies; more are Refused. key and deps are only read during the
// call. Without deps and since, visible need not be known.
//
// A fill of the same key that runs is joined if canJoin and nothing it depends
// on changed since it began; else a new one leads in its place. The older one
// then serves its waiters but is not kept, even if it stays valid: the younger
// may have seen changes that are visible but not yet marked, and a session that
// got its answer must not find an older one stored afterwards.
//
// The order of steps is: the epoch is noted, the cells are claimed, then
// filledAt is. What was flushed or changed after either is found out by
// comparing them; see cells.claim for the proof. Whoever loses track of the
// upstream must call SetVisible(0) before Flush: a fill that begins after the
// Flush then finds nothing visible.
func (s *Store) Claim(key []byte, deps []Dep, since Position, meta [2]uint64, canJoin bool, w Waiter) (*Fill, Claim) {
	if len(key) > MaxKeyBytes || len(deps) > MaxDeps {
		return nil, Refused
	}
	hash := s.hash(key)
	return s.shardOf(hash).claim(hash, key, deps, since, meta, canJoin, w)
}

func (sh *shard) claim(hash uint64, key []byte, deps []Dep, since Position, meta [2]uint64, canJoin bool, w Waiter) (*Fill, Claim) {
	s := sh.store
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if canJoin && w != nil {
		if run := sh.running[hash]; run != nil && run.joinable(key, since) {
			run.waiters = append(run.waiters, w)
			run.joined = true
			sh.stats.joined++
			return nil, Joined
		}
	}
	f := &Fill{store: s, shard: sh, hash: hash, meta: meta, epoch: s.loadEpoch()}
	f.maxValue = s.maxValueFor(len(key), len(deps))
	// charge comes first: it bounds how much is running.
	if f.maxValue < 0 || !f.charge(fillCost+int64(len(key)+4*len(deps))) {
		sh.stats.refused++
		return nil, Refused
	}
	if !f.begin(deps, since) {
		f.discharge()
		sh.stats.refused++
		return nil, Refused
	}
	f.key = bytes.Clone(key)
	if run := sh.running[hash]; run != nil {
		run.displaced = true // of another key, too: its hash is all we know it by
	}
	sh.running[hash] = f
	sh.stats.fills++
	return f, Leader
}

// begin claims the cells and notes filledAt. It reports false if the answer
// could not be kept.
func (f *Fill) begin(deps []Dep, since Position) bool {
	s := f.store
	timeless := len(deps) == 0 && since == 0
	if v := s.Visible(); !timeless && (v == 0 || v < since) {
		return false
	}
	f.cells = f.fewCells[:0]
	for _, dep := range deps {
		cell := s.cells.claim(uint64(dep))
		if cell == 0 {
			// Cells come free as entries go. Storing drives eviction, but
			// nothing may be stored for want of cells.
			s.cells.release(f.cells)
			f.shard.evict(scanLeast * scanFactor)
			return false
		}
		f.cells = append(f.cells, cell)
	}
	f.filledAt = s.Visible()
	if !timeless && (f.filledAt == 0 || f.filledAt < since || !s.valid(f.cells, f.filledAt)) {
		s.cells.release(f.cells)
		return false
	}
	return true
}

// joinable reports whether the answer, though asked for before now, is as good
// as an entry stored this moment would be. Under the shard's lock.
func (f *Fill) joinable(key []byte, since Position) bool {
	return string(f.key) == string(key) && f.epoch == f.store.loadEpoch() &&
		f.filledAt >= since && f.store.valid(f.cells, f.filledAt)
}

// FilledAt is the position up to which the answer will have seen all changes.
func (f *Fill) FilledAt() Position { return f.filledAt }

// Key is the key that is filled; it must not be changed.
func (f *Fill) Key() []byte { return f.key }

// Meta is what was given to Claim, or to SetMeta since.
func (f *Fill) Meta() [2]uint64 { return f.meta }

// SetMeta replaces what was given to Claim.
func (f *Fill) SetMeta(meta [2]uint64) { f.meta = meta }

// Append adds a copy of p to the answer. It returns false if the answer is too
// large to be kept, or too much is being filled at once: then the fill is over,
// its waiters have been told, and Finish will do nothing.
func (f *Fill) Append(p []byte) bool {
	if f.over {
		return false
	}
	if len(p) > f.maxValue-len(f.buf) || !f.grow(len(f.buf)+len(p)) {
		f.Abandon()
		return false
	}
	f.buf = append(f.buf, p...)
	return true
}

// grow makes room for n bytes, doubling what there is.
func (f *Fill) grow(n int) bool {
	if n <= cap(f.buf) {
		return true
	}
	size := min(max(n, 2*cap(f.buf), 256), f.maxValue)
	if !f.charge(int64(size - cap(f.buf))) {
		return false
	}
	f.buf = append(make([]byte, 0, size), f.buf...)
	return true
}

// Finish ends the fill with the answer complete: it is stored, unless a cell
// changed, the store was flushed or another fill took the lead since the fill
// began, or there was no room; the waiters get it either way. It reports whether
// it was stored.
func (f *Fill) Finish() (stored bool) {
	waiters, first := f.end(func(sh *shard) {
		if stored = sh.put(f); stored {
			sh.stats.stored++
			return
		}
		sh.stats.notStored++
		f.store.cells.release(f.cells)
	})
	if !first {
		return false
	}
	f.stored = stored
	for _, w := range waiters {
		w.FillDone(f.buf, true, stored)
	}
	return stored
}

// Stored tells whether Finish stored the answer.
func (f *Fill) Stored() bool { return f.stored }

// Abandon ends the fill without an answer: the waiters must run the statement
// by themselves. It does nothing to a fill that has ended.
func (f *Fill) Abandon() {
	waiters, _ := f.end(func(sh *shard) {
		sh.stats.notStored++
		f.store.cells.release(f.cells)
	})
	for _, w := range waiters {
		w.FillDone(nil, false, false)
	}
}

// end takes the fill off the running ones and settles it under the shard's
// lock. A waiter either joined before and is in the list returned, or will not
// find the fill. first is false if the fill had ended before.
func (f *Fill) end(settle func(*shard)) (waiters []Waiter, first bool) {
	if f.over {
		return nil, false
	}
	f.over = true
	sh := f.shard
	sh.mu.Lock()
	if sh.running[f.hash] == f {
		delete(sh.running, f.hash)
	}
	waiters, f.waiters = f.waiters, nil
	sh.stats.fills--
	settle(sh)
	sh.mu.Unlock()
	f.discharge()
	return waiters, true
}

func (f *Fill) charge(n int64) bool {
	if !f.store.fillAcct.take(n, 0) {
		return false
	}
	f.charged += n
	return true
}

func (f *Fill) discharge() {
	f.store.fillAcct.give(f.charged)
	f.charged = 0
}
