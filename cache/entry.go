package cache

import (
	"sync/atomic"
	"unsafe"
)

// Limits of an entry's parts, from the widths in entry.lens.
const (
	MaxKeyBytes = 64 << 10
	MaxDeps     = 1<<12 - 1
)

// An entry is the head of one stored answer as it lies in a segment:
//
//	offset  bytes
//	     0      8  filledAt
//	     8      8  lens: value length << 32 | key length << 12 | number of cells
//	    16     16  meta
//	    32      4  word: epoch << 2 | hits; the only part that changes
//	    36    4*n  cell numbers
//	             …  key, value, then padding to a multiple of 8
//
// With two cells this is 44 bytes, and at most 7 of padding. All but word is
// written before the entry's slot is published in an index and then stays as
// it is until no Reader can hold the entry (see reclaimer), so it is read
// without care.
type entry struct {
	filledAt Position
	lens     uint64
	meta     [2]uint64
	word     uint32
}

const (
	entryHead   = 36
	entryAlign  = 8
	hitBits     = 2
	hitMax      = 1<<hitBits - 1
	epochMax    = 1<<(32-hitBits) - 1
	maxValueLen = 1 << 30
)

func entrySize(cells, key, value int) uint64 {
	return (uint64(entryHead+4*cells+key+value) + entryAlign - 1) &^ (entryAlign - 1)
}

func (e *entry) cellCount() int { return int(e.lens & MaxDeps) }
func (e *entry) keyLen() int    { return int(e.lens >> 12 & (1<<20 - 1)) }
func (e *entry) valueLen() int  { return int(e.lens >> 32) }
func (e *entry) size() uint64   { return entrySize(e.cellCount(), e.keyLen(), e.valueLen()) }

func (e *entry) at(off int) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(e), off) }

func (e *entry) cells() []uint32 {
	return unsafe.Slice((*uint32)(e.at(entryHead)), e.cellCount())
}

func (e *entry) key() []byte {
	return unsafe.Slice((*byte)(e.at(entryHead+4*e.cellCount())), e.keyLen())
}

func (e *entry) value() []byte {
	off := entryHead + 4*e.cellCount() + e.keyLen()
	n := e.valueLen()
	return unsafe.Slice((*byte)(e.at(off)), n)[:n:n]
}

// loadWord returns the entry's epoch and its hits.
func (e *entry) loadWord() (epoch, hits uint32) {
	w := atomic.LoadUint32(&e.word)
	return w >> hitBits, w & hitMax
}

// hit counts one more use, up to hitMax. Readers may overwrite each other's
// counts, which loses a hit; they cannot hurt the epoch, because all write the
// same one. Once the count is full a hit writes nothing, so the line stays
// shared between the cores.
func (e *entry) hit(epoch, hits uint32) {
	if hits < hitMax {
		atomic.StoreUint32(&e.word, epoch<<hitBits|(hits+1))
	}
}

// write fills in an entry that nobody else can see yet.
func (e *entry) write(f *Fill) {
	e.filledAt = f.filledAt
	e.lens = uint64(len(f.buf))<<32 | uint64(len(f.key))<<12 | uint64(len(f.cells))
	e.meta = f.meta
	e.word = f.epoch << hitBits
	if f.joined {
		e.word++ // somebody else has used it already
	}
	copy(e.cells(), f.cells)
	copy(e.key(), f.key)
	copy(e.value(), f.buf)
}

// copyTo writes the entry to a place that nobody else can see yet, with
// another count of hits. The word is not copied with the rest, since Readers
// may be writing to it.
func (e *entry) copyTo(dst *entry, epoch, hits uint32) {
	dst.filledAt = e.filledAt
	dst.lens = e.lens
	dst.meta = e.meta
	dst.word = epoch<<hitBits | hits
	n := int(e.size()) - entryHead
	copy(unsafe.Slice((*byte)(dst.at(entryHead)), n), unsafe.Slice((*byte)(e.at(entryHead)), n))
}
