package cache

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// A cellRecord is what only lockholders see of a cell. Its position is in an
// array of its own, so that what Readers load lies close together.
type cellRecord struct {
	dep  uint64
	refs uint32 // entries and running fills that name the cell; 0: it is free
	next uint32 // next of the bucket's chain, or of the free list; 0 ends either
}

const (
	cellBytes = 8 + int64(unsafe.Sizeof(cellRecord{})) // 24

	// cellChunk cells are taken at a time: whole pages of both arrays.
	cellChunk = 4096 / 8

	minHeads = 4096 / 4
)

// cells is the table of all cells: for each dependency of a live entry or a
// running fill, the position of its last change. Cells are numbered from 1.
//
// A cell's position never falls, not even when the cell is reused for another
// dependency: it then starts at the higher of what it had and what the recent
// changes say. A Reader that still holds a dead entry naming the cell therefore
// sees every change that it must see (Reader.Get), without cells having to wait
// for Readers. The price is that a dependency which gets a cell that changed
// after what is visible cannot be filled until visible catches up; the free
// list is a queue, so the cells reused first are those that were freed longest
// ago.
type cells struct {
	positions unsafe.Pointer // of uint64: atomic
	records   unsafe.Pointer // of cellRecord: under the cell's shard's lock
	recent    *recent
	acct      *account
	salt      uint64
	shift     uint // shard of a dep: dep * salt >> shift
	shards    []cellShard

	mu    sync.Mutex // guards taken, taken under a cell shard's lock
	taken uint32     // cells numbered below this belong to a shard
	limit uint32     // there are no cells numbered this or higher

	positionMem, recordMem memory
}

type cellShard struct {
	mu       sync.Mutex
	heads    []uint32 // chains' first cells; a power of two of them
	headMem  memory
	used     uint64 // cells with a dependency
	freeHead uint32
	freeTail uint32
	marked   uint64 // marks that found a cell
	missed   uint64 // marks that found none
	_        [64]byte
}

func (c *cells) init(acct *account, r *recent, shards int, salt uint64) error {
	limit := acct.limit / 3 / cellBytes / cellChunk * cellChunk
	limit = min(limit, 1<<32-cellChunk)
	var err error
	if c.positionMem, err = mapMemory(int(limit*8), false); err != nil {
		return err
	}
	if c.recordMem, err = mapMemory(int(limit*(cellBytes-8)), false); err != nil {
		return err
	}
	c.positions, c.records = c.positionMem.base(), c.recordMem.base()
	c.recent, c.acct, c.salt = r, acct, salt
	r.salt = salt
	c.shift = 64 - log2(shards)
	c.limit = uint32(limit)
	c.shards = make([]cellShard, shards)
	for i := range c.shards {
		if !c.shards[i].setHeads(acct, minHeads) {
			return errTooSmall
		}
	}
	return nil
}

func (c *cells) free() {
	for i := range c.shards {
		c.shards[i].headMem.free()
	}
	c.positionMem.free()
	c.recordMem.free()
}

func (c *cells) position(cell uint32) *uint64 {
	return (*uint64)(unsafe.Add(c.positions, uintptr(cell)*8))
}

// changedAt returns the position of the cell's last change. Anyone, any time.
func (c *cells) changedAt(cell uint32) Position {
	return Position(atomic.LoadUint64(c.position(cell)))
}

func (c *cells) record(cell uint32) *cellRecord {
	return (*cellRecord)(unsafe.Add(c.records, uintptr(cell)*unsafe.Sizeof(cellRecord{})))
}

func (c *cells) shard(dep uint64) *cellShard { return &c.shards[dep*c.salt>>c.shift] }

// head returns the chain that dep belongs to. The salt keeps what a client can
// choose (values become deps) from piling up in one chain.
func (sh *cellShard) head(dep, salt uint64) *uint32 {
	return &sh.heads[dep*salt>>16&uint64(len(sh.heads)-1)]
}

func (c *cells) find(sh *cellShard, dep uint64) uint32 {
	cell := *sh.head(dep, c.salt)
	for cell != 0 && c.record(cell).dep != dep {
		cell = c.record(cell).next
	}
	return cell
}

// claim takes a reference to the dependency's cell, making one if there is
// none; 0 if there is no memory for it.
//
// No change is lost between a claim and the feed. Let a change of dep at
// position p be marked while a fill claims dep. Mark does
//
//	M1  recent[dep] = p
//	M2  look the cell up; if it is there, its position = p
//
// and a claim that makes the cell does
//
//	C1  put the cell in the table
//	C2  the cell's position = the higher of what it had and recent[dep]
//
// then the fill notes filledAt = visible (C3). If M2 finds the cell, it sets the
// position. If it does not, M2 came before C1, so M1 came before C2, which reads
// p or a later position. Either way, once both are done, the position is at
// least p, and the entry is invalid if filledAt < p. If filledAt >= p, the
// change could be read on the upstream before the fill's statement was sent, so
// the answer has it. A claim that finds the cell has nothing to do: M2 has found
// it or will. With C2 before C1, M1 and M2 could both fall between them.
//
// (All four are under the cell shard's lock, which has both of one pair before
// both of the other; the argument would need no more than their order.)
func (c *cells) claim(dep uint64) uint32 {
	sh := c.shard(dep)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if cell := c.find(sh, dep); cell != 0 {
		c.record(cell).refs++
		return cell
	}
	cell := c.unused(sh)
	if cell == 0 {
		return 0
	}
	if sh.used++; sh.used > 2*uint64(len(sh.heads)) {
		c.growHeads(sh)
	}
	head := sh.head(dep, c.salt)
	*c.record(cell) = cellRecord{dep: dep, refs: 1, next: *head}
	*head = cell
	c.raise(cell, c.recent.at(dep))
	return cell
}

// raise lifts a cell's position to p if it is lower. Under the cell shard's
// lock: nobody else writes the position.
func (c *cells) raise(cell uint32, p Position) {
	if word := c.position(cell); atomic.LoadUint64(word) < uint64(p) {
		atomic.StoreUint64(word, uint64(p))
	}
}

// mark is steps M1 and M2 of claim.
func (c *cells) mark(dep uint64, p Position) {
	sh := c.shard(dep)
	sh.mu.Lock()
	c.recent.mark(dep, p)
	if cell := c.find(sh, dep); cell != 0 {
		sh.marked++
		c.raise(cell, p)
	} else {
		sh.missed++
	}
	sh.mu.Unlock()
}

// release gives up one reference to each cell.
func (c *cells) release(list []uint32) {
	for _, cell := range list {
		// The dependency stays as it is while we hold a reference.
		dep := c.record(cell).dep
		sh := c.shard(dep)
		sh.mu.Lock()
		if rec := c.record(cell); rec.refs > 1 {
			rec.refs--
		} else {
			c.unlink(sh, cell, dep)
		}
		sh.mu.Unlock()
	}
}

// unlink takes the cell out of its chain and puts it at the end of the free
// list. Its position stays.
func (c *cells) unlink(sh *cellShard, cell uint32, dep uint64) {
	link := sh.head(dep, c.salt)
	for *link != cell {
		link = &c.record(*link).next
	}
	*link = c.record(cell).next
	sh.used--
	c.pushFree(sh, cell)
}

func (c *cells) pushFree(sh *cellShard, cell uint32) {
	*c.record(cell) = cellRecord{}
	if sh.freeTail == 0 {
		sh.freeHead = cell
	} else {
		c.record(sh.freeTail).next = cell
	}
	sh.freeTail = cell
}

// unused returns a cell that nobody names, or 0.
func (c *cells) unused(sh *cellShard) uint32 {
	if sh.freeHead == 0 && !c.takeChunk(sh) {
		return 0
	}
	cell := sh.freeHead
	if sh.freeHead = c.record(cell).next; sh.freeHead == 0 {
		sh.freeTail = 0
	}
	return cell
}

// takeChunk adds a chunk of cells that were never used to the free list.
func (c *cells) takeChunk(sh *cellShard) bool {
	c.mu.Lock()
	first := c.taken
	ok := first+cellChunk <= c.limit && c.acct.take(cellChunk*cellBytes, 0)
	if ok {
		c.taken += cellChunk
	}
	c.mu.Unlock()
	if !ok {
		return false
	}
	for cell := first; cell < first+cellChunk; cell++ {
		if cell != 0 { // 0 is no cell
			c.pushFree(sh, cell)
		}
	}
	return true
}

func (sh *cellShard) setHeads(acct *account, n int) bool {
	if !acct.take(int64(n)*4, 0) {
		return false
	}
	mem, err := mapMemory(n*4, false)
	if err != nil {
		acct.give(int64(n) * 4)
		return false
	}
	sh.headMem = mem
	sh.heads = unsafe.Slice((*uint32)(mem.base()), n)
	return true
}

// growHeads doubles the shard's chains. Without memory for it they get longer.
func (c *cells) growHeads(sh *cellShard) {
	old, oldMem := sh.heads, sh.headMem
	if !sh.setHeads(c.acct, 2*len(old)) {
		return
	}
	for _, cell := range old {
		for cell != 0 {
			rec := c.record(cell)
			next := rec.next
			head := sh.head(rec.dep, c.salt)
			rec.next, *head = *head, cell
			cell = next
		}
	}
	oldMem.free()
	c.acct.give(int64(len(old)) * 4)
}

// recent holds, for each of 65,536 classes of dependencies, the position of the
// latest change of any of them, so that a cell can be made after the change.
// Two that share a class cost a needless wait for visible, never a wrong answer.
//
// A class belongs to one cell shard, for the number of either is the beginning
// of the same product, and is under its lock: a mark takes one lock and waits
// for the memory of the class and of the cell together.
type recent struct {
	slots []uint64
	salt  uint64 // the cells'
}

const (
	recentBits  = 16
	recentSlots = 1 << recentBits
	recentBytes = recentSlots * 8
)

func (r *recent) class(dep uint64) uint64 { return dep * r.salt >> (64 - recentBits) }

func (r *recent) slot(dep uint64) *uint64 { return &r.slots[r.class(dep)] }

func (r *recent) at(dep uint64) Position { return Position(*r.slot(dep)) }

// mark raises the class's position to p.
func (r *recent) mark(dep uint64, p Position) {
	if slot := r.slot(dep); *slot < uint64(p) {
		*slot = uint64(p)
	}
}
