package narrow

import (
	"slices"
	"strings"

	"freshet/planner/query"
)

// slot is a column of one leaf.
type slot struct{ leaf, ordinal int }

// A finding is what a name was found to mean at one level.
type finding uint8

const (
	// absent: no item there has it.
	absent finding = iota
	// found: it is one column of a table.
	found
	// perhaps: an item whose columns are not known may have it.
	perhaps
	// unclear: it is there, but not one column of one table (it is a column
	// that a join merged, or several have it).
	unclear
)

// view is where a name stands: it sees the leaves, joined under root if that is
// not -1 (only then names of merged columns are understood).
type view struct {
	block  int
	leaves []int
	root   int
	// unclear tells that the leaves may be too many.
	unclear bool
}

// at is the view from a place of a block (query.Named.Node).
func (s *statement) at(block, node int) view {
	switch node {
	case query.AtRows:
		return view{block: block, leaves: s.from(block), root: s.blocks[block].From}
	case query.AtUnclear:
		return view{block: block, leaves: s.from(block), root: -1, unclear: true}
	}
	return view{block: block, leaves: s.leaves[node], root: node}
}

// outward is the view of what is not found in a block; ok is false when there
// is nothing further out.
func (s *statement) outward(block int) (v view, ok bool) {
	for {
		b := &s.blocks[block]
		if b.Outer < 0 {
			return view{}, false
		}
		switch b.Sees {
		case query.SeesNothing:
			block = b.Outer
			continue
		case query.SeesRows:
			return s.at(b.Outer, query.AtRows), true
		case query.SeesJoin:
			return s.at(b.Outer, b.Node), true
		case query.SeesBefore:
			v = view{block: b.Outer, root: -1}
			for _, leaf := range s.from(b.Outer) {
				if leaf < b.Node {
					v.leaves = append(v.leaves, leaf)
				}
			}
			return v, true
		}
		return s.at(b.Outer, query.AtUnclear), true
	}
}

// column finds the one column of a table that a name means; false when it is
// none, or not certain. Scoping is SQL's: the innermost block with such a
// column has it, and two in one block are an error that the server reports.
func (s *statement) column(block, node int, c query.Column) (slot, bool) {
	for v, ok := s.at(block, node), true; ok; v, ok = s.outward(v.block) {
		got, what := s.look(v, c)
		switch {
		case v.unclear && what != absent:
			return slot{}, false
		case what == found:
			if c.Table == "" && node >= 0 && v.block == block && s.anyOutside(block, c.Name) {
				// A parser may have joined more under this node than the
				// server does; then the name means what is outside.
				return slot{}, false
			}
			return got, true
		case what != absent:
			return slot{}, false
		}
	}
	return slot{}, false
}

// anyOutside tells whether some table of the blocks around has such a column.
func (s *statement) anyOutside(block int, name string) bool {
	for b := s.blocks[block].Outer; b >= 0; b = s.blocks[b].Outer {
		for _, leaf := range s.from(b) {
			columns := s.columns(leaf)
			if _, ok := columns[name]; ok || columns == nil {
				return true
			}
		}
	}
	return false
}

// look looks a name up in one view.
func (s *statement) look(v view, c query.Column) (slot, finding) {
	switch {
	case c.Table != "":
		return s.qualified(v, c)
	case v.root >= 0:
		return s.merged(v.root, c.Name)
	}
	if s.mergedAnywhere(v.block, c.Name) {
		return slot{}, unclear
	}
	var got slot
	what := absent
	for _, leaf := range v.leaves {
		g, w := s.inLeaf(leaf, c.Name)
		got, what = either(got, what, g, w)
	}
	return got, what
}

// mergedAnywhere tells whether some join of a block merges columns of a name.
func (s *statement) mergedAnywhere(block int, name string) bool {
	for i := range s.nodes {
		if s.home[i] == block && (s.nodes[i].Natural || slices.Contains(s.nodes[i].Using, name)) {
			return true
		}
	}
	return false
}

func (s *statement) inLeaf(leaf int, name string) (slot, finding) {
	columns := s.columns(leaf)
	if columns == nil {
		return slot{}, perhaps
	}
	if ordinal, ok := columns[name]; ok {
		return slot{leaf, ordinal}, found
	}
	return slot{}, absent
}

// either joins what was found on two sides of a join that merges nothing. A
// table that has the column decides: had the other side it too, the name would
// be ambiguous and the statement an error.
func either(a slot, wa finding, b slot, wb finding) (slot, finding) {
	switch {
	case wa == found && wb == found || wa == unclear || wb == unclear:
		return slot{}, unclear
	case wa == found:
		return a, found
	case wb == found:
		return b, found
	case wa == perhaps || wb == perhaps:
		return slot{}, perhaps
	}
	return slot{}, absent
}

// merged looks up a bare name under a node. USING merges two columns into one:
// the left one's value for INNER and LEFT, the right one's for RIGHT, and
// whichever is not NULL for FULL.
func (s *statement) merged(node int, name string) (slot, finding) {
	n := &s.nodes[node]
	if n.Kind == query.Leaf {
		return s.inLeaf(node, name)
	}
	a, wa := s.merged(n.A, name)
	b, wb := s.merged(n.B, name)
	switch {
	case n.Natural && (wa != absent || wb != absent):
		return slot{}, unclear
	case !slices.Contains(n.Using, name):
		return either(a, wa, b, wb)
	case n.Kind == query.Full:
		return slot{}, unclear
	case n.Kind == query.Right:
		a, wa = b, wb
	}
	if wa != found {
		return slot{}, unclear
	}
	return a, found
}

// qualified looks up a name with a table before it.
func (s *statement) qualified(v view, c query.Column) (slot, finding) {
	if s.opaque(v.block, c.Table) {
		return slot{}, unclear
	}
	leaf := -1
	for _, l := range v.leaves {
		if !s.goesBy(l, c.Table) {
			continue
		}
		if leaf >= 0 {
			return slot{}, unclear
		}
		leaf = l
	}
	if leaf < 0 {
		return slot{}, absent
	}
	n := &s.nodes[leaf]
	if n.Name != c.Table || c.Schema != "" && c.Schema != n.Schema {
		return slot{}, unclear
	}
	got, what := s.inLeaf(leaf, c.Name)
	if what != found {
		return slot{}, unclear
	}
	return got, found
}

func (s *statement) opaque(block int, name string) bool {
	return slices.ContainsFunc(s.blocks[block].Opaque, func(o string) bool { return s.sameName(o, name) })
}

// goesBy tells whether a qualifier may mean a leaf.
func (s *statement) goesBy(leaf int, name string) bool {
	return s.nodes[leaf].Name != "" && s.sameName(s.nodes[leaf].Name, name)
}

func (s *statement) sameName(a, b string) bool {
	return a == b || s.in.Fold && strings.EqualFold(a, b)
}
