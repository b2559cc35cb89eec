package narrow

import (
	"slices"

	"freshet/planner/query"
)

// conclude adds to a reference what the facts that hold at its leaf say of its
// columns, directly or over alike columns that equal them.
func (s *statement) conclude(ref *Reference, leaf int) {
	g := s.groups(s.within[leaf])
	for _, ordinal := range g.ordinals(leaf) {
		group := g.of(slot{leaf, ordinal})
		if e, ok := s.equal(g, group, slot{leaf, ordinal}); ok {
			ref.Equal = append(ref.Equal, e)
		} else if r, ok := s.bounds(g, group, slot{leaf, ordinal}); ok {
			ref.Ranges = append(ref.Ranges, r)
		}
	}
}

// groups are the columns that facts speak of, those that equal each other in
// one group.
type groups struct {
	slots []slot
	group []int // of each slot
	facts []int // those that hold
}

func (s *statement) groups(facts set) *groups {
	g := &groups{}
	for i := range s.facts {
		if !facts.has(i) {
			continue
		}
		g.facts = append(g.facts, i)
		f := &s.facts[i]
		a := g.add(f.a)
		if f.relation != query.Same {
			continue
		}
		if b := g.add(f.b); s.in.Alike(s.ref(f.a), s.ref(f.b)) {
			g.join(g.group[a], g.group[b])
		}
	}
	return g
}

func (s *statement) ref(c slot) Ref { return Ref{s.nodes[c.leaf].Table, c.ordinal} }

// add returns the index of a slot.
func (g *groups) add(c slot) int {
	if i := slices.Index(g.slots, c); i >= 0 {
		return i
	}
	g.slots = append(g.slots, c)
	g.group = append(g.group, len(g.slots)-1)
	return len(g.slots) - 1
}

func (g *groups) join(a, b int) {
	for i, group := range g.group {
		if group == b {
			g.group[i] = a
		}
	}
}

func (g *groups) of(c slot) int { return g.group[slices.Index(g.slots, c)] }

// ordinals are the columns of a leaf that facts speak of, in order.
func (g *groups) ordinals(leaf int) []int {
	var out []int
	for _, c := range g.slots {
		if c.leaf == leaf {
			out = append(out, c.ordinal)
		}
	}
	slices.Sort(out)
	return out
}

// equal finds the shortest list of values that a group's columns are one of;
// of two as long, what the text says of the column itself.
func (s *statement) equal(g *groups, group int, c slot) (Equal, bool) {
	best := Equal{Ordinal: c.ordinal}
	for _, i := range g.facts {
		f := &s.facts[i]
		if f.relation != query.Equals || g.of(f.a) != group || len(f.sources) == 0 {
			continue
		}
		if n := len(best.Sources); n == 0 || len(f.sources) < n || len(f.sources) == n && f.a == c && best.Of != s.ref(c) {
			best.Of, best.Sources = s.ref(f.a), f.sources
		}
	}
	return best, len(best.Sources) > 0
}

// bounds finds a lower and an upper bound, both from one BETWEEN if there is one.
func (s *statement) bounds(g *groups, group int, c slot) (Range, bool) {
	r := Range{Ordinal: c.ordinal}
	low, high := false, false
	for _, i := range g.facts {
		f := &s.facts[i]
		if f.relation == query.Equals || f.relation == query.Same || g.of(f.a) != group {
			continue
		}
		bound := func(k int) Bound { return Bound{Of: s.ref(f.a), Source: f.sources[k]} }
		switch f.relation {
		case query.Between:
			r.Low, r.High, r.Between = bound(0), bound(1), true
			return r, true
		case query.AtLeast:
			if !low {
				r.Low, low = bound(0), true
			}
		case query.AtMost:
			if !high {
				r.High, high = bound(0), true
			}
		}
	}
	return r, low && high
}
