package planner

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// within tells in how many of the pieces' blocks an ordinal is.
func within(pieces []piece, ordinal uint64) (n int) {
	for _, p := range pieces {
		if block := ordinal >> p.level; block >= p.first && block-p.first < uint64(p.blocks) {
			n++
		}
	}
	return n
}

// TestCover: every ordinal of a range is in one block, none is far outside, and
// there is room for the blocks.
func TestCover(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	ends := []uint64{0, 1, 3, 4, 1<<63 - 1, 1 << 63, 1<<63 + 99, math.MaxUint64 - 8, math.MaxUint64 - 1, math.MaxUint64}
	finest := 0
	for range 20_000 {
		s := &scratch{low: rng.Uint64() >> rng.IntN(64)}
		if rng.IntN(4) == 0 {
			s.low = ends[rng.IntN(len(ends))]
		}
		s.high = s.low + min(rng.Uint64()>>rng.IntN(64), math.MaxUint64-s.low)
		product, room, widths := 1+rng.IntN(4), 2+rng.IntN(maxDeps), 1+rng.IntN(maxWidths)
		if !s.cover(product, room, widths) {
			if room > product*(maxBlocks+1)+1 {
				t.Fatalf("%d to %d: no blocks although there is room for %d", s.low, s.high, room)
			}
			continue
		}
		blocks, kinds, edge := 0, map[uint8]bool{}, uint64(math.MaxUint64)
		for _, p := range s.pieces {
			blocks += p.blocks
			kinds[p.level] = true
			edge = min(edge, uint64(1)<<p.level)
		}
		if blocks < 1 || product*blocks+len(kinds) > max(room, 2) || len(kinds) > widths {
			t.Fatalf("%d to %d, %d keys each: %d blocks of %d widths in a room of %d: %+v", s.low, s.high, product, blocks, len(kinds), room, s.pieces)
		}
		if len(kinds) == maxWidths {
			finest++
			// The ends' blocks are a thirty-second of the range or less.
			if s.high-s.low >= 16*edge*4 && edge > (s.high-s.low)/16 {
				t.Fatalf("%d to %d: blocks of %d at its ends", s.low, s.high, edge)
			}
		}
		for range 20 {
			in := s.low + rng.Uint64N(max(1, s.high-s.low))
			if within(s.pieces, in) != 1 || within(s.pieces, s.low) != 1 || within(s.pieces, s.high) != 1 {
				t.Fatalf("%d to %d: %d is not in one block: %+v", s.low, s.high, in, s.pieces)
			}
			if s.low >= edge && within(s.pieces, s.low-edge) != 0 || s.high <= math.MaxUint64-edge && within(s.pieces, s.high+edge) != 0 {
				t.Fatalf("%d to %d: more than a block outside: %+v", s.low, s.high, s.pieces)
			}
		}
	}
	if finest < 1000 {
		t.Errorf("only %d ranges had blocks of all widths", finest)
	}
}

// TestCoverIsExactForShortRanges: a hundred rows, as sysbench reads, are covered
// without one row more.
func TestCoverIsExactForShortRanges(t *testing.T) {
	for low := uint64(1 << 63); low < 1<<63+200; low++ {
		s := &scratch{low: low, high: low + 99}
		if !s.cover(1, maxDeps, maxWidths) {
			t.Fatal("not covered")
		}
		if within(s.pieces, low-1) != 0 || within(s.pieces, low+100) != 0 {
			t.Fatalf("a row outside is covered: %+v", s.pieces)
		}
	}
}
