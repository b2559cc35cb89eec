package mysql

import (
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/test_driver"
)

// timeCall is a call of TIME(x), nil for what is none.
func timeCall(e ast.ExprNode) *ast.FuncCallExpr {
	call, ok := bare(e).(*ast.FuncCallExpr)
	if !ok || call.FnName.L != ast.Time || call.Schema.L != "" || len(call.Args) != 1 {
		return nil
	}
	return call
}

// meets notes the calls of TIME() in a comparison that compares them with each
// other, parameters and literals only: those are held to be times of day, so no
// date completes them.
func (w *walker) meets(sides ...ast.ExprNode) {
	for _, e := range sides {
		switch bare(e).(type) {
		case *test_driver.ParamMarkerExpr, *test_driver.ValueExpr:
		default:
			if timeCall(e) == nil {
				return
			}
		}
	}
	w.spare(sides...)
}

func (w *walker) spare(list ...ast.ExprNode) {
	for _, e := range list {
		if call := timeCall(e); call != nil {
			if w.harmless == nil {
				w.harmless = make(map[*ast.FuncCallExpr]bool)
			}
			w.harmless[call] = true
		}
	}
}

// shown notes the calls of TIME() that a statement returns as they are. What it
// orders or groups by may name them, but in nothing that is computed.
func (w *walker) shown(stmt ast.StmtNode) {
	s, ok := stmt.(*ast.SelectStmt)
	if !ok || s.Fields == nil || s.Having != nil || s.OrderBy != nil && !plain(s.OrderBy.Items) || s.GroupBy != nil && !plain(s.GroupBy.Items) {
		return
	}
	for _, f := range s.Fields.Fields {
		if f.Expr != nil {
			w.spare(f.Expr)
		}
	}
}

func plain(items []*ast.ByItem) bool {
	for _, item := range items {
		switch bare(item.Expr).(type) {
		case *ast.ColumnNameExpr, *ast.PositionExpr:
		default:
			if timeCall(item.Expr) == nil {
				return false
			}
		}
	}
	return true
}

// format keeps the format of STR_TO_DATE; without a constant one it may give
// anything.
func (w *walker) format(name string, args []ast.ExprNode) {
	if name != ast.StrToDate {
		return
	}
	if len(args) == 2 {
		switch e := bare(args[1]).(type) {
		case *test_driver.ParamMarkerExpr, *test_driver.ValueExpr:
			w.formats = append(w.formats, e)
			return
		}
	}
	w.analysis.TimeOfDay, w.analysis.NeedsDate = true, true
}
