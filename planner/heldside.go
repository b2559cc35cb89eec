package planner

import (
	"slices"
	"strings"

	"freshet/planner/query"
)

// side is what may stand on one side of a comparison: columns of tables, values,
// and, if it is unclear, something that could not be followed.
type side struct {
	spots   []spot
	values  []value
	unclear bool
}

// value is one that no table holds.
type value struct {
	query.Term
	// of is who knows what the parts of a computed value are.
	of *holder
	// through tells that it comes from a derived table or its kin, united that
	// values of other types may stand there, too.
	through, united bool
	// low tells that it is the lower bound of a BETWEEN.
	low bool
}

// answerField is a field of an Answer by its name.
type answerField struct {
	of   *query.Answer
	name string
}

// maxSide bounds the values behind one name; one with more is not followed.
const maxSide = 64

func (s *side) add(o side) {
	for _, x := range o.spots {
		if !slices.Contains(s.spots, x) {
			s.spots = append(s.spots, x)
		}
	}
	s.unclear = s.unclear || o.unclear || len(s.values)+len(o.values) > maxSide
	if !s.unclear {
		s.values = append(s.values, o.values...)
	}
}

// side follows a term back to the tables and values behind it. aliased tells
// that the name may be one that the select list gives.
func (h *holder) side(t *query.Term, aliased bool) side {
	if t.Kind != query.TermColumn {
		return side{values: []value{{Term: *t, of: h}}}
	}
	if len(h.analysis.Blocks) == 0 || t.Block < 0 {
		return h.anywhere(t.Column)
	}
	out := side{}
	found := false
	for b := t.Block; b >= 0; b = h.analysis.Blocks[b].Outer {
		s, here := h.inBlock(b, t.Column, aliased)
		if !here {
			continue
		}
		out.add(s)
		found = true
		if !t.Join || t.Column.Table != "" {
			break // the innermost block that has it; under ON it may not see all of it
		}
	}
	out.unclear = out.unclear || !found
	for i := range out.values {
		out.values[i].Inner = out.values[i].Inner || t.Inner
	}
	return out
}

// anywhere holds a name to all columns that it may mean, for a statement whose
// blocks are not known.
func (h *holder) anywhere(c query.Column) side {
	var out side
	for i := range h.tables {
		s, _ := h.inTable(i, c.Name)
		out.add(s)
	}
	out.unclear = out.unclear || len(out.spots) == 0
	return out
}

// inBlock looks a name up in a block's FROM, and among the names that its
// select list gives, which HAVING and GROUP BY know. No name means all columns.
func (h *holder) inBlock(block int, c query.Column, aliased bool) (out side, found bool) {
	b := &h.analysis.Blocks[block]
	h.leaves(b.From, func(n *query.Node) {
		if c.Table != "" && !strings.EqualFold(n.Name, c.Table) {
			return
		}
		s, here := h.inLeaf(n, c.Name)
		out.add(s)
		found = found || here
	})
	if c.Table != "" || !aliased {
		return out, found
	}
	for i := range b.Fields {
		f := &b.Fields[i]
		same := f.Term.Kind == query.TermColumn && strings.EqualFold(f.Term.Column.Name, c.Name)
		if f.Name != "" && strings.EqualFold(f.Name, c.Name) && !same {
			out.add(h.field(block, f))
			found = true
		}
	}
	return out, found
}

// leaves visits the FROM items under a node.
func (h *holder) leaves(node int, visit func(*query.Node)) {
	if node < 0 {
		return
	}
	n := &h.analysis.Nodes[node]
	if n.Kind == query.Leaf {
		visit(n)
		return
	}
	h.leaves(n.A, visit)
	h.leaves(n.B, visit)
}

func (h *holder) inLeaf(n *query.Node, name string) (side, bool) {
	switch {
	case n.Table >= 0:
		return h.inTable(n.Table, name)
	case n.Answer == nil:
		return side{unclear: true}, true
	}
	return h.inAnswer(n.Answer, name)
}

// inTable looks a name up in a table, and in what a view reads: the server may
// look at a view's column, or at what is behind it.
func (h *holder) inTable(table int, name string) (out side, found bool) {
	if table >= len(h.tables) {
		return side{unclear: true}, true
	}
	for _, rel := range h.tables[table] {
		for i := range rel.columns {
			if name == "" || strings.EqualFold(rel.columns[i].name, name) {
				out.spots = append(out.spots, spot{rel, i})
				found = true
			}
		}
		if v := h.views[rel]; v != nil && found {
			if h.inner[rel] == nil {
				h.inner[rel] = v.holder(h.ctx)
			}
			if s, ok := h.inner[rel].inAnswer(v.analysis.Answer, name); ok {
				out.add(s)
			} else {
				out.unclear = true
			}
		}
	}
	return out, found
}

// inAnswer looks a name up among what a query returns. One that stands in
// itself adds nothing there: its type is that of its other arms.
func (h *holder) inAnswer(a *query.Answer, name string) (side, bool) {
	key := answerField{a, strings.ToLower(name)}
	if s, ok := h.answers[key]; ok {
		return s, true
	}
	h.answers[key] = side{}
	var out side
	found := name == ""
	if a == nil || len(a.Arms) == 0 || name == "" && len(a.Names) > 0 {
		out, found = side{unclear: true}, true
	} else if at, ok := h.position(a, name); ok {
		for _, arm := range a.Arms {
			if fields := h.analysis.Blocks[arm].Fields; at < len(fields) {
				out.add(h.field(arm, &fields[at]))
				found = true
			}
		}
	} else {
		out, found = h.byName(a, name)
	}
	if !found {
		delete(h.answers, key)
		return side{}, false
	}
	for i := range out.values {
		out.values[i].through = true
		out.values[i].united = out.values[i].united || len(a.Arms) > 1
	}
	out.unclear = out.unclear || len(a.Arms) > 1 && out.mixed()
	h.answers[key] = out
	return out, true
}

// position is the place of a name in every arm's select list, if all of them
// say what they have.
func (h *holder) position(a *query.Answer, name string) (int, bool) {
	for _, arm := range a.Arms {
		if slices.ContainsFunc(h.analysis.Blocks[arm].Fields, func(f query.Field) bool { return f.Star }) {
			return 0, false
		}
	}
	at := slices.IndexFunc(a.Names, func(n string) bool { return strings.EqualFold(n, name) })
	if len(a.Names) == 0 && name != "" {
		at = slices.IndexFunc(h.analysis.Blocks[a.Arms[0]].Fields, func(f query.Field) bool { return strings.EqualFold(f.Name, name) })
	}
	return at, at >= 0
}

// byName looks a name up in arms of which some return all columns of a table.
func (h *holder) byName(a *query.Answer, name string) (out side, found bool) {
	stars := false
	for _, arm := range a.Arms {
		fields := h.analysis.Blocks[arm].Fields
		for i := range fields {
			switch f := &fields[i]; {
			case f.Star:
				stars = true
				s, here := h.inBlock(arm, query.Column{Table: f.Term.Column.Table, Name: name}, false)
				out.add(s)
				found = found || here
			case name == "" || strings.EqualFold(f.Name, name):
				out.add(h.field(arm, f))
				found = true
			}
		}
	}
	// With names of its own, or several arms, the places decide.
	out.unclear = out.unclear || stars && (len(a.Names) > 0 || len(a.Arms) > 1)
	return out, found || stars && len(a.Names) > 0
}

// field follows a member of a select list.
func (h *holder) field(block int, f *query.Field) side {
	if f.Star {
		s, _ := h.inBlock(block, query.Column{Table: f.Term.Column.Table}, false)
		return s
	}
	return h.side(&f.Term, false)
}

// mixed tells that values and columns of more than one kind meet: their type is
// neither's.
func (s *side) mixed() bool {
	return len(s.spots) > 0 && (len(s.values) > 0 || slices.ContainsFunc(s.spots, func(x spot) bool {
		return x.column().held.Kind != s.spots[0].column().held.Kind || x.column().collation != s.spots[0].column().collation
	}))
}
