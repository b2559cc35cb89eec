package postgres

import (
	pg "github.com/pganalyze/pg_query_go/v6"
)

// timeTypes are the types whose input reads 'now' and its kin as a time that
// moves on.
var timeTypes = words(`date time timestamp timestamptz timetz daterange tsrange tstzrange datemultirange tsmultirange tstzmultirange`)

// castToTime looks at what is cast to a type: text that becomes a time may say
// 'now'. Literals and parameters are looked at by value, columns by their type
// in the catalog; other expressions must not give text.
func (w *walker) castToTime(to *pg.TypeName, arg *pg.Node) {
	n := nameOf(to.GetNames())
	if n.Name == "timetz" {
		w.analysis.Refuse("a time with time zone may depend on today's offset")
	}
	if timeTypes[n.Name] {
		w.readAsTime(arg)
	}
}

func (w *walker) readAsTime(n *pg.Node) {
	if columns, ok := timely(n); ok {
		w.analysis.TimeColumns = append(w.analysis.TimeColumns, columns...)
		return
	}
	w.analysis.Refuse("text that is read as a time may say 'now'")
}

// timely tells whether an expression surely gives no text but that of literals
// and parameters, provided that the columns it returns hold none.
func timely(n *pg.Node) (columns []string, ok bool) {
	switch v := n.GetNode().(type) {
	case *pg.Node_AConst, *pg.Node_ParamRef, *pg.Node_SqlvalueFunction:
		return nil, true
	case *pg.Node_ColumnRef:
		return []string{nameOf(v.ColumnRef.GetFields()).Name}, true
	case *pg.Node_TypeCast:
		return nil, timeTypes[nameOf(v.TypeCast.GetTypeName().GetNames()).Name]
	case *pg.Node_FuncCall:
		name := nameOf(v.FuncCall.GetFuncname()).Name
		if timeFunctions[name] {
			return nil, true
		}
		if passing[name] {
			return allTimely(v.FuncCall.GetArgs())
		}
	case *pg.Node_AExpr:
		name := nameOf(v.AExpr.GetName()).Name
		return nil, v.AExpr.GetKind() == pg.A_Expr_Kind_AEXPR_OP && (name == "+" || name == "-")
	case *pg.Node_CoalesceExpr:
		return allTimely(v.CoalesceExpr.GetArgs())
	case *pg.Node_MinMaxExpr:
		return allTimely(v.MinMaxExpr.GetArgs())
	}
	return nil, false
}

func allTimely(list []*pg.Node) (columns []string, ok bool) {
	for _, n := range list {
		c, ok := timely(n)
		if !ok {
			return nil, false
		}
		columns = append(columns, c...)
	}
	return columns, true
}

var (
	// timeFunctions give times.
	timeFunctions = words(`date_trunc date_bin timezone to_timestamp to_date make_date make_timestamp make_timestamptz
		make_time now transaction_timestamp statement_timestamp clock_timestamp`)
	// passing give one of their arguments.
	passing = words(`max min lag lead first_value last_value nth_value generate_series`)
)

// functionAsTime looks at calls that read text as a time: the name of a type
// with one argument is a cast, and JSON is turned into records of any type.
func (w *walker) functionAsTime(v *pg.FuncCall) {
	name := nameOf(v.GetFuncname()).Name
	switch {
	case timeTypes[name] && len(v.GetArgs()) == 1:
		w.readAsTime(v.GetArgs()[0])
	case records[name]:
		w.analysis.Refuse(name + "() may read text as a time")
	}
}

var records = words(`json_populate_record json_populate_recordset json_to_record json_to_recordset
	jsonb_populate_record jsonb_populate_recordset jsonb_to_record jsonb_to_recordset`)
