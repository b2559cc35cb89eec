package mysql

import (
	"sort"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"

	"freshet/planner/query"
)

// key finds the equalities that every row of the answer satisfies: those ANDed
// in the WHERE of a SELECT from one table.
func (w *walker) key(sel *ast.SelectStmt) {
	if sel.From == nil || sel.From.TableRefs == nil || sel.Where == nil || w.whole || sel.Kind != ast.SelectStmtKindSelect {
		return
	}
	join := sel.From.TableRefs
	source, ok := join.Left.(*ast.TableSource)
	if !ok || join.Right != nil {
		return
	}
	name, ok := source.Source.(*ast.TableName)
	if !ok || w.isCTE(sel, name) {
		return
	}
	table := -1
	for i, t := range w.analysis.Tables {
		if t.Name == (query.Name{Schema: name.Schema.O, Name: name.Name.O}) && t.Uses == 1 {
			table = i
		}
	}
	if table < 0 {
		return
	}
	k := &query.Key{Table: table}
	w.conditions(k, from{source, name}, sel.Where)
	if len(k.Conditions) == 0 {
		return
	}
	if w.queries == 1 && !w.star {
		k.Reads = w.columns
	}
	w.analysis.Key = k
}

func (w *walker) isCTE(sel *ast.SelectStmt, name *ast.TableName) bool {
	if sel.With == nil || name.Schema.L != "" {
		return false
	}
	for _, cte := range sel.With.CTEs {
		if cte.Name.L == name.Name.L {
			return true
		}
	}
	return false
}

// from is the one table of a SELECT.
type from struct {
	source *ast.TableSource
	name   *ast.TableName
}

// conditions gathers the equalities under ANDs; whatever else stands there
// only narrows the answer further.
func (w *walker) conditions(k *query.Key, f from, e ast.ExprNode) {
	c := query.Condition{}
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		w.conditions(k, f, e.Expr)
		return
	case *ast.BinaryOperationExpr:
		switch e.Op {
		case opcode.LogicAnd:
			w.conditions(k, f, e.L)
			w.conditions(k, f, e.R)
			return
		case opcode.EQ:
			left, right := e.L, e.R
			if _, ok := left.(*ast.ColumnNameExpr); !ok {
				left, right = right, left
			}
			c.Column = f.column(left)
			c.Sources = w.sources([]ast.ExprNode{right})
		}
	case *ast.PatternInExpr:
		if !e.Not && e.Sel == nil {
			c.Column = f.column(e.Expr)
			c.Sources = w.sources(e.List)
		}
	}
	if c.Column != "" && c.Sources != nil {
		k.Conditions = append(k.Conditions, c)
	}
}

// column returns the name of a column of the table, "" if e is none.
func (f from) column(e ast.ExprNode) string {
	c, ok := e.(*ast.ColumnNameExpr)
	if !ok {
		return ""
	}
	goesBy := f.source.AsName
	if goesBy.L == "" {
		goesBy = f.name.Name
	}
	if t := c.Name.Table; t.L != "" && t.O != goesBy.O {
		return ""
	}
	if s := c.Name.Schema; s.L != "" && s.O != f.name.Schema.O {
		return ""
	}
	return c.Name.Name.L
}

// sources reads the compared values; nil unless all are parameters.
func (w *walker) sources(list []ast.ExprNode) []query.Source {
	var out []query.Source
	for _, e := range list {
		for {
			p, ok := e.(*ast.ParenthesesExpr)
			if !ok {
				break
			}
			e = p.Expr
		}
		m, ok := e.(*test_driver.ParamMarkerExpr)
		if !ok {
			return nil
		}
		out = append(out, query.Source{Param: sort.SearchInts(w.markers, m.Offset)})
	}
	return out
}
