package mysql

import (
	"sort"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"

	"freshet/planner/query"
)

// note keeps what compares values; what is on the sides is looked at when the
// parameters are numbered.
func (w *walker) note(n any) {
	a := w.analysis
	switch n := n.(type) {
	case *ast.BinaryOperationExpr:
		if compares(n.Op) {
			w.compared = append(w.compared, n)
			w.meets(n.L, n.R)
		}
	case *ast.PatternInExpr:
		w.compared = append(w.compared, n)
		w.meets(append([]ast.ExprNode{n.Expr}, n.List...)...)
	case *ast.BetweenExpr:
		w.compared = append(w.compared, n)
		w.meets(n.Expr, n.Left, n.Right)
	case *ast.CompareSubqueryExpr, *ast.SelectStmt:
		w.compared = append(w.compared, n.(ast.Node))
	case *ast.AggregateFuncExpr:
		a.Extremes = a.Extremes || extreme(n)
		w.compared = append(w.compared, n)
	case *ast.Join:
		a.Natural = a.Natural || n.NaturalJoin
		w.compared = append(w.compared, n)
	}
}

func extreme(n *ast.AggregateFuncExpr) bool {
	return strings.EqualFold(n.F, ast.AggFuncMax) || strings.EqualFold(n.F, ast.AggFuncMin)
}

func compares(op opcode.Op) bool {
	switch op {
	case opcode.EQ, opcode.NE, opcode.NullEQ, opcode.LT, opcode.LE, opcode.GT, opcode.GE:
		return true
	}
	return false
}

func ordered(op opcode.Op) bool {
	return op == opcode.LT || op == opcode.LE || op == opcode.GT || op == opcode.GE
}

// comparisons takes apart what note kept.
func (w *walker) comparisons() {
	for _, e := range w.formats {
		w.analysis.Formats = append(w.analysis.Formats, w.term(e))
	}
	for _, n := range w.compared {
		switch n := n.(type) {
		case *ast.BinaryOperationExpr:
			w.compare(query.Comparison{Ordered: ordered(n.Op)}, n.L, n.R)
		case *ast.CompareSubqueryExpr:
			w.compare(query.Comparison{Ordered: ordered(n.Op)}, n.L, n.R)
		case *ast.BetweenExpr:
			w.compare(query.Comparison{Between: !n.Not}, n.Expr, n.Left, n.Right)
		case *ast.PatternInExpr:
			if n.Sel != nil {
				w.compare(query.Comparison{}, n.Expr, n.Sel)
			} else {
				w.compare(query.Comparison{}, n.Expr, n.List...)
			}
		case *ast.Join:
			for _, c := range n.Using {
				term := w.columnTerm(c)
				w.analysis.Comparisons = append(w.analysis.Comparisons, query.Comparison{Terms: []query.Term{term, term}})
			}
		case *ast.AggregateFuncExpr:
			if extreme(n) || n.Distinct {
				w.ranked(n.Args)
			}
		case *ast.SelectStmt:
			w.grouped(n)
		}
	}
	w.compared = nil
}

// grouped keeps what DISTINCT and GROUP BY tell apart.
func (w *walker) grouped(n *ast.SelectStmt) {
	if n.Distinct && n.Fields != nil {
		for _, f := range w.fields(n.Fields, -1) {
			w.analysis.Ranked = append(w.analysis.Ranked, f.Term)
		}
	}
	if n.GroupBy != nil {
		for _, item := range n.GroupBy.Items {
			if p, ok := item.Expr.(*ast.PositionExpr); ok && n.Fields != nil && p.N > 0 && p.N <= len(n.Fields.Fields) && n.Fields.Fields[p.N-1].Expr != nil {
				w.ranked([]ast.ExprNode{n.Fields.Fields[p.N-1].Expr})
			} else {
				w.ranked([]ast.ExprNode{item.Expr})
			}
		}
	}
}

func (w *walker) ranked(list []ast.ExprNode) {
	for _, e := range list {
		w.analysis.Ranked = append(w.analysis.Ranked, w.term(e))
	}
}

// fields are the members of a block's select list.
func (w *walker) fields(list *ast.FieldList, block int) []query.Field {
	var out []query.Field
	for _, f := range list.Fields {
		if f.WildCard != nil {
			of := query.Column{Schema: f.WildCard.Schema.O, Table: f.WildCard.Table.O}
			out = append(out, query.Field{Star: true, Term: query.Term{Column: of, Block: block}})
			continue
		}
		field := query.Field{Name: f.AsName.L, Term: w.term(f.Expr)}
		if field.Name == "" && field.Term.Kind == query.TermColumn {
			field.Name = field.Term.Column.Name
		}
		out = append(out, field)
	}
	return out
}

// columnTerm is a column as a term.
func (w *walker) columnTerm(n *ast.ColumnName) query.Term {
	p, ok := w.places[n]
	if !ok {
		p.outer = -1
	}
	return query.Term{Kind: query.TermColumn, Column: columnOf(n), Block: p.outer, Join: p.sees != query.SeesRows}
}

// compare adds a kind of comparison of an expression with others, one for each
// member of a row.
func (w *walker) compare(kind query.Comparison, with ast.ExprNode, others ...ast.ExprNode) {
	left := w.terms(with)
	list := make([]query.Comparison, len(left))
	for i := range left {
		list[i] = kind
		list[i].Terms = left[i]
	}
	for _, o := range others {
		right := w.terms(o)
		for i := range list {
			if len(right) == len(list) {
				list[i].Terms = append(list[i].Terms, right[i]...)
			} else {
				list[i].Terms = append(list[i].Terms, query.Term{Kind: query.TermComputed, Makes: query.MakesDigits})
			}
		}
	}
	if call, ok := bare(with).(*ast.FuncCallExpr); ok && w.harmless[call] {
		list[0].OfDay = true
	}
	for _, o := range others {
		if call, ok := bare(o).(*ast.FuncCallExpr); ok && w.harmless[call] {
			list[0].OfDay = true
		}
	}
	w.analysis.Comparisons = append(w.analysis.Comparisons, list...)
}

// terms are the members of a row, one for what is none. A member of what a
// subquery returns may be several: one for each arm of a set operation.
func (w *walker) terms(e ast.ExprNode) [][]query.Term {
	switch e := bare(e).(type) {
	case *ast.RowExpr:
		out := make([][]query.Term, len(e.Values))
		for i, v := range e.Values {
			out[i] = []query.Term{w.term(v)}
		}
		return out
	case *ast.SubqueryExpr:
		out := w.returned(e.Query)
		for i := range out {
			for k := range out[i] {
				out[i][k].Inner = true
			}
		}
		return out
	default:
		return [][]query.Term{{w.term(e)}}
	}
}

// returned are the columns of a query's answer.
func (w *walker) returned(n ast.Node) [][]query.Term {
	var arms []ast.Node
	switch n := n.(type) {
	case *ast.SelectStmt:
		if n.Fields == nil {
			return nil
		}
		out := make([][]query.Term, len(n.Fields.Fields))
		for i, f := range n.Fields.Fields {
			if out[i] = []query.Term{{Kind: query.TermComputed, Makes: query.MakesDigits}}; f.Expr != nil {
				out[i][0] = w.term(f.Expr)
			}
		}
		return out
	case *ast.SubqueryExpr:
		return w.returned(n.Query)
	case *ast.SetOprStmt:
		arms = n.SelectList.Selects
	case *ast.SetOprSelectList:
		arms = n.Selects
	}
	var out [][]query.Term
	for _, arm := range arms {
		columns := w.returned(arm)
		if out == nil {
			out = make([][]query.Term, len(columns))
		}
		for i := range min(len(out), len(columns)) {
			out[i] = append(out[i], columns[i]...)
		}
	}
	return out
}

// term is what an expression is on the side of a comparison.
func (w *walker) term(e ast.ExprNode) query.Term {
	switch e := bare(e).(type) {
	case *ast.ColumnNameExpr:
		return w.columnTerm(e.Name)
	case *test_driver.ParamMarkerExpr:
		return query.Term{Kind: query.TermParam, Param: sort.SearchInts(w.markers, e.Offset)}
	case *test_driver.ValueExpr:
		return literal(e)
	case *ast.AggregateFuncExpr:
		if extreme(e) && len(e.Args) == 1 {
			return w.term(e.Args[0])
		}
	case *ast.SubqueryExpr:
		if columns := w.returned(e.Query); len(columns) == 1 && len(columns[0]) == 1 {
			columns[0][0].Inner = true
			return columns[0][0]
		}
	case *ast.FuncCallExpr:
		if quoted[e.FnName.L] && len(e.Args) == 1 {
			if v, ok := e.Args[0].(*test_driver.ValueExpr); ok {
				return literal(v)
			}
		}
	}
	t := query.Term{Kind: query.TermComputed}
	w.parts(&t, e)
	return t
}

// quoted are DATE '…' and its kin.
var quoted = map[string]bool{ast.DateLiteral: true, ast.TimeLiteral: true, ast.TimestampLiteral: true}

func literal(v *test_driver.ValueExpr) query.Term {
	t := query.Term{Kind: query.TermLiteral}
	switch v.Kind() {
	case test_driver.KindNull:
		return query.Term{Kind: query.TermComputed}
	case test_driver.KindString, test_driver.KindBytes:
		t.Literal.Text = v.GetString()
	case test_driver.KindMysqlDecimal:
		t.Literal = query.Written{Text: v.GetMysqlDecimal().String(), Number: true}
	case test_driver.KindInt64:
		t.Literal = query.Written{Text: strconv.FormatInt(v.GetInt64(), 10), Number: true}
	case test_driver.KindUint64:
		t.Literal = query.Written{Text: strconv.FormatUint(v.GetUint64(), 10), Number: true}
	case test_driver.KindFloat32, test_driver.KindFloat64:
		t.Literal = query.Written{Text: strconv.FormatFloat(v.GetFloat64(), 'f', -1, 64), Number: true, Double: true}
	case test_driver.KindBinaryLiteral:
		t.Literal = query.Written{Text: string(v.GetBytes()), Bits: true}
	default:
		return query.Term{Kind: query.TermComputed, Makes: query.MakesDigits}
	}
	return t
}

// parts adds what an expression takes its digits from.
func (w *walker) parts(t *query.Term, e ast.ExprNode) {
	switch e := bare(e).(type) {
	case *ast.ColumnNameExpr, *test_driver.ParamMarkerExpr, *test_driver.ValueExpr:
		t.Add(w.term(e))
	case *ast.UnaryOperationExpr:
		t.Negates = true
		w.parts(t, e.V)
	case *ast.BinaryOperationExpr:
		w.operation(t, e)
	case *ast.FuncCallExpr:
		w.call(t, e)
	case *ast.FuncCastExpr:
		w.cast(t, e)
	case *ast.AggregateFuncExpr:
		w.applied(t, strings.ToLower(e.F), e.Args)
	case *ast.WindowFuncExpr:
		w.applied(t, strings.ToLower(e.Name), e.Args)
	case *ast.CaseExpr:
		for _, when := range e.WhenClauses {
			w.parts(t, when.Result)
		}
		if e.ElseClause != nil {
			w.parts(t, e.ElseClause)
		}
	case *ast.SubqueryExpr:
		for _, column := range w.returned(e.Query) {
			for _, of := range column {
				t.Add(of)
			}
		}
	case *ast.PatternInExpr, *ast.BetweenExpr, *ast.CompareSubqueryExpr, *ast.ExistsSubqueryExpr, *ast.IsNullExpr,
		*ast.IsTruthExpr, *ast.PatternLikeOrIlikeExpr, *ast.PatternRegexpExpr:
	default:
		t.Makes = query.MakesDigits
	}
}

func (w *walker) operation(t *query.Term, e *ast.BinaryOperationExpr) {
	switch e.Op {
	case opcode.Plus, opcode.Minus, opcode.Mod:
		t.Negates = t.Negates || e.Op == opcode.Minus
		w.parts(t, e.L)
		w.parts(t, e.R)
	case opcode.Mul:
		t.Product = true // it has as many digits as both together
		w.parts(t, e.L)
		w.parts(t, e.R)
	case opcode.Div:
		t.Makes = query.MakesDigits
	}
}

func (w *walker) call(t *query.Term, e *ast.FuncCallExpr) {
	name := e.FnName.L
	switch {
	case quoted[name]:
		t.Parts = append(t.Parts, w.term(e))
		return
	case name == ast.Round && len(e.Args) == 1:
		return
	case name == ast.Timestamp && len(e.Args) > 1, name == ast.ConvertTz, name == ast.FromUnixTime:
		t.Makes = max(t.Makes, query.MakesTime)
	}
	w.applied(t, name, e.Args)
}

// applied adds the parts of a function's value.
func (w *walker) applied(t *query.Term, name string, args []ast.ExprNode) {
	switch {
	case whole[name]:
	case keeping[name]:
		for i, a := range args {
			unit, isUnit := a.(*ast.TimeUnitExpr)
			switch {
			case isUnit:
				t.Makes = max(t.Makes, made(unit.Unit))
			case name == ast.If && i == 0:
			default:
				w.parts(t, a)
			}
		}
	default:
		t.Makes = query.MakesDigits
	}
}

func (w *walker) cast(t *query.Term, e *ast.FuncCastExpr) {
	if e.Tp == nil {
		t.Makes = query.MakesDigits
		return
	}
	switch e.Tp.GetType() {
	case mysql.TypeLonglong, mysql.TypeDate, mysql.TypeNewDate, mysql.TypeYear:
	case mysql.TypeDatetime, mysql.TypeDuration:
		t.Makes = max(t.Makes, query.MakesTime)
		if e.Tp.GetDecimal() > 0 {
			w.parts(t, e.Expr)
		}
	case mysql.TypeNewDecimal:
		if e.Tp.GetDecimal() > 0 {
			t.Makes = query.MakesDigits
		}
	default:
		w.parts(t, e.Expr)
	}
}

// made is what an interval of a unit adds to a day.
func made(unit ast.TimeUnitType) query.Making {
	switch unit {
	case ast.TimeUnitDay, ast.TimeUnitWeek, ast.TimeUnitMonth, ast.TimeUnitQuarter, ast.TimeUnitYear, ast.TimeUnitYearMonth:
		return query.MakesNothing
	case ast.TimeUnitSecond, ast.TimeUnitMinute, ast.TimeUnitHour, ast.TimeUnitMinuteSecond, ast.TimeUnitHourSecond,
		ast.TimeUnitHourMinute, ast.TimeUnitDaySecond, ast.TimeUnitDayMinute, ast.TimeUnitDayHour:
		return query.MakesTime
	}
	return query.MakesDigits
}

var (
	// whole give a whole number, or a day.
	whole = words(`ascii bit_count bit_length ceil ceiling char_length character_length count crc32 date datediff
		day dayofmonth dayofweek dayofyear dense_rank extract field find_in_set floor from_days hour inet_aton instr interval
		isnull last_day length locate makedate microsecond minute month ntile octet_length ord position quarter rank
		row_number sign strcmp timestampdiff to_days to_seconds week weekday weekofyear year yearweek period_add period_diff
		bit_and bit_or bit_xor`)
	// keeping have no more digits than their arguments; a format in which those
	// would be looked for is seen where the values are.
	keeping = words(`abs adddate addtime any_value coalesce convert_tz date_add date_format date_sub first_value
		from_unixtime greatest if ifnull lag last_value lead least maketime max min mod nth_value nullif sec_to_time
		str_to_date subdate subtime sum time timestamp timestampadd unix_timestamp`)
)
