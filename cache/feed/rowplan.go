package feed

import (
	"slices"

	"freshet/cache"
	"freshet/cache/canon"
)

// rowPlan is what the rows of a table must be asked for all its shapes
// together, so that a row costs little more for many shapes than for one: each
// column is compared with what it was, made canonical and hashed once. It is
// made with the view and never changed.
type rowPlan struct {
	read     []int // the columns that shapes name as read
	compared []comparedColumn
	shapes   []shapePlan
	words    int // of a set of read
	// derived are the columns whose absence from an image says nothing; nil: all.
	derived []bool
}

// comparedColumn is a column that some shape compares, by equality or by block.
type comparedColumn struct {
	column int
	kind   canon.Kind
	ranged bool // some shape wants its ordinal
}

// shapePlan is a shape in terms of its rowPlan.
type shapePlan struct {
	equal []int    // into compared
	block int      // into compared, -1
	level uint8    // of block
	reads []uint64 // a set of rowPlan.read; nil: whatever there is
	begun cache.KeyHasher
	key   cache.Dep // the one key of a shape that compares nothing
	all   cache.Dep
}

// single tells whether all rows have one key.
func (sp *shapePlan) single() bool { return len(sp.equal) == 0 && sp.block < 0 }

// newRowPlan is called under Tracker.mu.
func newRowPlan(tb *Table, shapes []*Shape) *rowPlan {
	spec := &tb.Spec
	p := &rowPlan{derived: tb.facts.derived}
	for _, sh := range shapes {
		p.read = append(p.read, sh.spec.Reads...)
	}
	slices.Sort(p.read)
	p.read = slices.Compact(p.read)
	p.words = (len(p.read) + 63) / 64
	for _, sh := range shapes {
		sp := shapePlan{block: -1, level: sh.spec.Level, all: cache.DepOfShape(sh.ID)}
		for _, column := range sh.spec.Equal {
			sp.equal = append(sp.equal, p.compare(spec, column))
		}
		if sh.spec.Range >= 0 {
			sp.block = p.compare(spec, sh.spec.Range)
			p.compared[sp.block].ranged = true
		}
		if sh.spec.Reads != nil {
			sp.reads = make([]uint64, p.words)
			for _, column := range sh.spec.Reads {
				at, _ := slices.BinarySearch(p.read, column)
				sp.reads[at/64] |= 1 << (at % 64)
			}
		}
		sp.begun.Begin(sh.ID)
		sp.key = sp.begun.Dep()
		p.shapes = append(p.shapes, sp)
	}
	return p
}

// compare returns the place of a column in compared.
func (p *rowPlan) compare(spec *TableSpec, column int) int {
	at := slices.IndexFunc(p.compared, func(c comparedColumn) bool { return c.column == column })
	if at < 0 {
		at = len(p.compared)
		p.compared = append(p.compared, comparedColumn{column: column, kind: spec.Columns[column].Kind})
	}
	return at
}
