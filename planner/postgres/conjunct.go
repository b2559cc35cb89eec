package postgres

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"freshet/planner/query"
)

// columnOf reads a reference to a column, `t.*` and `*` as the name "". A
// database before the schema is dropped, since it can only be the current one.
func columnOf(v *pg.ColumnRef) query.Column {
	var c query.Column
	for _, f := range v.GetFields() {
		c.Schema, c.Table, c.Name = c.Table, c.Name, f.GetString_().GetSval()
	}
	return c
}

// conjuncts appends the conditions under ANDs that are understood. OR, NOT and
// whatever else stands there may let a row pass that fails a condition in them:
// nothing in them counts.
func conjuncts(dst []query.Conjunct, n *pg.Node) []query.Conjunct {
	if and := n.GetBoolExpr(); and != nil {
		if and.GetBoolop() == pg.BoolExprType_AND_EXPR {
			for _, arg := range and.GetArgs() {
				dst = conjuncts(dst, arg)
			}
		}
		return dst
	}
	e := n.GetAExpr()
	if e == nil || len(e.GetName()) != 1 {
		return dst
	}
	operator := e.GetName()[0].GetString_().GetSval()
	switch e.GetKind() {
	case pg.A_Expr_Kind_AEXPR_OP:
		return comparison(dst, operator, e.GetLexpr(), e.GetRexpr())
	case pg.A_Expr_Kind_AEXPR_IN:
		if operator == "=" { // NOT IN has "<>"
			return in(dst, e.GetLexpr(), e.GetRexpr().GetList().GetItems())
		}
	case pg.A_Expr_Kind_AEXPR_OP_ANY:
		if operator == "=" {
			return anyOf(dst, e.GetLexpr(), e.GetRexpr())
		}
	case pg.A_Expr_Kind_AEXPR_BETWEEN:
		if items := e.GetRexpr().GetList().GetItems(); len(items) == 2 {
			return conjunct(dst, query.Between, e.GetLexpr(), items)
		}
	}
	return dst
}

// in reads IN. A list of rows holds each column to the values it has in them.
func in(dst []query.Conjunct, left *pg.Node, list []*pg.Node) []query.Conjunct {
	row := left.GetRowExpr().GetArgs()
	if row == nil {
		return conjunct(dst, query.Equals, left, list)
	}
	for i, column := range row {
		var values []*pg.Node
		for _, n := range list {
			if of := n.GetRowExpr().GetArgs(); len(of) == len(row) {
				values = append(values, of[i])
			}
		}
		if len(values) == len(list) {
			dst = conjunct(dst, query.Equals, column, values)
		}
	}
	return dst
}

// anyOf reads `column = ANY (array)`: the array is a parameter, or written out.
func anyOf(dst []query.Conjunct, left, right *pg.Node) []query.Conjunct {
	if array := right.GetAArrayExpr(); array != nil {
		return conjunct(dst, query.Equals, left, array.GetElements())
	}
	n := len(dst)
	s := query.Source{Array: true}
	if cast := right.GetTypeCast(); cast != nil {
		t := cast.GetTypeName()
		if len(t.GetTypmods()) > 0 || len(t.GetArrayBounds()) != 1 || t.GetSetof() {
			return dst
		}
		s.Cast = nameOf(t.GetNames())
		right = cast.GetArg()
	}
	if right.GetParamRef().GetNumber() < 1 {
		return dst
	}
	if dst = conjunct(dst, query.Equals, left, []*pg.Node{right}); len(dst) > n {
		s.Param = int(right.GetParamRef().GetNumber()) - 1
		dst[n].Sources = []query.Source{s}
	}
	return dst
}

func comparison(dst []query.Conjunct, operator string, left, right *pg.Node) []query.Conjunct {
	if l, r := left.GetRowExpr().GetArgs(), right.GetRowExpr().GetArgs(); l != nil || r != nil {
		if operator == "=" && len(l) == len(r) {
			for i := range l {
				dst = comparison(dst, operator, l[i], r[i])
			}
		}
		return dst
	}
	turned := left.GetColumnRef() == nil
	if turned {
		left, right = right, left
	}
	switch operator {
	case "=":
		if left.GetColumnRef() != nil && right.GetColumnRef() != nil {
			a, b := columnOf(left.GetColumnRef()), columnOf(right.GetColumnRef())
			if a.Name == "" || b.Name == "" {
				return dst
			}
			return append(dst, query.Conjunct{Relation: query.Same, Column: a, Other: b})
		}
		return conjunct(dst, query.Equals, left, []*pg.Node{right})
	case ">=", ">":
		return conjunct(dst, orTurned(query.AtLeast, query.AtMost, turned), left, []*pg.Node{right})
	case "<=", "<":
		return conjunct(dst, orTurned(query.AtMost, query.AtLeast, turned), left, []*pg.Node{right})
	}
	return dst
}

func orTurned(r, other query.Relation, turned bool) query.Relation {
	if turned {
		return other
	}
	return r
}

// conjunct appends a comparison of a column with parameters, if it is one.
func conjunct(dst []query.Conjunct, r query.Relation, column *pg.Node, values []*pg.Node) []query.Conjunct {
	ref := column.GetColumnRef()
	if ref == nil {
		return dst
	}
	c := columnOf(ref)
	list := sources(values)
	if c.Name == "" || list == nil {
		return dst
	}
	return append(dst, query.Conjunct{Relation: r, Column: c, Sources: list})
}

// sources reads the compared values; nil unless all are parameters, alone or
// cast to a type without modifiers.
func sources(list []*pg.Node) []query.Source {
	var out []query.Source
	for _, n := range list {
		var s query.Source
		if cast := n.GetTypeCast(); cast != nil {
			t := cast.GetTypeName()
			if len(t.GetTypmods()) > 0 || len(t.GetArrayBounds()) > 0 || t.GetSetof() {
				return nil
			}
			s.Cast = nameOf(t.GetNames())
			n = cast.GetArg()
		}
		p := n.GetParamRef()
		if p == nil || p.GetNumber() < 1 {
			return nil
		}
		s.Param = int(p.GetNumber()) - 1
		out = append(out, s)
	}
	return out
}
