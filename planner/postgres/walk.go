package postgres

import (
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"freshet/planner/query"
)

// A walker visits every node of a tree, whatever its type, so that no table,
// function or parameter is missed in a corner of the grammar it has no case
// for.
type walker struct {
	analysis *query.Analysis
	// ctes are the names of the common table expressions in sight.
	ctes []string
	// names are what the statement itself names: columns of its select lists,
	// aliases and their columns.
	names map[string]bool
	// bases are the names by which base tables go, derived those of other
	// FROM items.
	bases, derived map[string]bool
	anyDerived     bool            // there are FROM items that are no base tables
	renamed        map[string]bool // names that aliases give columns
	attributes     [][2]string     // qualifier, name
	columns        []string
	named          int  // how many references to columns
	policy         bool // it may ask who the user is
}

func (w *walker) node(n *pg.Node) {
	if n != nil {
		w.message(n.ProtoReflect())
	}
}

// message visits one message and what is below it.
func (w *walker) message(m protoreflect.Message) {
	switch v := m.Interface().(type) {
	case *pg.SelectStmt:
		w.scoped(v.GetWithClause(), m)
		return
	case *pg.InsertStmt:
		w.writes()
		w.scoped(v.GetWithClause(), m)
		return
	case *pg.UpdateStmt:
		w.writes()
		w.scoped(v.GetWithClause(), m)
		return
	case *pg.DeleteStmt:
		w.writes()
		w.scoped(v.GetWithClause(), m)
		return
	case *pg.MergeStmt:
		w.writes()
		w.scoped(v.GetWithClause(), m)
		return
	default:
		w.leaf(v)
	}
	w.children(m, "")
}

func (w *walker) writes() {
	w.analysis.Class = w.analysis.Class.Worse(query.ClassWrite)
	w.analysis.Refuse("it changes data")
}

// leaf notes what a node says by itself.
func (w *walker) leaf(v any) {
	a := w.analysis
	switch v := v.(type) {
	case *pg.RangeVar:
		w.table(v)
	case *pg.RangeSubselect:
		w.anyDerived = true
		w.name(&w.derived, v.GetAlias().GetAliasname())
	case *pg.RangeFunction:
		w.anyDerived = true
		w.name(&w.derived, v.GetAlias().GetAliasname())
	case *pg.JoinExpr:
		w.joined(v)
		w.name(&w.derived, v.GetAlias().GetAliasname())
	case *pg.Alias:
		w.strings(v.GetColnames())
		for _, n := range v.GetColnames() {
			w.name(&w.renamed, n.GetString_().GetSval())
		}
	case *pg.CommonTableExpr:
		w.strings(v.GetAliascolnames())
	case *pg.ColumnDef:
		w.name(&w.names, v.GetColname())
	case *pg.ResTarget:
		w.name(&w.names, v.GetName())
	case *pg.FuncCall:
		name := nameOf(v.GetFuncname())
		w.name(&w.names, name.Name) // an unnamed select item goes by its function's name
		a.Functions = append(a.Functions, query.Function{Name: name, Args: len(v.GetArgs()), Typed: best(v.GetArgs())})
		w.functionAsTime(v)
	case *pg.TypeCast:
		w.castToTime(v.GetTypeName(), v.GetArg())
	case *pg.JsonFuncExpr:
		a.Refuse("an SQL/JSON function may read text as a time")
	case *pg.TypeName:
		w.typeName(v)
	case *pg.SQLValueFunction:
		if w.policy && tellsUser(v.GetOp()) {
			return
		}
		a.Refuse(valueFunction(v.GetOp()) + " is not the same at every call or for every user")
	case *pg.ParamRef:
		w.param(int(v.GetNumber()))
	case *pg.A_Const:
		if s := v.GetSval(); s != nil && query.TimeWord(s.GetSval()) {
			a.Refuse("a string that may be read as the current time")
		}
	case *pg.LockingClause:
		a.Class = a.Class.Worse(query.ClassWrite)
		a.Refuse("a locking read")
	case *pg.IntoClause:
		w.into(v)
	case *pg.RangeTableSample:
		a.Refuse("TABLESAMPLE picks rows by chance")
	case *pg.RangeTableFunc:
		a.Refuse("XMLTABLE is not followed")
	case *pg.JsonTable:
		a.Refuse("JSON_TABLE is not followed")
	default:
		w.expression(v)
	}
}

// expression notes what operators and names of columns say.
func (w *walker) expression(v any) {
	switch v := v.(type) {
	case *pg.A_Expr:
		w.operation(v)
	case *pg.SubLink:
		w.compared(v)
	case *pg.CaseExpr:
		w.cases(v)
	case *pg.SortBy:
		if len(v.GetUseOp()) > 0 {
			w.operator(v.GetUseOp(), query.Operand{}, query.Operand{})
		}
	case *pg.ColumnRef:
		w.named++
		w.column(v.GetFields())
	case *pg.A_Indirection:
		for _, n := range v.GetIndirection() {
			if s := n.GetString_(); s != nil {
				w.attributes = append(w.attributes, [2]string{"", s.GetSval()})
				w.columns = append(w.columns, s.GetSval())
			}
		}
	}
}

// scoped visits a statement whose WITH clause is in sight of all of it.
func (w *walker) scoped(with *pg.WithClause, m protoreflect.Message) {
	mark := len(w.ctes)
	if with != nil {
		w.with(with)
	}
	w.children(m, "with_clause")
	w.ctes = w.ctes[:mark]
}

// with visits common table expressions: one is in sight of those after it, and
// under RECURSIVE of all.
func (w *walker) with(with *pg.WithClause) {
	if with.GetRecursive() {
		for _, n := range with.GetCtes() {
			w.ctes = append(w.ctes, n.GetCommonTableExpr().GetCtename())
		}
	}
	for _, n := range with.GetCtes() {
		w.node(n)
		w.ctes = append(w.ctes, n.GetCommonTableExpr().GetCtename())
	}
}

// children visits every message below m but the one in the field named skip.
func (w *walker) children(m protoreflect.Message, skip protoreflect.Name) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.Message() == nil || f.Name() == skip {
			return true
		}
		if !f.IsList() {
			w.message(v.Message())
			return true
		}
		for i, list := 0, v.List(); i < list.Len(); i++ {
			w.message(list.Get(i).Message())
		}
		return true
	})
}

func (w *walker) table(v *pg.RangeVar) {
	if v.GetSchemaname() == "" {
		for _, name := range w.ctes {
			if name == v.GetRelname() {
				w.anyDerived = true
				w.name(&w.derived, goesBy(v))
				return
			}
		}
	}
	w.name(&w.bases, goesBy(v))
	if v.GetRelpersistence() == "t" || v.GetSchemaname() == "pg_temp" {
		w.analysis.Refuse("a temporary table")
	}
	w.analysis.AddTable(query.Name{Schema: v.GetSchemaname(), Name: v.GetRelname()}, !v.GetInh())
}

// goesBy is the name that qualifies a FROM item's columns.
func goesBy(v *pg.RangeVar) string {
	if alias := v.GetAlias().GetAliasname(); alias != "" {
		return alias
	}
	return v.GetRelname()
}

func (w *walker) name(set *map[string]bool, name string) {
	if name == "" {
		return
	}
	if *set == nil {
		*set = make(map[string]bool)
	}
	(*set)[name] = true
}

func (w *walker) strings(list []*pg.Node) {
	for _, n := range list {
		w.name(&w.names, n.GetString_().GetSval())
	}
}

// maxParam is how many parameters a Bind can carry.
const maxParam = 65535

func (w *walker) param(number int) {
	if number < 1 || number > maxParam {
		w.analysis.Refuse("a parameter number out of range")
		return
	}
	for len(w.analysis.Params) < number {
		w.analysis.Params = append(w.analysis.Params, 0)
	}
	w.analysis.Params[number-1]++
}
