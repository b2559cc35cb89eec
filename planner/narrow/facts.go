package narrow

import (
	"slices"

	"freshet/planner/query"
)

// fact is a Conjunct whose columns are known. No row passes it with NULL in its
// column, and that is what most of the conclusions below rest on.
type fact struct {
	relation query.Relation
	a, b     slot // b for Same
	sources  []query.Source
}

// set is a set of facts, by index; it is never changed in place.
type set []uint64

func (s set) has(i int) bool { return i/64 < len(s) && s[i/64]&(1<<(i%64)) != 0 }

func union(sets ...set) set {
	var out set
	for _, s := range sets {
		for len(out) < len(s) {
			out = append(out, 0)
		}
		for i, w := range s {
			out[i] |= w
		}
	}
	return out
}

// add makes a fact and returns the set with it.
func (s *statement) add(to set, f fact) set {
	i := len(s.facts)
	s.facts = append(s.facts, f)
	one := make(set, i/64+1)
	one[i/64] = 1 << (i % 64)
	return union(to, one)
}

// gather finds what columns the conjuncts speak of. Those that are not certain
// are left out.
func (s *statement) gather() {
	s.where = make([]set, len(s.blocks))
	s.on = make([]set, len(s.nodes))
	for b := range s.blocks {
		s.where[b] = s.certain(b, query.AtRows, s.blocks[b].Where)
	}
	for i := range s.nodes {
		n := &s.nodes[i]
		if n.Kind == query.Leaf {
			continue
		}
		s.on[i] = s.certain(s.home[i], i, n.On)
		if n.Natural {
			continue
		}
		for _, name := range n.Using {
			a, wa := s.merged(n.A, name)
			b, wb := s.merged(n.B, name)
			if wa == found && wb == found {
				s.on[i] = s.add(s.on[i], fact{relation: query.Same, a: a, b: b})
			}
		}
	}
}

func (s *statement) certain(block, node int, list []query.Conjunct) set {
	var out set
	for i := range list {
		c := &list[i]
		if len(s.facts) >= maxConjuncts {
			break
		}
		f := fact{relation: c.Relation, sources: c.Sources}
		var ok bool
		if f.a, ok = s.column(block, node, c.Column); !ok {
			continue
		}
		if c.Relation == query.Same {
			if f.b, ok = s.column(block, node, c.Other); !ok || f.a == f.b {
				continue
			}
		}
		out = s.add(out, f)
	}
	return out
}

// flow carries the facts to where they hold. The invariant: if F is the set of
// a node (within), the answer stays the same when every row of that node that
// fails F is taken away.
//
// It holds at the root of a block for WHERE, which a row must pass to reach
// the block's result at all; grouping, windows, DISTINCT, ORDER BY and LIMIT
// come later and see only rows that passed. descend carries it to the sides of
// joins. That a row of a table is taken away changes, besides the rows it is a
// part of, only rows in which an outer join puts NULL in its place, and those
// fail F where F says anything of that table.
//
// Facts flow inwards only: what a subquery's WHERE demands says nothing of the
// rows around it (NOT EXISTS, aggregates), but a subquery's answer matters only
// for rows around it that matter themselves.
func (s *statement) flow() {
	s.within = make([]set, len(s.nodes))
	s.inside = make([]set, len(s.nodes))
	s.rows = make([]set, len(s.blocks))
	s.around = make([]set, len(s.blocks))
	for b := range s.blocks { // a block comes after the one it stands in
		s.around[b] = s.seen(b)
		facts := union(s.around[b], s.where[b])
		root := s.blocks[b].From
		if root >= 0 {
			for range 3 { // an outer join that turns out to be an inner one adds to it
				facts = union(facts, s.always(root, facts))
			}
			s.descend(root, facts)
		}
		s.rows[b] = facts
	}
}

// seen is what holds of the rows that a block sees from outside, whenever its
// answer matters.
func (s *statement) seen(block int) set {
	b := &s.blocks[block]
	if b.Outer < 0 {
		return nil
	}
	around := s.around[b.Outer]
	switch b.Sees {
	case query.SeesRows:
		// Where WHERE fails because of another condition, it fails whatever the
		// subquery says; the select list and what follows see rows that passed.
		return union(around, s.rows[b.Outer])
	case query.SeesJoin:
		return union(around, s.inside[b.Node])
	case query.SeesBefore:
		return union(around, s.within[b.Node])
	}
	return around
}

// kind is what a join amounts to for rows that satisfy F: rows with NULL in
// place of a side that F speaks of fail it, so that side need not be made up.
func (s *statement) kind(node int, facts set) query.NodeKind {
	n := &s.nodes[node]
	kind := n.Kind
	if kind == query.Full && s.speaksOf(facts, n.A) {
		kind = query.Left
	}
	if kind == query.Full && s.speaksOf(facts, n.B) {
		kind = query.Right
	}
	if kind == query.Left && s.speaksOf(facts, n.B) || kind == query.Right && s.speaksOf(facts, n.A) {
		kind = query.Inner
	}
	return kind
}

// speaksOf tells whether some fact is about a column of a table under a node.
func (s *statement) speaksOf(facts set, node int) bool {
	for i := range s.facts {
		f := &s.facts[i]
		if facts.has(i) && (slices.Contains(s.leaves[node], f.a.leaf) ||
			f.relation == query.Same && slices.Contains(s.leaves[node], f.b.leaf)) {
			return true
		}
	}
	return false
}

// always is what holds of all rows of a node that satisfy F: ON of inner joins,
// and of those on the side that an outer join keeps.
func (s *statement) always(node int, facts set) set {
	n := &s.nodes[node]
	if n.Kind == query.Leaf {
		return nil
	}
	switch s.kind(node, facts) {
	case query.Inner:
		return union(s.on[node], s.always(n.A, facts), s.always(n.B, facts))
	case query.Left:
		return s.always(n.A, facts)
	case query.Right:
		return s.always(n.B, facts)
	}
	return nil
}

// descend carries F from a node to what it joins.
//
//   - An inner join's rows satisfy its ON, so both sides may be held to F and ON.
//   - LEFT keeps every row of A: A is held to F alone, for ON decides only
//     whether a row of A is joined or gets NULLs. A row of B that fails ON is
//     never joined to anything; one that would be joined only to rows of A that
//     fail F changes only rows that fail F. So B is held to F and ON.
//   - RIGHT is LEFT the other way round.
//   - FULL keeps the rows of both; F speaks of neither side (see kind), and ON
//     narrows neither.
func (s *statement) descend(node int, facts set) {
	s.within[node] = facts
	n := &s.nodes[node]
	if n.Kind == query.Leaf {
		return
	}
	onA, onB := s.always(n.A, facts), s.always(n.B, facts)
	all := union(facts, s.on[node])
	s.inside[node] = all
	switch s.kind(node, facts) {
	case query.Inner:
		all = union(all, onA, onB)
		s.inside[node] = all
		s.descend(n.A, all)
		s.descend(n.B, all)
	case query.Left:
		s.descend(n.A, union(facts, onA))
		s.descend(n.B, union(all, onA, onB))
	case query.Right:
		s.descend(n.A, union(all, onA, onB))
		s.descend(n.B, union(facts, onB))
	default:
		s.descend(n.A, union(facts, onA))
		s.descend(n.B, union(facts, onB))
	}
}
