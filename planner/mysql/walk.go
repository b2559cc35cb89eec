package mysql

import (
	"reflect"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	"github.com/pingcap/tidb/pkg/parser/test_driver"

	"freshet/planner/query"
)

// A walker visits every node of a tree by reflection, so that no table,
// function or parameter is missed in a field that the parser's own visitors
// leave out.
type walker struct {
	analysis *query.Analysis
	// ctes are the names of the common table expressions in sight. One that
	// differs from a table's name in case alone is not taken for it: the table
	// is then read too often, never too seldom.
	ctes    []string
	markers []int // offsets of the parameters
	columns []string
	named   int // how many columns and stars
	// compared are what compares values, and what tells them apart.
	compared []ast.Node
	// harmless are calls of TIME() that meet no date, formats those of STR_TO_DATE.
	harmless map[*ast.FuncCallExpr]bool
	formats  []ast.ExprNode
	// places are where the columns stand, nil when that is not known.
	places map[*ast.ColumnName]place
	// whole is set by what reads more of a table than the rows it returns.
	whole bool
}

var (
	astPackage  = reflect.TypeFor[ast.SelectStmt]().PkgPath()
	markerType  = reflect.TypeFor[test_driver.ParamMarkerExpr]()
	withPointer = reflect.TypeFor[*ast.WithClause]()
)

func (w *walker) walk(n any) { w.value(reflect.ValueOf(n)) }

func (w *walker) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			w.value(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			w.value(v.Index(i))
		}
	case reflect.Struct:
		w.structure(v)
	}
}

func (w *walker) structure(v reflect.Value) {
	t := v.Type()
	if t == markerType {
		w.markers = append(w.markers, int(v.FieldByName("Offset").Int()))
		return
	}
	if t.PkgPath() != astPackage {
		return
	}
	mark := len(w.ctes)
	if v.CanAddr() {
		if w.leaf(v.Addr().Interface()) {
			return
		}
	}
	if with := v.FieldByName("With"); with.IsValid() && with.Type() == withPointer && !with.IsNil() {
		w.with(with.Interface().(*ast.WithClause))
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && f.Type != withPointer {
			w.value(v.Field(i))
		}
	}
	w.ctes = w.ctes[:mark]
}

// with visits common table expressions: each is in sight of those after it, a
// recursive one of itself too.
func (w *walker) with(with *ast.WithClause) {
	for _, cte := range with.CTEs {
		if with.IsRecursive || cte.IsRecursive {
			w.ctes = append(w.ctes, cte.Name.O)
			w.walk(cte.Query)
			continue
		}
		w.walk(cte.Query)
		w.ctes = append(w.ctes, cte.Name.O)
	}
}

// leaf notes what a node says by itself; true means that what is below it is
// not to be visited.
func (w *walker) leaf(n any) bool {
	a := w.analysis
	w.note(n)
	switch n := n.(type) {
	case *ast.SelectStmt:
		w.selected(n)
	case *ast.TableName:
		w.table(n)
	case *ast.ColumnName:
		w.columns = append(w.columns, n.Name.L)
		w.named++
	case *ast.SetOprStmt:
		a.United = true
	case *ast.WildCardField:
		w.named++
		a.Wildcard = true
	case *ast.FuncCallExpr:
		// DATE '…' and its kin are calls of names that nobody can write.
		name := strings.TrimPrefix(n.FnName.L, "'tidb`.(")
		w.function(n.Schema.L, name, len(n.Args))
		a.TimeOfDay = a.TimeOfDay || timeOfDay[name] && !keepsDate(name, n.Args) && !w.harmless[n]
		w.format(name, n.Args)
		a.NeedsDate = a.NeedsDate || needsDate[name]
	case *ast.FuncCastExpr:
		if n.Tp != nil {
			a.TimeOfDay = a.TimeOfDay || n.Tp.GetType() == mysql.TypeDuration
			a.NeedsDate = a.NeedsDate || n.Tp.GetType() == mysql.TypeDatetime || n.Tp.GetType() == mysql.TypeDate
		}
	case *ast.VariableExpr:
		w.variable(n)
	case *ast.MatchAgainst:
		w.whole = true // its rank may depend on other rows
	case *ast.TableOptimizerHint, *ast.HintTable:
		return true
	case *ast.ValuesExpr:
		a.Refuse("VALUES() outside of an INSERT")
	case *ast.DefaultExpr:
		a.Refuse("DEFAULT() may be an expression of its own")
	case *ast.JSONSumCrc32Expr:
		a.Refuse("a function that is not known")
	}
	return false
}

// selected notes the clauses of a SELECT that forbid keeping its answer.
func (w *walker) selected(n *ast.SelectStmt) {
	a := w.analysis
	if n.LockInfo != nil && n.LockInfo.LockType != ast.SelectLockNone {
		a.Class = a.Class.Worse(query.ClassWrite)
		a.Refuse("a locking read")
	}
	if n.SelectIntoOpt != nil {
		a.Class = query.ClassOther
		a.Refuse("SELECT … INTO")
	}
	if n.SelectStmtOpts != nil && n.CalcFoundRows {
		a.Refuse("SQL_CALC_FOUND_ROWS leaves a count behind")
	}
}

func (w *walker) table(n *ast.TableName) {
	if n.Schema.L == "" {
		for _, name := range w.ctes {
			if name == n.Name.O {
				return
			}
		}
	}
	if n.TableSample != nil || n.AsOf != nil {
		w.analysis.Refuse("a sample or an older version of a table")
	}
	w.analysis.AddTable(query.Name{Schema: n.Schema.O, Name: n.Name.O}, false)
}

// variable notes a user or system variable.
func (w *walker) variable(n *ast.VariableExpr) {
	a := w.analysis
	a.ReadsSession = true
	switch {
	case n.Value != nil:
		a.Class = a.Class.Worse(query.ClassSession)
		a.Refuse("it sets the variable @" + n.Name)
	case n.IsSystem:
		a.Refuse("the system variable @@" + n.Name)
	default:
		a.Refuse("the user variable @" + n.Name)
	}
}

// function looks a function up in the lists of functions.go.
func (w *walker) function(schema, name string, args int) {
	a := w.analysis
	what := functionOf(name, args)
	if schema != "" && !strings.HasPrefix(what.reason, "its answer") {
		what = function{class: query.ClassOther, reason: "the function " + schema + "." + name + " is stored"}
	}
	a.Class = a.Class.Worse(what.class)
	a.ReadsSession = a.ReadsSession || what.session
	if what.reason != "" {
		a.Refuse(what.reason)
	}
}
