package planner

import (
	"slices"

	"freshet/cache/canon"
	"freshet/planner/query"
)

// columns judges the columns that a comparison compares with each other.
func (h *holder) columns(c *query.Comparison) {
	var outer, inner []spot
	for i := range c.Terms {
		if t := &c.Terms[i]; t.Kind == query.TermColumn {
			if m := h.means(t.Column, 0); t.Inner {
				inner = append(inner, m.spots...)
			} else {
				outer = append(outer, m.spots...)
			}
		}
	}
	for i, a := range outer {
		for _, b := range outer[i+1:] {
			h.pair(a, b, false, c.Ordered)
		}
		for _, b := range inner {
			h.pair(a, b, true, c.Ordered)
		}
	}
	if !c.Ordered && len(outer)+len(inner) > 1 {
		h.equal = append(h.equal, slices.Concat(outer, inner))
	}
}

// natural judges what NATURAL JOIN compares: all columns of one name.
func (h *holder) natural() {
	seen := make(map[string]bool)
	for _, rels := range h.tables {
		for _, rel := range rels {
			for name := range rel.byName {
				if !seen[name] {
					seen[name] = true
					t := query.Term{Column: query.Column{Name: name}}
					h.columns(&query.Comparison{Terms: []query.Term{t, t}})
				}
			}
		}
	}
}

func (h *holder) pair(a, b spot, inner, ordered bool) {
	if a == b {
		return
	}
	x, y := a.column(), b.column()
	if alike(x.held, y.held, inner, h.loose(x.held, ordered)) {
		return
	}
	h.analysis.Refuse("the columns " + x.name + " and " + y.name + " are of types that the server compares in two ways, by an index and without one")
}

// loose tells whether an ordered comparison with a column is done in one way,
// whatever the value.
func (h *holder) loose(held canon.Held, ordered bool) bool {
	switch held.Kind {
	case canon.HeldNumber, canon.HeldMoment, canon.HeldDay:
		return ordered && !h.extremes
	case canon.HeldSingle:
		return !h.extremes
	}
	return false
}

// family groups kinds whose columns are joined alike in every way.
func family(k canon.HeldKind) canon.HeldKind {
	switch k {
	case canon.HeldSingle, canon.HeldDouble:
		return canon.HeldNumber
	case canon.HeldDay:
		return canon.HeldMoment
	}
	return k
}

// alike tells whether two columns are compared alike in every way, as far as
// MySQL 9.7 and MariaDB 10.11 were seen to: b is one that a subquery returns if
// inner is set, and then often one value, which is looked for as a literal is.
func alike(a, b canon.Held, inner, loose bool) bool {
	fa, fb := family(a.Kind), family(b.Kind)
	switch {
	case fa == canon.HeldAny || fb == canon.HeldAny || loose && fa == fb:
		return true
	case fa != fb:
		return mates(fa, fb, inner) || mates(fb, fa, inner)
	case !inner || a == b:
		return true
	}
	switch a.Kind {
	case canon.HeldNumber:
		return b.Kind == canon.HeldNumber && b.Digits <= a.Digits && (b.Unsigned || !a.Unsigned)
	case canon.HeldSingle, canon.HeldDouble:
		return a.Kind == b.Kind
	case canon.HeldDay:
		return b.Kind == canon.HeldDay
	case canon.HeldMoment, canon.HeldClock:
		return b.Digits <= a.Digits
	}
	return true
}

// mates are kinds of different families that are compared alike still.
func mates(a, b canon.HeldKind, inner bool) bool {
	switch a {
	case canon.HeldText:
		return b == canon.HeldNumber || (b == canon.HeldMoment || b == canon.HeldName || b == canon.HeldBytes) && !inner
	case canon.HeldBytes:
		return b == canon.HeldNumber || b == canon.HeldMoment && !inner
	case canon.HeldBits:
		return b == canon.HeldNumber && !inner
	}
	return false
}

// comparison judges the values that a comparison compares with its columns.
func (h *holder) comparison(c *query.Comparison) {
	var with []spot
	unclear := false
	for i := range c.Terms {
		if t := &c.Terms[i]; t.Kind == query.TermColumn {
			m := h.means(t.Column, 0)
			with = append(with, m.spots...)
			unclear = unclear || m.unclear
		}
	}
	mark := len(with)
	for _, group := range h.equal {
		if slices.ContainsFunc(group, func(s spot) bool { return slices.Contains(with[:mark], s) }) {
			with = append(with, group...)
		}
	}
	met := make(map[canon.Held]bool)
	for _, s := range with {
		if held := s.column().held; !met[held] {
			met[held] = true
			h.against(s.column(), c)
		}
	}
	if unclear {
		h.against(nil, c)
	}
	if mark == 0 {
		h.expressions(c)
	}
}

// expressions judges a comparison in which no column stands by itself: a
// generated column may hold what is computed in it, and MySQL then looks for the
// values in that column's index.
func (h *holder) expressions(c *query.Comparison) {
	values := *c
	values.Terms = slices.DeleteFunc(slices.Clone(c.Terms), func(t query.Term) bool { return t.Kind == query.TermComputed })
	if len(values.Terms) == 0 {
		return
	}
	h.against(nil, &values) // an index over an expression
	for _, rels := range h.tables {
		for _, rel := range rels {
			for i := range rel.columns {
				if rel.columns[i].generated {
					h.against(&rel.columns[i], &values)
				}
			}
		}
	}
}

// against judges a comparison's values against one column; nil stands for one
// of which nothing is known.
func (h *holder) against(of *column, c *query.Comparison) {
	name := "a column"
	var held canon.Held
	if of != nil {
		name, held = of.name, of.held
		if held.Kind < canon.HeldName || held.Kind == canon.HeldDouble || family(held.Kind) == canon.HeldNumber && h.loose(held, c.Ordered) {
			return
		}
	}
	reason := name + " is compared with a value that it cannot hold exactly, which the server does in two ways, by an index and without one"
	check := heldCheck{held: held, reason: reason, unknown: of == nil}
	var direct []int
	for i := range c.Terms {
		t := &c.Terms[i]
		check.use = canon.HeldUse{Inner: t.Inner, Extremes: h.extremes, Ordered: c.Ordered, Between: c.Between}
		switch t.Kind {
		case query.TermParam, query.TermLiteral:
			h.check(check, t)
			if t.Kind == query.TermParam {
				direct = append(direct, t.Param)
			}
		case query.TermComputed:
			h.computed(check, t)
		}
	}
	if len(direct) > 1 && family(held.Kind) == canon.HeldMoment {
		h.template.mixed = append(h.template.mixed, mixedCheck{slots: h.slots(direct),
			reason: name + " is compared with strings and numbers in one list, which the server does in two ways, by an index and without one"})
	}
}

// check judges a literal at once and notes a parameter.
func (h *holder) check(c heldCheck, t *query.Term) {
	if t.Kind == query.TermParam {
		c.slot = h.slots([]int{t.Param})[0]
		if !slices.Contains(h.template.checks, c) {
			h.template.checks = append(h.template.checks, c)
		}
		return
	}
	if t.Literal.Bits && (c.held.Kind == canon.HeldBits || c.held.Kind == canon.HeldNumber) {
		return
	}
	if !c.literal([]byte(t.Literal.Text), t.Literal.Number) {
		h.analysis.Refuse(c.reason)
	}
}

// computed judges what a value is computed from.
func (h *holder) computed(c heldCheck, t *query.Term) {
	if c.unknown || h.loose(c.held, c.use.Ordered) {
		return
	}
	c.use.Part, c.use.Product = true, t.Product
	if t.Makes == query.MakesDigits || c.held.Kind == canon.HeldYear ||
		t.Makes == query.MakesTime && c.held.Kind == canon.HeldDay || t.Negates && c.held.Unsigned && h.extremes {
		h.analysis.Refuse(c.reason)
		return
	}
	for i := range t.Parts {
		part := &t.Parts[i]
		if part.Kind != query.TermColumn {
			h.check(c, part)
			continue
		}
		for _, s := range h.means(part.Column, 0).spots {
			if !partOf(c.held, s.column().held, t.Product) {
				h.analysis.Refuse(c.reason)
			}
		}
	}
}

// partOf tells whether what is computed from a column of one kind is no finer
// than what another holds.
func partOf(held, part canon.Held, product bool) bool {
	if product {
		held.Digits = 0
	}
	switch part.Kind {
	case canon.HeldNumber, canon.HeldClock:
		return part.Digits <= held.Digits
	case canon.HeldMoment:
		return part.Digits <= held.Digits && held.Kind != canon.HeldDay
	case canon.HeldDay, canon.HeldYear, canon.HeldBits:
		return true
	}
	return false
}

// slots are the skeleton's slots of parameters.
func (h *holder) slots(params []int) []int {
	out := slices.Clone(params)
	for i, p := range params {
		if of := h.template.slotOf; of != nil {
			if out[i] = -1; p < len(of) {
				out[i] = of[p]
			}
		}
	}
	return out
}
