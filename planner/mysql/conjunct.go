package mysql

import (
	"sort"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"

	"freshet/planner/query"
)

func columnOf(n *ast.ColumnName) query.Column {
	return query.Column{Schema: n.Schema.O, Table: n.Table.O, Name: n.Name.L}
}

// conjuncts appends the conditions under ANDs that are understood. OR, NOT, XOR
// and whatever else stands there may let a row pass that fails a condition in
// them: nothing in them counts.
func (b *builder) conjuncts(dst []query.Conjunct, e ast.ExprNode) []query.Conjunct {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return b.conjuncts(dst, e.Expr)
	case *ast.BinaryOperationExpr:
		if e.Op == opcode.LogicAnd {
			return b.conjuncts(b.conjuncts(dst, e.L), e.R)
		}
		return b.comparison(dst, e)
	case *ast.PatternInExpr:
		if !e.Not && e.Sel == nil {
			return b.in(dst, e)
		}
	case *ast.BetweenExpr:
		if !e.Not {
			return b.conjunct(dst, query.Between, e.Expr, e.Left, e.Right)
		}
	}
	return dst
}

// in reads IN. A list of rows holds each column to the values it has in them.
func (b *builder) in(dst []query.Conjunct, e *ast.PatternInExpr) []query.Conjunct {
	row, ok := bare(e.Expr).(*ast.RowExpr)
	if !ok {
		return b.conjunct(dst, query.Equals, e.Expr, e.List...)
	}
	for i, column := range row.Values {
		var values []ast.ExprNode
		for _, v := range e.List {
			if of, ok := bare(v).(*ast.RowExpr); ok && len(of.Values) == len(row.Values) {
				values = append(values, of.Values[i])
			}
		}
		if len(values) == len(e.List) {
			dst = b.conjunct(dst, query.Equals, column, values...)
		}
	}
	return dst
}

func (b *builder) comparison(dst []query.Conjunct, e *ast.BinaryOperationExpr) []query.Conjunct {
	left, right, turned := e.L, e.R, false
	if l, ok := bare(left).(*ast.RowExpr); ok {
		if r, ok := bare(right).(*ast.RowExpr); ok && e.Op == opcode.EQ && len(l.Values) == len(r.Values) {
			for i := range l.Values {
				dst = b.comparison(dst, &ast.BinaryOperationExpr{Op: opcode.EQ, L: l.Values[i], R: r.Values[i]})
			}
		}
		return dst
	}
	if _, ok := bare(left).(*ast.ColumnNameExpr); !ok {
		left, right, turned = right, left, true
	}
	switch e.Op {
	case opcode.EQ:
		l, okL := bare(left).(*ast.ColumnNameExpr)
		r, okR := bare(right).(*ast.ColumnNameExpr)
		if okL && okR {
			return append(dst, query.Conjunct{Relation: query.Same, Column: columnOf(l.Name), Other: columnOf(r.Name)})
		}
		return b.conjunct(dst, query.Equals, left, right)
	case opcode.GE, opcode.GT:
		return b.conjunct(dst, orTurned(query.AtLeast, query.AtMost, turned), left, right)
	case opcode.LE, opcode.LT:
		return b.conjunct(dst, orTurned(query.AtMost, query.AtLeast, turned), left, right)
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
func (b *builder) conjunct(dst []query.Conjunct, r query.Relation, column ast.ExprNode, values ...ast.ExprNode) []query.Conjunct {
	c, ok := bare(column).(*ast.ColumnNameExpr)
	if !ok {
		return dst
	}
	sources := b.sources(values)
	if sources == nil {
		return dst
	}
	return append(dst, query.Conjunct{Relation: r, Column: columnOf(c.Name), Sources: sources})
}

// bare takes brackets off.
func bare(e ast.ExprNode) ast.ExprNode {
	for {
		p, ok := e.(*ast.ParenthesesExpr)
		if !ok {
			return e
		}
		e = p.Expr
	}
}

// sources reads the compared values; nil unless all are parameters.
func (w *walker) sources(list []ast.ExprNode) []query.Source {
	var out []query.Source
	for _, e := range list {
		m, ok := bare(e).(*test_driver.ParamMarkerExpr)
		if !ok {
			return nil
		}
		out = append(out, query.Source{Param: sort.SearchInts(w.markers, m.Offset)})
	}
	return out
}
