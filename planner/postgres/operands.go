package postgres

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"freshet/planner/query"
)

// maxOperandDepth bounds how deep an expression is looked into for its type.
const maxOperandDepth = 8

// operator notes an operator at work.
func (w *walker) operator(list []*pg.Node, left, right query.Operand) {
	n := nameOf(list)
	if n.Schema != "" && n.Schema != "pg_catalog" {
		w.analysis.Class = query.ClassOther
		w.analysis.Refuse("the operator " + n.String() + " is not built in")
	}
	w.operates(n.Name, left, right)
}

func (w *walker) operates(name string, left, right query.Operand) {
	for i := range w.analysis.Operators {
		o := &w.analysis.Operators[i]
		if o.Name == name && same(&o.Left, &left) && same(&o.Right, &right) {
			return
		}
	}
	w.analysis.Operators = append(w.analysis.Operators, query.Operation{Name: name, Left: left, Right: right})
}

func same(a, b *query.Operand) bool { return a.Kind == b.Kind && slices.Equal(a.Columns, b.Columns) }

// operation notes the operators that an expression stands for.
func (w *walker) operation(v *pg.A_Expr) {
	left, right := []*pg.Node{v.GetLexpr()}, []*pg.Node{v.GetRexpr()}
	if l, r := v.GetLexpr().GetRowExpr().GetArgs(), v.GetRexpr().GetRowExpr().GetArgs(); l != nil && len(l) == len(r) {
		left, right = l, r // compared one by one
	}
	for i := range left {
		l, r := operand(left[i], 0), operand(right[i], 0)
		if list := right[i].GetList(); list != nil {
			r = all(list.GetItems(), 0)
		}
		switch v.GetKind() {
		case pg.A_Expr_Kind_AEXPR_BETWEEN, pg.A_Expr_Kind_AEXPR_BETWEEN_SYM:
			w.operates(">=", l, r)
			w.operates("<=", l, r)
		case pg.A_Expr_Kind_AEXPR_NOT_BETWEEN, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM:
			w.operates("<", l, r)
			w.operates(">", l, r)
		default:
			w.operator(v.GetName(), l, r)
		}
	}
}

// compared notes what a subquery's rows are compared with; IN has no operator
// written out.
func (w *walker) compared(v *pg.SubLink) {
	if v.GetTestexpr() == nil {
		return
	}
	left := []*pg.Node{v.GetTestexpr()}
	if row := v.GetTestexpr().GetRowExpr().GetArgs(); row != nil {
		left = row
	}
	for _, n := range left {
		if len(v.GetOperName()) == 0 {
			w.operates("=", operand(n, 0), query.Operand{})
		} else {
			w.operator(v.GetOperName(), operand(n, 0), query.Operand{})
		}
	}
}

// cases notes the comparisons of CASE with an argument.
func (w *walker) cases(v *pg.CaseExpr) {
	if v.GetArg() == nil {
		return
	}
	left := operand(v.GetArg(), 0)
	for _, n := range v.GetArgs() {
		w.operates("=", left, operand(n.GetCaseWhen().GetExpr(), 0))
	}
}

// joined notes the comparisons of USING and NATURAL.
func (w *walker) joined(v *pg.JoinExpr) {
	if v.GetIsNatural() {
		w.operates("=", query.Operand{}, query.Operand{})
	}
	for _, n := range v.GetUsingClause() {
		c := query.Operand{Kind: query.Typed, Columns: []query.Column{{Name: n.GetString_().GetSval()}}}
		w.operates("=", c, c)
	}
}

// operand tells what the text says of an expression's type.
func operand(n *pg.Node, depth int) query.Operand {
	if depth > maxOperandDepth {
		return query.Operand{}
	}
	depth++
	switch v := n.GetNode().(type) {
	case *pg.Node_ParamRef, *pg.Node_AConst:
		return query.Operand{Kind: query.Literal}
	case *pg.Node_ColumnRef:
		if c := columnOf(v.ColumnRef); c.Name != "" {
			return query.Operand{Kind: query.Typed, Columns: []query.Column{c}}
		}
	case *pg.Node_TypeCast, *pg.Node_BoolExpr, *pg.Node_NullTest, *pg.Node_BooleanTest:
		return query.Operand{Kind: query.Typed}
	case *pg.Node_CollateClause:
		return operand(v.CollateClause.GetArg(), depth)
	case *pg.Node_AExpr:
		// An operator that is built in gives a built-in type, if need be the one
		// of its operands.
		return operated(v.AExpr, depth)
	case *pg.Node_FuncCall:
		o := all(v.FuncCall.GetArgs(), depth)
		if o.Kind != query.Opaque {
			o.Kind = query.Typed
		}
		return o
	case *pg.Node_CoalesceExpr:
		return some(v.CoalesceExpr.GetArgs(), depth)
	case *pg.Node_MinMaxExpr:
		return some(v.MinMaxExpr.GetArgs(), depth)
	case *pg.Node_CaseExpr:
		results := []*pg.Node{}
		for _, when := range v.CaseExpr.GetArgs() {
			results = append(results, when.GetCaseWhen().GetResult())
		}
		if rest := v.CaseExpr.GetDefresult(); rest != nil {
			results = append(results, rest)
		}
		return some(results, depth)
	case *pg.Node_AArrayExpr:
		return some(v.AArrayExpr.GetElements(), depth)
	}
	return query.Operand{}
}

// operated is what is known of an operator's value.
func operated(e *pg.A_Expr, depth int) query.Operand {
	switch {
	case e.GetKind() == pg.A_Expr_Kind_AEXPR_NULLIF:
		return atLeast(operand(e.GetLexpr(), depth))
	case e.GetKind() != pg.A_Expr_Kind_AEXPR_OP:
		return query.Operand{Kind: query.Typed} // true or false
	case e.GetLexpr() == nil:
		return atLeast(operand(e.GetRexpr(), depth))
	}
	return atLeast(either(operand(e.GetLexpr(), depth), operand(e.GetRexpr(), depth)))
}

// atLeast makes opaque what is not of a known type.
func atLeast(o query.Operand) query.Operand {
	if o.Kind != query.Typed {
		return query.Operand{}
	}
	return o
}

// either is what is known of something that one of two gives its type.
func either(a, b query.Operand) query.Operand {
	if a.Kind == query.Opaque || b.Kind == query.Opaque {
		return query.Operand{}
	}
	return query.Operand{Kind: max(a.Kind, b.Kind), Columns: slices.Concat(a.Columns, b.Columns)}
}

// some is either for many.
func some(list []*pg.Node, depth int) query.Operand {
	out := query.Operand{Kind: query.Literal}
	for _, n := range list {
		out = either(out, operand(n, depth))
	}
	return out
}

// all is what is known of each one of a list.
func all(list []*pg.Node, depth int) query.Operand {
	out := query.Operand{Kind: query.Typed}
	for _, n := range list {
		o := operand(n, depth)
		out = query.Operand{Kind: min(out.Kind, o.Kind), Columns: slices.Concat(out.Columns, o.Columns)}
	}
	return out
}

// best is a typed one of a call's arguments.
func best(list []*pg.Node) query.Operand {
	for _, n := range list {
		if o := operand(n, 0); o.Kind == query.Typed {
			return o
		}
	}
	return query.Operand{}
}

// settleOperands makes opaque what hangs on a column that may be another than a
// base table's own: only now are all FROM items known.
func (w *walker) settleOperands() {
	for i := range w.analysis.Operators {
		o := &w.analysis.Operators[i]
		w.settle(&o.Left)
		w.settle(&o.Right)
	}
	for i := range w.analysis.Functions {
		w.settle(&w.analysis.Functions[i].Typed)
	}
}

func (w *walker) settle(o *query.Operand) {
	for _, c := range o.Columns {
		based := !w.anyDerived && len(w.derived) == 0
		if c.Table != "" {
			based = w.bases[c.Table] && !w.derived[c.Table]
		}
		if !based || w.renamed[c.Name] {
			*o = query.Operand{}
			return
		}
	}
}
