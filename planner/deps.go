package planner

import (
	"encoding/binary"
	"slices"
	"sync"

	"freshet/cache"
	"freshet/cache/canon"
	"freshet/planner/query"
	"freshet/planner/scan"
)

// binding computes the dependencies of one text's runs.
type binding struct {
	*template
	follower Follower
	slots    []scan.Slot
	literals []scan.Literal
	declared []uint32
	// fixed are, for each reference, the keys of all runs, if no client
	// parameter has a part in them.
	fixed []fixed
	// times are the client parameters that could be read as a time that moves on.
	times []int
}

// fixed is what a reference's literals come to; variant is nil where there are
// parameters.
type fixed struct {
	variant *variant
	keys    []cache.Dep
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
	}
	for i, ref := range b.refs {
		// Every reference still to come needs room for two.
		room := maxDeps - (len(dst) - start) - 2*(len(b.refs)-1-i)
		var position cache.Position
		var ok bool
		if dst, position, ok = b.narrowed(dst, start, i, params, room); ok {
			since = max(since, position)
			continue
		}
		dst = add(dst, start, b.tables[ref.table].dep)
	}
	return dst, since, true
}

// add appends a dependency that is not there yet.
func add(dst []cache.Dep, start int, dep cache.Dep) []cache.Dep {
	if slices.Contains(dst[start:], dep) {
		return dst
	}
	return append(dst, dep)
}

// narrowed appends the dependencies of one reference, not more than room; ok is
// false when it has to depend on the whole table.
func (b *binding) narrowed(dst []cache.Dep, start, i int, params []Param, room int) (deps []cache.Dep, since cache.Position, ok bool) {
	ref := b.refs[i]
	if ref.whole || room < 2 {
		return dst, 0, false
	}
	if f := &b.fixed[i]; f.variant != nil && len(f.keys) < room {
		if since, ok = f.variant.up(); ok {
			dst = add(dst, start, f.variant.all)
			for _, key := range f.keys {
				dst = add(dst, start, key)
			}
		}
		return dst, since, ok
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	n := b.measure(s, ref, params, room-1)
	v := b.variant(ref, n)
	if v == nil {
		return dst, 0, false
	}
	if since, ok = v.up(); ok {
		dst = s.keys(add(dst, start, v.all), start, v)
	}
	return dst, since, ok
}

// variant is reference.variant, nil when what the run can use narrows nothing.
func (b *binding) variant(ref *reference, n narrowing) *variant {
	if n == (narrowing{}) && ref.reads == nil {
		return nil
	}
	return ref.variant(b.follower, n)
}

// up tells from when on the feed has hashed changes for the shape.
func (v *variant) up() (cache.Position, bool) {
	if v.shape == nil {
		return 0, false
	}
	return v.shape.Since()
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

// constant tells whether all compared values of a reference are literals.
func (b *binding) constant(ref *reference) bool {
	literal := func(s source) bool { return b.slots[s.slot] < 0 }
	for i := range ref.equal {
		for _, s := range ref.equal[i].sources {
			if !literal(s) {
				return false
			}
		}
	}
	return ref.ranged == nil || literal(ref.ranged.sources[0]) && literal(ref.ranged.sources[1])
}

// fix computes the keys of the references that only literals have a part in.
func (b *binding) fix() {
	b.fixed = make([]fixed, len(b.refs))
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	for i, ref := range b.refs {
		if ref.whole || !b.constant(ref) {
			continue
		}
		if v := b.variant(ref, b.measure(s, ref, nil, maxKeys-2*(len(b.refs)-1))); v != nil && v.shape != nil {
			b.fixed[i] = fixed{v, s.keys(nil, 0, v)}
		}
	}
}

// usable is what the runs of a text can use of a reference: literals whose
// equality is not proven narrow none.
func (b *binding) usable(i int) narrowing {
	switch v := b.fixed[i].variant; {
	case v != nil:
		return v.narrowing
	case b.constant(b.refs[i]):
		return narrowing{}
	}
	return b.refs[i].full()
}

// proven tells whether all literals have their part in narrowing.
func (b *binding) proven() bool {
	for i, ref := range b.refs {
		n, full := b.usable(i), ref.full()
		if n.mask != full.mask || n.ranged != full.ranged {
			return false
		}
	}
	return true
}

// scratch is the room that a reference's values need, reused.
type scratch struct {
	hasher  cache.KeyHasher
	bytes   []byte
	ends    []int // of the canonical values in bytes
	columns []valued
	// first and blocks are the range's.
	first  uint64
	blocks int
}

// valued is a column whose values are proven.
type valued struct {
	index int // in reference.equal
	first int // of its values, in ends
	count int
	pick  int
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// measure works out the values of a run, as far as they are proven, and what
// they narrow the reference to with at most so many keys.
func (b *binding) measure(s *scratch, ref *reference, params []Param, keys int) narrowing {
	s.bytes, s.ends, s.columns, s.blocks = s.bytes[:0], s.ends[:0], s.columns[:0], 0
	var n narrowing
	if keys < 1 {
		return n
	}
	product := 1
	for i := range ref.equal {
		if b.values(s, i, &ref.equal[i], params) {
			product *= s.columns[len(s.columns)-1].count
		}
	}
	for product > keys { // the longest list narrows least
		longest := slices.MaxFunc(s.columns, func(a, b valued) int { return a.count - b.count })
		product /= longest.count
		s.columns = slices.DeleteFunc(s.columns, func(v valued) bool { return v == longest })
	}
	for _, v := range s.columns {
		n.mask |= 1 << v.index
	}
	if ref.ranged != nil {
		n.level, n.ranged = b.blocks(s, ref.ranged, params, keys/product)
	}
	return n
}

// values appends the canonical values of one compared column; false when one's
// equality is not proven, or there is none.
func (b *binding) values(s *scratch, index int, c *keyColumn, params []Param) bool {
	if !b.alike(c.sources, params) {
		return false
	}
	first := len(s.ends)
	ok := true
	for i := 0; i < len(c.sources) && ok; i++ {
		if c.sources[i].array {
			ok = b.elements(s, &c.of, &c.sources[i], params)
		} else if s.bytes, ok = b.value(s.bytes, &c.of, &c.sources[i], params); ok {
			s.ends = append(s.ends, len(s.bytes))
		}
	}
	if !ok || len(s.ends) == first {
		s.ends = s.ends[:first]
		s.bytes = s.bytes[:s.end()]
		return false
	}
	s.columns = append(s.columns, valued{index: index, first: first, count: len(s.ends) - first})
	return true
}

// end is where the last value ends.
func (s *scratch) end() int {
	if len(s.ends) == 0 {
		return 0
	}
	return s.ends[len(s.ends)-1]
}

// at returns the i-th canonical value.
func (s *scratch) at(i int) []byte {
	if i == 0 {
		return s.bytes[:s.ends[0]]
	}
	return s.bytes[s.ends[i-1]:s.ends[i]]
}

// keys appends the dependency on every combination of the values and blocks
// measured. The feed hashes a row in the same order: the compared columns, then
// eight bytes of the block's number.
func (s *scratch) keys(dst []cache.Dep, start int, v *variant) []cache.Dep {
	for {
		for block := range max(s.blocks, 1) {
			s.hasher.Begin(v.shape.ID)
			for i := range s.columns {
				s.hasher.Value(s.at(s.columns[i].first + s.columns[i].pick))
			}
			if v.ranged {
				mark := len(s.bytes)
				s.bytes = binary.BigEndian.AppendUint64(s.bytes, s.first+uint64(block))
				s.hasher.Value(s.bytes[mark:])
				s.bytes = s.bytes[:mark]
			}
			dst = add(dst, start, s.hasher.Dep())
		}
		if !s.next() {
			return dst
		}
	}
}

// next moves on to the next combination; false after the last.
func (s *scratch) next() bool {
	for i := range s.columns {
		v := &s.columns[i]
		if v.pick++; v.pick < v.count {
			return true
		}
		v.pick = 0
	}
	return false
}
