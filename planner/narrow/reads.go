package narrow

import (
	"slices"

	"freshet/planner/query"
)

// reading is which columns of a leaf are read.
type reading struct {
	all  bool
	some map[int]bool
}

func (r *reading) add(ordinal int) {
	if r.some == nil {
		r.some = make(map[int]bool)
	}
	r.some[ordinal] = true
}

// sorted returns the ordinals, not nil; nil when all are read.
func (r *reading) sorted() []int {
	if r.all {
		return nil
	}
	out := make([]int, 0, len(r.some))
	for ordinal := range r.some {
		out = append(out, ordinal)
	}
	slices.Sort(out)
	return out
}

// reads finds out which columns of each leaf are read. Unlike narrowing it errs
// on the side of more: a name counts for every column it could mean.
func (s *statement) reads() []reading {
	out := make([]reading, len(s.nodes))
	for i := range s.nodes {
		if s.nodes[i].Kind == query.Leaf {
			out[i].all = s.columns(i) == nil || s.nodes[i].Whole
		} else if s.nodes[i].Natural {
			for _, leaf := range s.leaves[i] {
				out[leaf].all = true // it compares what both sides have
			}
		}
	}
	for b := range s.blocks {
		for _, n := range s.blocks[b].Named {
			switch {
			case n.Name != "":
				s.read(out, b, n)
			case n.Table == "":
				for _, leaf := range s.from(b) {
					out[leaf].all = true
				}
			default:
				s.read(out, b, n)
			}
		}
	}
	return out
}

// read marks the columns that a name may mean, from the inside outwards until a
// block surely has it.
func (s *statement) read(out []reading, block int, n query.Named) {
	v, ok := s.at(block, n.Node), true
	meant := false
	for ok {
		settled := s.readIn(out, v, n.Column)
		meant = meant || settled
		if settled && !v.unclear {
			return
		}
		if !settled {
			// What is in the block but not in sight of the name is read too, for
			// good measure, and does not settle what it means.
			wide := s.at(v.block, query.AtRows)
			meant = s.readIn(out, wide, n.Column) || meant
		}
		v, ok = s.outward(v.block)
	}
	if meant || n.Table == "" && (s.isAlias(block, n.Name) || s.anyUnknown(block)) {
		return
	}
	// It names what nobody here knows: it may mean anything in sight.
	for b := block; b >= 0; b = s.blocks[b].Outer {
		for _, leaf := range s.from(b) {
			out[leaf].all = true
		}
	}
}

// readIn marks what a name may mean in one view and tells whether it surely
// means that.
func (s *statement) readIn(out []reading, v view, c query.Column) bool {
	if c.Table != "" {
		return s.readQualified(out, v, c)
	}
	settled := false
	for _, leaf := range v.leaves {
		if ordinal, has := s.columns(leaf)[c.Name]; has {
			out[leaf].add(ordinal)
			settled = true
		}
	}
	if settled {
		return true
	}
	for _, leaf := range v.leaves {
		if s.goesBy(leaf, c.Name) {
			out[leaf].all = true // a whole row, should it be no column further out
		}
	}
	return false
}

// readQualified is readIn for a name with a table before it. A table that is
// written in other letters may be another one further out.
func (s *statement) readQualified(out []reading, v view, c query.Column) bool {
	settled := s.opaque(v.block, c.Table)
	if settled {
		for _, leaf := range s.from(v.block) {
			out[leaf].all = true
		}
	}
	for _, leaf := range v.leaves {
		if !s.goesBy(leaf, c.Table) {
			continue
		}
		if ordinal, has := s.columns(leaf)[c.Name]; has {
			out[leaf].add(ordinal)
		} else {
			out[leaf].all = true
		}
		settled = settled || s.nodes[leaf].Name == c.Table
	}
	return settled
}

func (s *statement) isAlias(block int, name string) bool {
	return slices.ContainsFunc(s.blocks[block].Aliases, func(a string) bool { return s.sameName(a, name) })
}

// anyUnknown tells whether a name that is no table's may be a column of an item
// whose columns are not known, in sight of a block.
func (s *statement) anyUnknown(block int) bool {
	for b := block; b >= 0; b = s.blocks[b].Outer {
		if slices.ContainsFunc(s.from(b), func(leaf int) bool { return s.columns(leaf) == nil }) {
			return true
		}
	}
	return false
}
