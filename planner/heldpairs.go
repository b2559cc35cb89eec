package planner

import (
	"slices"

	"freshet/cache/canon"
	"freshet/planner/query"
)

// columns judges the columns that a comparison compares with each other.
func (h *holder) columns(c *query.Comparison, sides []side) {
	var all []spot
	for i := range sides {
		all = append(all, sides[i].spots...)
		for k := range sides[:i] {
			if inner := c.Terms[i].Inner || c.Terms[k].Inner; !inner || c.Terms[i].Inner != c.Terms[k].Inner {
				h.between(&sides[k], &sides[i], inner, c.Ordered)
			}
		}
	}
	if !c.Ordered && len(all) > 1 {
		h.equal = append(h.equal, all)
	}
}

// between judges the columns of two sides.
func (h *holder) between(x, y *side, inner, ordered bool) {
	for _, a := range x.spots {
		for _, b := range y.spots {
			h.pair(a, b, inner, ordered)
		}
		h.unfollowed(a, y)
	}
	for _, b := range y.spots {
		h.unfollowed(b, x)
	}
}

// unfollowed refuses the comparison of a column with what is not known.
func (h *holder) unfollowed(a spot, other *side) {
	if held := a.column().held.Kind; other.unclear && held != canon.HeldText && held != canon.HeldBytes {
		h.analysis.Refuse("what " + a.column().name + " is compared with could not be followed, and the server may compare it in two ways, by an index and without one")
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
					t := query.Term{Column: query.Column{Name: name}, Block: -1}
					s := h.side(&t, false)
					h.columns(&query.Comparison{Terms: []query.Term{t, t}}, []side{s, s})
				}
			}
		}
	}
}

func (h *holder) pair(a, b spot, inner, ordered bool) {
	x, y := a.column(), b.column()
	// What a subquery returns of a FLOAT(M,D) is another value than the column's.
	same := a == b && !(inner && x.held.Rounded)
	if same && !x.held.Stamp {
		return
	}
	switch {
	case h.doubled(x, y):
		h.analysis.Refuse(x.name + " is compared with " + y.name + "; " + inDoubt)
	case !same && (!alike(x.held, y.held, inner, h.loose(x.held, ordered)) || x.held.Kind == canon.HeldText && y.held.Kind == canon.HeldText && x.collation != y.collation):
		h.analysis.Refuse("the columns " + x.name + " and " + y.name + " are of types that the server compares in two ways, by an index and without one")
	}
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
	case fa == canon.HeldAny || fb == canon.HeldAny:
		return fa == fb
	case a.Rounded || b.Rounded:
		return a == b && !inner
	case a.Wide && inexact(b.Kind) || b.Wide && inexact(a.Kind), a.Kind == canon.HeldBits && a.Wide && a != b, b.Kind == canon.HeldBits && b.Wide && a != b:
		return false
	case loose && fa == fb:
		return true
	case fa != fb:
		return mates(fa, fb, inner) || mates(fb, fa, inner)
	case !inner || a == b:
		return true
	}
	// MariaDB may cut what it looks for among a subquery's rows to their digits.
	switch a.Kind {
	case canon.HeldNumber:
		return b.Kind == canon.HeldNumber && b.Digits == a.Digits && (b.Unsigned || !a.Unsigned)
	case canon.HeldSingle, canon.HeldDouble:
		return a.Kind == b.Kind
	case canon.HeldDay:
		return b.Kind == canon.HeldDay
	case canon.HeldMoment, canon.HeldClock:
		return b.Digits == a.Digits
	}
	return a.Kind != canon.HeldBits && a.Kind != canon.HeldName
}

// inexact are kinds that are compared with numbers as doubles.
func inexact(k canon.HeldKind) bool {
	return k == canon.HeldSingle || k == canon.HeldDouble || k == canon.HeldText || k == canon.HeldBytes
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
func (h *holder) comparison(c *query.Comparison, sides []side) {
	var all []spot
	var values []value
	unclear := false
	for i := range sides {
		all = append(all, sides[i].spots...)
		values = append(values, sides[i].values...)
		for k := len(values) - len(sides[i].values); k < len(values); k++ {
			values[k].low = c.Between && i == 1
		}
		unclear = unclear || sides[i].unclear
	}
	with := all
	for _, group := range h.equal {
		if slices.ContainsFunc(group, func(s spot) bool { return slices.Contains(all, s) }) {
			with = append(slices.Clip(with), group...)
		}
	}
	met := make(map[canon.Held]bool)
	for _, s := range with {
		if held := s.column().held; !met[held] {
			met[held] = true
			h.against(s.column(), c, values)
		}
	}
	if unclear {
		h.against(nil, c, values)
	}
	if c.OfDay {
		h.against(&column{name: "a time of day", held: canon.Held{Kind: canon.HeldClock, Digits: 6}}, c, values)
	}
	if len(all) == 0 {
		h.expressions(c, values)
	}
}

// expressions judges a comparison in which no column stands by itself: a
// generated column may hold what is computed in it, and MySQL then looks for the
// values in that column's index.
func (h *holder) expressions(c *query.Comparison, values []value) {
	values = slices.DeleteFunc(slices.Clone(values), func(v value) bool { return v.Kind == query.TermComputed })
	if len(values) == 0 {
		return
	}
	h.against(nil, c, values) // an index over an expression
	for _, rels := range h.tables {
		for _, rel := range rels {
			for i := range rel.columns {
				if rel.columns[i].generated {
					h.against(&rel.columns[i], c, values)
				}
			}
		}
	}
}

// against judges values against one column; nil stands for one of which nothing
// is known.
func (h *holder) against(of *column, c *query.Comparison, values []value) {
	name := "a column"
	var held canon.Held
	if of != nil {
		name, held = of.name, of.held
	}
	check := heldCheck{held: held, unknown: of == nil,
		reason: name + " is compared with a value that it cannot hold exactly, which the server does in two ways, by an index and without one"}
	if check.zone = h.shifting(held); check.zone != nil {
		check.reason += "; or " + inDoubt
	}
	check.loose = h.loose(held, c.Ordered)
	var direct []int
	for i := range values {
		v := &values[i]
		check.use = canon.HeldUse{Inner: v.Inner, Extremes: h.extremes, Ordered: c.Ordered, Between: c.Between, Low: v.low}
		check.through, check.united = v.through, v.united
		if of != nil && !v.through && !held.Wide && check.takesAll() {
			continue
		}
		if v.Kind == query.TermComputed {
			h.computed(check, v)
			continue
		}
		h.check(check, &v.Term)
		if v.Kind == query.TermParam {
			direct = append(direct, v.Param)
		}
	}
	if len(direct) > 1 && (family(held.Kind) == canon.HeldMoment || held.Wide) {
		h.template.mixed = append(h.template.mixed, mixedCheck{slots: h.slots(direct), wide: held.Wide,
			reason: name + " is compared with strings and numbers in one list, which the server does in two ways, by an index and without one"})
	}
}

// takesAll tells whether literals of every kind are compared with the column in
// one way.
func (c *heldCheck) takesAll() bool {
	return c.held.Kind < canon.HeldName || c.held.Kind == canon.HeldDouble || family(c.held.Kind) == canon.HeldNumber && c.loose
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
	if t.Literal.Bits && !c.through && (c.held.Kind == canon.HeldBits || c.held.Kind == canon.HeldNumber) {
		return
	}
	if t.Literal.Double && !c.double(t.Literal.Text) || !c.literal([]byte(t.Literal.Text), t.Literal.Number) {
		h.analysis.Refuse(c.reason)
	}
}

// computed judges what a value is computed from.
func (h *holder) computed(c heldCheck, v *value) {
	if c.unknown {
		return
	}
	if c.zone != nil || len(h.parts) > maxDeep || v.through && !c.use.Part && !computable(c.held.Kind) {
		h.analysis.Refuse(c.reason)
		return
	}
	if c.held.Kind < canon.HeldName || c.loose {
		return
	}
	c.through = false
	c.use.Part, c.use.Product = true, c.use.Product || v.Product
	if v.Makes == query.MakesDigits || c.held.Kind == canon.HeldYear ||
		v.Makes == query.MakesTime && c.held.Kind == canon.HeldDay || v.Negates && c.held.Unsigned && h.extremes {
		h.analysis.Refuse(c.reason)
		return
	}
	for i := range v.Parts {
		if part := &v.Parts[i]; !h.parts[part] {
			h.parts[part] = true // a recursive one leads back here
			h.part(c, v.of.side(part, true))
			delete(h.parts, part)
		}
	}
}

// part judges what a value is computed from.
func (h *holder) part(c heldCheck, s side) {
	for _, x := range s.spots {
		if !partOf(c.held, x.column().held, c.use.Product) {
			h.analysis.Refuse(c.reason)
		}
	}
	for i := range s.values {
		if v := &s.values[i]; v.Kind == query.TermComputed {
			h.computed(c, v)
		} else {
			h.check(c, &v.Term)
		}
	}
}

// computable are kinds that are compared alike with a derived table's column of
// whatever type a computation gives it.
func computable(k canon.HeldKind) bool {
	switch k {
	case canon.HeldText, canon.HeldBytes, canon.HeldNumber, canon.HeldDay, canon.HeldMoment:
		return true
	}
	return false
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
