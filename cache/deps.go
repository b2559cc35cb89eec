package cache

import (
	"encoding/binary"
	"math/bits"

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

// ValueHash is the hash of one canonical value (see package canon). A value
// that several shapes compare is hashed once.
type ValueHash uint64

// HashValue hashes a canonical value.
func HashValue(canonical []byte) ValueHash { return ValueHash(xxhash.Sum64(canonical)) }

// A KeyHasher builds the dependency on one key of a shape: Begin, then Value
// once for each compared column in the shape's order, then Dep. A copy of one
// continues by itself.
//
// Each step is a bijection of the state for any value and of the value's hash
// for any state, so two keys collide only as their values' hashes do, or as
// two words of 64 bits would by chance. Values are hashed one by one, so
// ("ab","c") and ("a","bc") differ.
type KeyHasher struct{ state uint64 }

// The odd constants are those of xxHash64.
const (
	hashPrime1 = 0x9E3779B185EBCA87
	hashPrime2 = 0xC2B2AE3D27D4EB4F
	hashPrime3 = 0x165667B19E3779F9
)

// Begin starts a key of shape s.
func (h *KeyHasher) Begin(s ShapeID) {
	var b [5]byte
	b[0] = depKey
	binary.LittleEndian.PutUint32(b[1:], uint32(s))
	h.state = xxhash.Sum64(b[:])
}

// Value adds one canonical value.
func (h *KeyHasher) Value(canonical []byte) { h.Hashed(HashValue(canonical)) }

// Hashed adds one canonical value whose hash is known.
func (h *KeyHasher) Hashed(v ValueHash) {
	h.state = (bits.RotateLeft64(h.state, 27) ^ uint64(v)) * hashPrime1
}

// Dep returns the dependency. Every bit of it depends on every bit of the state.
func (h *KeyHasher) Dep() Dep {
	d := h.state
	d = (d ^ d>>33) * hashPrime2
	d = (d ^ d>>29) * hashPrime3
	return Dep(d ^ d>>32)
}
