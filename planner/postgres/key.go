package postgres

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"freshet/planner/query"
)

// key finds the equalities that every row of the answer satisfies: those ANDed
// in the WHERE of a SELECT from one table.
func (w *walker) key(sel *pg.SelectStmt) {
	if len(sel.GetFromClause()) != 1 || sel.GetWhereClause() == nil || sel.GetOp() != pg.SetOperation_SETOP_NONE {
		return
	}
	from := sel.GetFromClause()[0].GetRangeVar()
	if from == nil || len(from.GetAlias().GetColnames()) > 0 {
		return // aliased columns go by other names than the catalog's
	}
	table := -1
	for i, t := range w.analysis.Tables {
		if t.Name == (query.Name{Schema: from.GetSchemaname(), Name: from.GetRelname()}) && t.Uses == 1 {
			table = i
		}
	}
	if table < 0 || w.isCTE(sel, from) {
		return
	}
	k := &query.Key{Table: table}
	w.conditions(k, from, sel.GetWhereClause())
	if len(k.Conditions) == 0 {
		return
	}
	if w.queries == 1 && !w.star {
		k.Reads = w.columns
	}
	w.analysis.Key = k
}

// isCTE tells whether the FROM item of a SELECT is one of its own common table
// expressions.
func (w *walker) isCTE(sel *pg.SelectStmt, from *pg.RangeVar) bool {
	if from.GetSchemaname() != "" {
		return false
	}
	for _, n := range sel.GetWithClause().GetCtes() {
		if n.GetCommonTableExpr().GetCtename() == from.GetRelname() {
			return true
		}
	}
	return false
}

// conditions gathers the equalities under ANDs; whatever else stands there
// only narrows the answer further.
func (w *walker) conditions(k *query.Key, from *pg.RangeVar, n *pg.Node) {
	if and := n.GetBoolExpr(); and != nil {
		if and.GetBoolop() == pg.BoolExprType_AND_EXPR {
			for _, arg := range and.GetArgs() {
				w.conditions(k, from, arg)
			}
		}
		return
	}
	e := n.GetAExpr()
	if e == nil || len(e.GetName()) != 1 || e.GetName()[0].GetString_().GetSval() != "=" {
		return
	}
	c := query.Condition{}
	switch e.GetKind() {
	case pg.A_Expr_Kind_AEXPR_OP:
		left, right := e.GetLexpr(), e.GetRexpr()
		if left.GetColumnRef() == nil {
			left, right = right, left
		}
		c.Column = columnOf(from, left)
		c.Sources = sources([]*pg.Node{right})
	case pg.A_Expr_Kind_AEXPR_IN:
		c.Column = columnOf(from, e.GetLexpr())
		c.Sources = sources(e.GetRexpr().GetList().GetItems())
	}
	if c.Column != "" && c.Sources != nil {
		k.Conditions = append(k.Conditions, c)
	}
}

// columnOf returns the name of a column of the table, "" if n is none.
func columnOf(from *pg.RangeVar, n *pg.Node) string {
	fields := n.GetColumnRef().GetFields()
	parts := make([]string, len(fields))
	for i, f := range fields {
		if parts[i] = f.GetString_().GetSval(); parts[i] == "" {
			return ""
		}
	}
	switch {
	case len(parts) == 1:
		return parts[0]
	case len(parts) == 2 && parts[0] == goesBy(from):
		return parts[1]
	case len(parts) == 3 && from.GetAlias() == nil && parts[0] == from.GetSchemaname() && parts[1] == from.GetRelname():
		return parts[2]
	}
	return ""
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
