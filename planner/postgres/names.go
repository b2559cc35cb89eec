package postgres

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"freshet/planner/query"
)

// nameOf reads a possibly qualified name; a database before the schema is
// dropped, since it can only be the current one.
func nameOf(list []*pg.Node) query.Name {
	var n query.Name
	for _, part := range list {
		n.Schema, n.Name = n.Name, part.GetString_().GetSval()
	}
	return n
}

func (w *walker) typeName(v *pg.TypeName) {
	n := nameOf(v.GetNames())
	if n.Name == "" {
		return
	}
	if strings.HasPrefix(n.Name, "reg") {
		w.analysis.Refuse("the type " + n.Name + " reads the catalog")
	}
	w.analysis.Types = append(w.analysis.Types, n)
}

// column notes a reference to a column, or to a whole row.
func (w *walker) column(fields []*pg.Node) {
	n := nameOf(fields)
	if n.Name == "" {
		return // ends in *, which its own node tells
	}
	switch n.Name {
	case "ctid", "xmin", "xmax", "cmin", "cmax", "tableoid":
		w.analysis.Refuse("the system column " + n.Name)
	}
	w.columns = append(w.columns, n.Name)
	if len(fields) > 1 {
		w.attributes = append(w.attributes, [2]string{n.Schema, n.Name})
	}
}

// finish settles which of the attributes seen the catalog has to know: those
// of base tables, and those that nothing in the statement names.
func (w *walker) finish() {
	w.analysis.Columns = w.columns
	w.settleOperands()
	for _, a := range w.attributes {
		qualifier, name := a[0], a[1]
		if w.bases[qualifier] && !w.derived[qualifier] || !w.names[name] {
			w.analysis.Attributes = append(w.analysis.Attributes, name)
		}
	}
}

// into notes SELECT INTO and CREATE TABLE AS.
func (w *walker) into(v *pg.IntoClause) {
	w.analysis.Refuse("it makes a table")
	w.makes(v.GetRel())
}

// makes notes that a statement creates a relation, temporary or lasting.
func (w *walker) makes(rel *pg.RangeVar) {
	if rel.GetRelpersistence() == "t" || rel.GetSchemaname() == "pg_temp" {
		w.analysis.CreatesTemp = true
		w.analysis.Class = w.analysis.Class.Worse(query.ClassSession)
		return
	}
	w.analysis.Class = w.analysis.Class.Worse(query.ClassSchema)
}

// valueFunction names a keyword that is a function (manual, 9.9.5 and 9.27).
func valueFunction(op pg.SQLValueFunctionOp) string {
	name := strings.TrimPrefix(op.String(), "SVFOP_")
	return strings.TrimSuffix(name, "_N")
}
