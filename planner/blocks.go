package planner

import (
	"math"

	"freshet/cache/canon"
)

const (
	// maxWidths is of how many widths a range's blocks are: wide ones inside,
	// narrow ones at its ends, each a quarter of the one before. With blocks of
	// one width, an answer would be lost to changes of up to a fifth as many
	// rows outside the range as there are in it, and at the border of what is
	// changed most that is many times what changes the answer.
	maxWidths = 3
	// topBlocks is how many of the widest kind there are at most, endBlocks how
	// many of each other kind, at both ends together.
	topBlocks = 8
	endBlocks = 6
	// maxBlocks is how many blocks of one width an answer depends on where
	// there is no room for several, give or take one: a quarter of it at the
	// least, for levels go in steps of four.
	maxBlocks = 20
)

// piece is a row of blocks of one width that is a part of a range.
type piece struct {
	level  uint8
	first  uint64
	blocks int
	of     *variant // the shape with blocks of this width
}

// span works out the ordinals of a range's ends; ok is false when one is not
// proven, or nothing can lie between them.
func (b *binding) span(s *scratch, r *keyRange, params []Param) (low, high uint64, ok bool) {
	if r.between && !b.alike(r.sources[:], params) {
		return 0, 0, false
	}
	low, ok1 := b.ordinal(s, &r.low, &r.sources[0], params)
	high, ok2 := b.ordinal(s, &r.high, &r.sources[1], params)
	return low, high, ok1 && ok2 && low <= high
}

// cover covers the scratch's range by blocks of at most so many widths. With
// each block standing for product keys, and each width for a dependency more,
// there are not more than room; false if that cannot be. Every ordinal of the
// range is in exactly one block.
func (s *scratch) cover(product, room, widths int) bool {
	s.pieces = s.pieces[:0]
	if s.high > math.MaxUint64-topBlocks {
		widths = 1 // keeps what follows from running over
	}
	for ; widths > 1; widths-- {
		if product*(topBlocks+endBlocks*(widths-1))+widths > room {
			continue
		}
		if top, ok := levelOf(s.high-s.low, topBlocks); ok {
			s.peel(top-min(top, uint8(2*(widths-1))), top)
			return true
		}
	}
	level, ok := levelOf(s.high-s.low, min(maxBlocks, (room-1)/product-1))
	if ok {
		first := s.low >> level
		s.pieces = append(s.pieces, piece{level: level, first: first, blocks: int(s.high>>level-first) + 1})
	}
	return ok
}

// peel covers the range from its ends inwards: at each level what is left of
// whole blocks of the next one, at the top level the rest.
func (s *scratch) peel(level, top uint8) {
	first, last := s.low>>level, s.high>>level
	row := func(from, end uint64) {
		if from < end {
			s.pieces = append(s.pieces, piece{level: level, first: from, blocks: int(end - from)})
		}
	}
	for ; level < top; level += 2 {
		from, end := (first+3)&^3, (last+1)&^3 // of whole blocks of the next level
		if from >= end {
			break
		}
		row(first, from)
		row(end, last+1)
		first, last = from>>2, end>>2-1
	}
	row(first, last+1)
}

// levelOf returns the smallest even level at which a range whose ends are so
// far apart has at most most blocks, or one more, as it lies.
func levelOf(distance uint64, most int) (uint8, bool) {
	if most < 1 {
		return 0, false
	}
	for level := uint8(0); level < 64; level += 2 {
		if distance>>level < uint64(most) {
			return level, true
		}
	}
	return 0, false
}

// ordinal is a bound's place in the order of its column's values.
func (b *binding) ordinal(s *scratch, c *column, from *source, params []Param) (uint64, bool) {
	mark := len(s.bytes)
	bytes, ok := b.value(s.bytes, c, from, params)
	s.bytes = bytes[:mark]
	if !ok {
		return 0, false
	}
	return canon.Ordinal(c.compare.Kind, bytes[mark:])
}
