package cache

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// Position is a place in the upstream's log as one ordered number. The feed
// makes it (PostgreSQL: LSN; MySQL and MariaDB: file number and offset) and
// keeps it rising even when the upstream's own numbering starts again.
type Position uint64

// Dep is the full 64-bit hash of one dependency: a part of a table that an
// answer was read from. Two that collide share a cell, which costs a needless
// miss and never a wrong answer.
type Dep uint64

// TableID and ShapeID are handed out by the feed's tracker and never reused
// while the process lives.
type (
	TableID uint32
	ShapeID uint32
)

// The first byte of what is hashed keeps the kinds of dependency apart.
const (
	depTable byte = 't'
	depShape byte = 's'
	depKey   byte = 'k'
)

// DepOfTable names the whole of a table: any change to it, row or definition.
func DepOfTable(t TableID) Dep { return depOfID(depTable, uint32(t)) }

// DepOfShape names every answer of one shape. The feed marks it when a change
// cannot be narrowed (an image lacks the columns, a value's equality is not
// proven, the table's definition changed).
func DepOfShape(s ShapeID) Dep { return depOfID(depShape, uint32(s)) }

func depOfID(kind byte, id uint32) Dep {
	var b [5]byte
	b[0] = kind
	binary.LittleEndian.PutUint32(b[1:], id)
	return Dep(xxhash.Sum64(b[:]))
}

// A KeyHasher builds the dependency on one key of a shape: Begin, then Value
// once for each compared column in the shape's order, then Dep. It keeps a
// buffer, so one that is reused does not allocate. Lengths are written before
// values, so ("ab","c") and ("a","bc") differ.
type KeyHasher struct{ buf []byte }

// Begin starts a key of shape s.
func (h *KeyHasher) Begin(s ShapeID) {
	h.buf = append(h.buf[:0], depKey)
	h.buf = binary.LittleEndian.AppendUint32(h.buf, uint32(s))
}

// Value adds one canonical value (see package canon).
func (h *KeyHasher) Value(canonical []byte) {
	h.buf = binary.LittleEndian.AppendUint32(h.buf, uint32(len(canonical)))
	h.buf = append(h.buf, canonical...)
}

// Dep returns the dependency.
func (h *KeyHasher) Dep() Dep { return Dep(xxhash.Sum64(h.buf)) }
