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
	// held tells that checks depend on client parameters.
	held bool
}

// fixed is what a reference's literals come to; there are no variants where
// there are parameters.
type fixed struct {
	variants []*variant
	keys     []cache.Dep
}

// deps implements depMaker.
func (b *binding) deps(dst []cache.Dep, params []Param) ([]cache.Dep, cache.Position, bool) {
	var since cache.Position
	start := len(dst)
	if b.refuses(params) != "" {
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
	if f := &b.fixed[i]; len(f.variants) > 0 && len(f.keys)+len(f.variants) <= room {
		if dst, since, ok = up(dst, start, f.variants); ok {
			for _, key := range f.keys {
				dst = add(dst, start, key)
			}
		}
		return dst, since, ok
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	if !b.shaped(s, ref, b.measure(s, ref, params, room)) {
		return dst, 0, false
	}
	if dst, since, ok = up(dst, start, s.variants); ok {
		dst = s.keys(dst, start)
	}
	return dst, since, ok
}

// shaped finds the shapes of what was measured: one, or with a range one for
// each width of its blocks. Where the table has too many shapes for that, the
// blocks are made of one width.
func (b *binding) shaped(s *scratch, ref *reference, n narrowing) bool {
	s.variants = s.variants[:0]
	if !n.ranged {
		v := b.variant(ref, n)
		if v == nil || v.shape == nil {
			return false
		}
		s.variants = append(s.variants, v)
		return true
	}
	if b.widths(s, ref, n) {
		return true
	}
	return s.cover(s.product, s.room, 1) && b.widths(s, ref, n)
}

// widths finds the shape of each of the range's pieces.
func (b *binding) widths(s *scratch, ref *reference, n narrowing) bool {
	s.variants = s.variants[:0]
	for i := range s.pieces {
		n.level = s.pieces[i].level
		v := b.variant(ref, n)
		if v == nil || v.shape == nil {
			return false
		}
		s.pieces[i].of = v
		if !slices.Contains(s.variants, v) {
			s.variants = append(s.variants, v)
		}
	}
	return true
}

// up appends what every answer of the shapes depends on and tells from when on
// the feed has hashed changes for all of them; false while it has not.
func up(dst []cache.Dep, start int, variants []*variant) (deps []cache.Dep, since cache.Position, ok bool) {
	before := len(dst)
	for _, v := range variants {
		position, ok := v.shape.Since()
		if !ok {
			return dst[:before], 0, false
		}
		since = max(since, position)
		dst = add(dst, start, v.all)
	}
	return dst, since, true
}

// variant is reference.variant, nil when what the run can use narrows nothing.
func (b *binding) variant(ref *reference, n narrowing) *variant {
	if n == (narrowing{}) && ref.reads == nil {
		return nil
	}
	return ref.variant(b.follower, n)
}

// refuses says why a run's answer must not be kept, "" if nothing of its values
// forbids it.
func (b *binding) refuses(params []Param) string {
	if b.movesOn(params) {
		return "a parameter may be read as the current time, or be completed with it"
	}
	return b.unheld(params)
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
	if b.dated && !b.postgres && slices.ContainsFunc(params, func(p Param) bool { return p.Binary && canon.IsMySQLTime(p.Type) }) {
		return true
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
		if b.shaped(s, ref, b.measure(s, ref, nil, maxDeps-2*(len(b.refs)-1))) {
			b.fixed[i] = fixed{slices.Clone(s.variants), s.keys(nil, 0)}
		}
	}
}

// usable is what the runs of a text can use of a reference: literals whose
// equality is not proven narrow none.
func (b *binding) usable(i int) narrowing {
	switch v := b.fixed[i].variants; {
	case len(v) > 0:
		return v[0].narrowing
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
	// low and high are the range's ends, pieces its blocks: as many as can be
	// if there are product keys of the columns and room for so many
	// dependencies.
	low, high     uint64
	product, room int
	pieces        []piece
	variants      []*variant
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
// they narrow the reference to with at most so many dependencies, one of them
// the shape's own.
func (b *binding) measure(s *scratch, ref *reference, params []Param, room int) narrowing {
	s.bytes, s.ends, s.columns, s.pieces = s.bytes[:0], s.ends[:0], s.columns[:0], s.pieces[:0]
	var n narrowing
	if room < 2 {
		return n
	}
	product := 1
	for i := range ref.equal {
		if b.values(s, i, &ref.equal[i], params) {
			product *= s.columns[len(s.columns)-1].count
		}
	}
	for product > room-1 { // the longest list narrows least
		longest := slices.MaxFunc(s.columns, func(a, b valued) int { return a.count - b.count })
		product /= longest.count
		s.columns = slices.DeleteFunc(s.columns, func(v valued) bool { return v == longest })
	}
	for _, v := range s.columns {
		n.mask |= 1 << v.index
	}
	if ref.ranged != nil {
		if s.low, s.high, n.ranged = b.span(s, ref.ranged, params); n.ranged {
			s.product, s.room = product, room
			n.ranged = s.cover(product, room, maxWidths)
		}
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
func (s *scratch) keys(dst []cache.Dep, start int) []cache.Dep {
	for {
		if len(s.pieces) == 0 {
			s.values(s.variants[0])
			dst = add(dst, start, s.hasher.Dep())
		}
		for i := range s.pieces {
			p := &s.pieces[i]
			s.values(p.of)
			values := s.hasher
			for block := range p.blocks {
				s.hasher = values
				mark := len(s.bytes)
				s.bytes = binary.BigEndian.AppendUint64(s.bytes, p.first+uint64(block))
				s.hasher.Value(s.bytes[mark:])
				s.bytes = s.bytes[:mark]
				dst = add(dst, start, s.hasher.Dep())
			}
		}
		if !s.next() {
			return dst
		}
	}
}

// values hashes the picked values of the compared columns for a shape.
func (s *scratch) values(v *variant) {
	s.hasher.Begin(v.shape.ID)
	for i := range s.columns {
		s.hasher.Value(s.at(s.columns[i].first + s.columns[i].pick))
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
