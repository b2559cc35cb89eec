package planner

import "freshet/cache/canon"

// maxBlocks is how many blocks of a range an answer depends on, give or take
// one: a quarter of it at the least, for levels go in steps of four.
const maxBlocks = 20

// blocks works out which blocks of which width cover a range, at most so many;
// ok is false when a bound is not proven, nothing can lie between the bounds,
// or there is no room.
func (b *binding) blocks(s *scratch, r *keyRange, params []Param, room int) (level uint8, ok bool) {
	if r.between && !b.alike(r.sources[:], params) {
		return 0, false
	}
	low, ok1 := b.ordinal(s, &r.low, &r.sources[0], params)
	high, ok2 := b.ordinal(s, &r.high, &r.sources[1], params)
	if !ok1 || !ok2 || low > high {
		return 0, false
	}
	level, ok = levelOf(high-low, min(maxBlocks, room-1))
	if ok {
		s.first = low >> level
		s.blocks = int(high>>level-s.first) + 1
	}
	return level, ok
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
