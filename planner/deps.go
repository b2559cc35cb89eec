package planner

import (
	"sync"

	"freshet/cache"
	"freshet/cache/canon"
	"freshet/planner/query"
	"freshet/planner/scan"
)

// maxKeys bounds the keys of one answer (the product of its IN lists); beyond,
// the whole table is cheaper to depend on.
const maxKeys = 64

// binding computes the dependencies of one text's runs.
type binding struct {
	*template
	slots    []scan.Slot
	literals []scan.Literal
	declared []uint32
	// fixed are the keys' dependencies when no client parameter has a part in
	// them; nil otherwise.
	fixed []cache.Dep
	// times are the client parameters that could be read as a time that moves on.
	times []int
}

// deps implements depMaker.
func (b *binding) deps(dst []cache.Dep, params []Param) ([]cache.Dep, cache.Position, bool) {
	var since cache.Position
	start := len(dst)
	if b.movesOn(params) {
		return dst, 0, false
	}
	for i := range b.tables {
		f := &b.tables[i]
		position, up := f.table.Since()
		if !up || f.table.Gone() {
			return dst[:start], 0, false
		}
		since = max(since, position)
		if !f.byKey {
			dst = append(dst, f.dep)
		}
	}
	if b.keyed == nil {
		return dst, since, true
	}
	position, up := b.keyed.shape.Since()
	if !up {
		return append(dst, b.keyed.whole), since, true
	}
	if b.fixed != nil {
		dst = append(append(dst, b.keyed.all), b.fixed...)
		return dst, max(since, position), true
	}
	mark := len(dst)
	dst, ok := b.keys(append(dst, b.keyed.all), params)
	if !ok {
		return append(dst[:mark], b.keyed.whole), since, true
	}
	return dst, max(since, position), true
}

// movesOn tells whether a parameter may be read as the current time.
func (b *binding) movesOn(params []Param) bool {
	for _, i := range b.times {
		if i >= len(params) {
			return true
		}
		// Binary text is text still.
		if p := &params[i]; !p.Null && query.TimeWord(p.Data) {
			return true
		}
	}
	if b.ofDay {
		for i := range params {
			if canon.ParamClassOf(params[i].Type) == canon.ClassDate {
				return true
			}
		}
	}
	return false
}

// timeless tells whether a declared parameter type cannot be read as a time.
func timeless(declared []uint32, i int) bool {
	if i >= len(declared) {
		return false
	}
	switch declared[i] {
	case canon.OIDBool, canon.OIDBytea, canon.OIDInt2, canon.OIDInt4, canon.OIDInt8, canon.OIDNumeric, canon.OIDUUID:
		return true
	}
	// A declared text may still be cast to a date by the statement.
	return false
}

// constant tells whether all compared values are literals.
func (b *binding) constant() bool {
	for _, c := range b.keyed.columns {
		for _, s := range c.sources {
			if b.slots[s.slot] >= 0 {
				return false
			}
		}
	}
	return true
}

// fix computes the keys once if all compared values are literals.
func (b *binding) fix() {
	if b.keyed == nil || !b.constant() {
		return
	}
	if keys, ok := b.keys(nil, nil); ok {
		b.fixed = keys
	}
}

// scratch is the room that keys needs, reused.
type scratch struct {
	hasher cache.KeyHasher
	bytes  []byte
	ends   []int // of the canonical values in bytes, column by column
	pick   []int // the value picked of each column
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// keys appends the dependency on every combination of the compared values; ok
// is false when one's equality is not proven.
func (b *binding) keys(dst []cache.Dep, params []Param) (deps []cache.Dep, ok bool) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.bytes, s.ends, s.pick = s.bytes[:0], s.ends[:0], s.pick[:0]
	for i := range b.keyed.columns {
		c := &b.keyed.columns[i]
		if !b.alike(c, params) {
			return dst, false
		}
		for j := range c.sources {
			if s.bytes, ok = b.value(s.bytes, c, &c.sources[j], params); !ok {
				return dst, false
			}
			s.ends = append(s.ends, len(s.bytes))
		}
		s.pick = append(s.pick, 0)
	}
	for {
		s.hasher.Begin(b.keyed.shape.ID)
		first := 0
		for i, c := range b.keyed.columns {
			s.hasher.Value(s.at(first + s.pick[i]))
			first += len(c.sources)
		}
		dst = append(dst, s.hasher.Dep())
		if !b.next(s.pick) {
			return dst, true
		}
	}
}

// at returns the i-th canonical value.
func (s *scratch) at(i int) []byte {
	if i == 0 {
		return s.bytes[:s.ends[0]]
	}
	return s.bytes[s.ends[i-1]:s.ends[i]]
}

// next moves on to the next combination; false after the last.
func (b *binding) next(pick []int) bool {
	for i := range pick {
		if pick[i]++; pick[i] < len(b.keyed.columns[i].sources) {
			return true
		}
		pick[i] = 0
	}
	return false
}
