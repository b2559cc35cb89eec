package feed

import (
	"encoding/binary"

	"freshet/cache"
	"freshet/cache/canon"
	"freshet/cache/feed/row"
)

// layout maps a table's columns to those of a row image and makes values
// canonical. It belongs to one pair of table map and definition.
type layout struct {
	// at[i] is the place in the image of the table's column i, -1 if it is not
	// there.
	at []int
	// canonical appends the canonical form of column i, from a value as the
	// stream has it; ok is false when its equality is not proven.
	canonical func(dst []byte, i int, raw []byte) ([]byte, bool)
}

// rowState is what is known of one changed row, each part worked out when it
// is first asked for. It is reused from row to row.
type rowState struct {
	plan   *rowPlan
	layout *layout
	kind   row.Kind
	images *row.Images

	compared bool     // changed is there
	changed  []uint64 // the columns of plan.read that may have changed
	values   []rowValues
	scratch  []byte
}

// rowValues are a compared column's values before and after the change.
type rowValues [2]rowValue

const (
	before = 0
	after  = 1
)

type rowValue struct {
	known   knowledge
	ordered bool // ordinal is there
	hash    cache.ValueHash
	ordinal uint64
}

// knowledge is what is known of a value.
type knowledge uint8

const (
	notAsked  knowledge = iota
	isNull              // no comparison finds the row
	isValue             // it has a canonical form
	isUnknown           // it is not in the log, or its equality is not proven
)

func (r *rowState) begin(p *rowPlan, kind row.Kind, l *layout, images *row.Images) {
	r.plan, r.kind, r.layout, r.images, r.compared = p, kind, l, images, false
	if cap(r.values) < len(p.compared) {
		r.values = make([]rowValues, len(p.compared))
	}
	r.values = r.values[:len(p.compared)]
	clear(r.values)
}

// touches tells whether the change may be seen through what the shape reads. A
// row that comes or goes always is.
func (r *rowState) touches(sp *shapePlan) bool {
	if r.kind != row.Update || sp.reads == nil {
		return true
	}
	if !r.compared {
		r.compare()
	}
	for i, word := range sp.reads {
		if word&r.changed[i] != 0 {
			return true
		}
	}
	return false
}

// compare works out which of the read columns may have changed.
func (r *rowState) compare() {
	r.compared = true
	r.changed = append(r.changed[:0], make([]uint64, r.plan.words)...)
	for i, column := range r.plan.read {
		if !r.same(column) {
			r.changed[i/64] |= 1 << (i % 64)
		}
	}
}

// same tells whether an update is proven to have left a column as it was.
func (r *rowState) same(column int) bool {
	at := r.layout.at[column]
	if at < 0 || at >= len(r.images.New) {
		return false
	}
	before, after := &r.images.Old[at], &r.images.New[at]
	switch after.State {
	case row.Unchanged:
		return true
	case row.Absent:
		// The new image of an update holds whatever was written, by the
		// statement, a trigger or a default (MySQL manual, binlog_row_image);
		// MariaDB leaves out what is computed from that.
		return r.plan.derived != nil && !r.plan.derived[column]
	case row.Null:
		return before.State == row.Null
	case row.Present:
		return before.State == row.Present && string(before.Raw) == string(after.Raw)
	}
	return false
}

// value returns what is known of a compared column on one side of the change.
func (r *rowState) value(i, side int) *rowValue {
	v := &r.values[i][side]
	if v.known == notAsked {
		r.learn(i, side, v)
	}
	return v
}

func (r *rowState) learn(i, side int, v *rowValue) {
	c := &r.plan.compared[i]
	v.known = isUnknown
	at := r.layout.at[c.column]
	if at < 0 || at >= len(r.images.New) {
		return
	}
	image := &r.images.Old[at]
	if side == after {
		if r.kind == row.Update && r.same(c.column) {
			*v = *r.value(i, before)
			return
		}
		image = &r.images.New[at]
	}
	switch image.State {
	case row.Null:
		v.known = isNull
	case row.Present:
		r.canonical(c, image.Raw, v)
	}
}

func (r *rowState) canonical(c *comparedColumn, raw []byte, v *rowValue) {
	canonical, ok := r.layout.canonical(r.scratch[:0], c.column, raw)
	r.scratch = canonical
	if !ok {
		return
	}
	v.known, v.hash = isValue, cache.HashValue(canonical)
	if c.ranged {
		v.ordinal, v.ordered = canon.Ordinal(c.kind, canonical)
	}
}

// key hashes a shape's columns on one side of the change. found is false when
// no comparison finds the row, for one of them is NULL, or when ok is: one of
// them is not known, or its equality or order not proven.
func (r *rowState) key(sp *shapePlan, side int) (dep cache.Dep, found, ok bool) {
	hash, ok := sp.begun, true
	for _, i := range sp.equal {
		v := r.value(i, side)
		switch v.known {
		case isNull:
			return 0, false, true
		case isUnknown:
			ok = false
		}
		hash.Hashed(v.hash)
	}
	if sp.block >= 0 {
		v := r.value(sp.block, side)
		if v.known == isNull {
			return 0, false, true
		}
		ok = ok && v.ordered
		var block [8]byte
		binary.BigEndian.PutUint64(block[:], v.ordinal>>sp.level)
		hash.Value(block[:])
	}
	return hash.Dep(), ok, ok
}
