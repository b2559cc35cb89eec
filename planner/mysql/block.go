package mysql

import (
	"reflect"
	"slices"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"freshet/planner/query"
)

// A builder finds the blocks of a query: who reads which table where, under
// which conditions. It visits what the walker visits, in the same order of
// scopes; if the two do not count the same tables and columns, there is a
// corner of the grammar that the builder does not know, and nothing it found
// is used.
type builder struct {
	analysis *query.Analysis
	sources  func(list []ast.ExprNode) []query.Source
	// ctes are the common table expressions in sight, see walker.ctes.
	ctes []cte
	// places are where columns are named, lists which block has a select list.
	places map[*ast.ColumnName]place
	lists  map[*ast.FieldList]int
	tables []int // how often each of analysis.Tables was met
	named  int   // how many names of columns were met
	seen   []map[query.Named]bool
	lost   bool
}

// cte is a common table expression and what it returns.
type cte struct {
	name   string
	answer *query.Answer
}

// blocks completes an analysis with the blocks of its query.
func (w *walker) blocks(stmt ast.Node) {
	if w.whole {
		return
	}
	b := &builder{analysis: w.analysis, sources: w.sources, tables: make([]int, len(w.analysis.Tables)),
		places: make(map[*ast.ColumnName]place), lists: make(map[*ast.FieldList]int)}
	w.analysis.Answer = &query.Answer{Arms: b.query(stmt, place{outer: -1, sees: query.SeesNothing})}
	ok := !b.lost && b.named == w.named
	for i, t := range w.analysis.Tables {
		ok = ok && b.tables[i] == t.Uses
	}
	if !ok {
		w.analysis.Blocks, w.analysis.Nodes, w.analysis.Answer = nil, nil, nil
		return
	}
	w.places = b.places
	for list, block := range b.lists {
		w.analysis.Blocks[block].Fields = w.fields(list, block)
	}
}

// place is where a block stands.
type place struct {
	outer int
	sees  query.Sight
	node  int
	// exists tells that only the existence of its rows is asked for.
	exists bool
}

// inside is the place of a subquery in an expression of a block; node is
// query.Named.Node.
func inside(block, node int) place {
	switch node {
	case query.AtRows:
		return place{outer: block, sees: query.SeesRows}
	case query.AtUnclear:
		return place{outer: block, sees: query.SeesUnclear}
	}
	return place{outer: block, sees: query.SeesJoin, node: node}
}

// open adds a block.
func (b *builder) open(p place) int {
	b.analysis.Blocks = append(b.analysis.Blocks, query.Block{Outer: p.outer, Sees: p.sees, Node: p.node, From: -1})
	b.seen = append(b.seen, make(map[query.Named]bool))
	return len(b.analysis.Blocks) - 1
}

// query visits a SELECT, or what stands for several, and returns the blocks whose
// rows it returns.
func (b *builder) query(n ast.Node, p place) (arms []int) {
	mark := len(b.ctes)
	switch n := n.(type) {
	case *ast.SelectStmt:
		arms = []int{b.selects(n, p)}
	case *ast.SubqueryExpr:
		arms = b.query(n.Query, p)
	case *ast.SetOprStmt:
		arms = b.setOperation(n.With, n.SelectList.With, n.SelectList.Selects, p, n.OrderBy, n.Limit, n.SelectList.OrderBy, n.SelectList.Limit)
	case *ast.SetOprSelectList:
		arms = b.setOperation(n.With, nil, n.Selects, p, n.OrderBy, n.Limit)
	default:
		b.lost = true
	}
	b.ctes = b.ctes[:mark]
	return arms
}

// setOperation visits the arms as blocks of their own. ORDER BY and LIMIT after
// them stand in a block without FROM: they can name only what the arms return.
func (b *builder) setOperation(with, more *ast.WithClause, arms []ast.Node, p place, rest ...ast.Node) (of []int) {
	p.exists = false // INTERSECT and EXCEPT compare what their arms return
	all := b.open(p)
	b.with(with, all)
	b.with(more, all)
	for _, arm := range arms {
		of = append(of, b.query(arm, p)...)
	}
	for _, n := range rest {
		b.walk(reflect.ValueOf(n), all, query.AtRows)
	}
	return of
}

// with visits common table expressions: each is in sight of those after it, a
// recursive one of itself too.
func (b *builder) with(with *ast.WithClause, block int) {
	if with == nil {
		return
	}
	for _, c := range with.CTEs {
		known := cte{name: c.Name.O, answer: &query.Answer{Names: names(c.ColNameList)}}
		recursive := with.IsRecursive || c.IsRecursive
		if recursive {
			b.ctes = append(b.ctes, known)
		}
		known.answer.Arms = b.query(c.Query, place{outer: block, sees: query.SeesNothing})
		if !recursive {
			b.ctes = append(b.ctes, known)
		}
	}
}

func names(list []ast.CIStr) []string {
	var out []string
	for _, n := range list {
		out = append(out, n.L)
	}
	return out
}

func (b *builder) selects(n *ast.SelectStmt, p place) int {
	block := b.open(p)
	b.with(n.With, block)
	if n.From != nil && n.From.TableRefs != nil {
		b.analysis.Blocks[block].From = b.from(n.From.TableRefs, block)
	}
	if n.Where != nil {
		where := b.conjuncts(nil, n.Where)
		b.analysis.Blocks[block].Where = where
		b.walk(reflect.ValueOf(n.Where), block, query.AtRows)
	}
	if n.Kind == ast.SelectStmtKindTable {
		b.name(block, query.Named{Node: query.AtRows})
	}
	v := reflect.ValueOf(n).Elem()
	for i := range v.NumField() {
		switch f := v.Type().Field(i); f.Name {
		case "From", "Where", "With":
		case "Fields":
			b.fields(n.Fields, block, p.exists && !n.Distinct)
		default:
			if f.IsExported() {
				b.walk(v.Field(i), block, query.AtRows)
			}
		}
	}
	return block
}

// fields visits a select list. Under EXISTS a star reads nothing; after DISTINCT
// it does, for OFFSET counts what is left.
func (b *builder) fields(list *ast.FieldList, block int, exists bool) {
	if list == nil {
		return
	}
	b.lists[list] = block
	for _, f := range list.Fields {
		if f.WildCard != nil && exists {
			b.named++
			continue
		}
		if f.AsName.L != "" {
			b.analysis.Blocks[block].Aliases = append(b.analysis.Blocks[block].Aliases, f.AsName.L)
		}
		b.walk(reflect.ValueOf(f), block, query.AtRows)
	}
}

// from visits a FROM item and returns its node.
func (b *builder) from(n ast.ResultSetNode, block int) int {
	switch n := n.(type) {
	case *ast.Join:
		if n.Right == nil {
			return b.from(n.Left, block)
		}
		return b.join(n, block)
	case *ast.TableSource:
		switch source := n.Source.(type) {
		case *ast.TableName:
			return b.table(source, n.AsName.O)
		case *ast.Join:
			return b.from(source, block)
		case *ast.SelectStmt, *ast.SetOprStmt:
			answer := &query.Answer{Names: names(n.ColumnNames)}
			leaf := b.node(query.Node{Kind: query.Leaf, Table: -1, Name: n.AsName.O, Answer: answer})
			p := place{outer: block, sees: query.SeesNothing}
			if n.Lateral {
				p.sees, p.node = query.SeesBefore, leaf
			}
			answer.Arms = b.query(source, p)
			return leaf
		}
	}
	b.lost = true
	return b.node(query.Node{Kind: query.Leaf, Table: -1})
}

func (b *builder) node(n query.Node) int {
	b.analysis.Nodes = append(b.analysis.Nodes, n)
	return len(b.analysis.Nodes) - 1
}

func (b *builder) join(n *ast.Join, block int) int {
	j := query.Node{Kind: query.Inner, Natural: n.NaturalJoin}
	switch n.Tp {
	case ast.LeftJoin:
		j.Kind = query.Left
	case ast.RightJoin:
		j.Kind = query.Right
	case ast.CrossJoin, 0: // NATURAL JOIN has none
	default:
		b.lost = true
	}
	j.A = b.from(n.Left, block)
	j.B = b.from(n.Right, block)
	for _, c := range n.Using {
		j.Using = append(j.Using, c.Name.L)
		b.named++
	}
	node := b.node(j)
	for i, name := range j.Using {
		b.name(block, query.Named{Column: query.Column{Name: name}, Node: node})
		b.places[n.Using[i]] = inside(block, node)
	}
	if n.On != nil {
		b.analysis.Nodes[node].On = b.conjuncts(nil, n.On.Expr)
		b.walk(reflect.ValueOf(n.On.Expr), block, node)
	}
	return node
}

// table makes the leaf of a table's name.
func (b *builder) table(n *ast.TableName, alias string) int {
	leaf := query.Node{Kind: query.Leaf, Table: -1, Schema: n.Schema.O, Name: n.Name.O, Whole: len(n.PartitionNames) > 0}
	if alias != "" {
		leaf.Name = alias
	}
	i := len(b.ctes) - 1
	for ; i >= 0 && (n.Schema.L != "" || b.ctes[i].name != n.Name.O); i-- {
	}
	if i >= 0 {
		leaf.Answer = b.ctes[i].answer
	} else {
		leaf.Table = slices.IndexFunc(b.analysis.Tables, func(t query.Table) bool {
			return t.Name == query.Name{Schema: n.Schema.O, Name: n.Name.O}
		})
		if leaf.Table < 0 {
			b.lost = true
		} else {
			b.tables[leaf.Table]++
		}
	}
	return b.node(leaf)
}

// name notes that a block names a column.
func (b *builder) name(block int, n query.Named) {
	if !b.seen[block][n] {
		b.seen[block][n] = true
		b.analysis.Blocks[block].Named = append(b.analysis.Blocks[block].Named, n)
	}
}

// walk visits an expression for the columns it names and the queries in it.
func (b *builder) walk(v reflect.Value, block, node int) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			b.walk(v.Elem(), block, node)
		}
	case reflect.Slice:
		for i := range v.Len() {
			b.walk(v.Index(i), block, node)
		}
	case reflect.Struct:
		b.structure(v, block, node)
	}
}

func (b *builder) structure(v reflect.Value, block, node int) {
	t := v.Type()
	if t.PkgPath() != astPackage {
		return
	}
	if v.CanAddr() {
		switch n := v.Addr().Interface().(type) {
		case *ast.SelectStmt:
			b.query(n, inside(block, node))
			return
		case *ast.SetOprStmt:
			b.query(n, inside(block, node))
			return
		case *ast.ExistsSubqueryExpr:
			p := inside(block, node)
			p.exists = true
			b.query(n.Sel, p)
			return
		case *ast.ColumnName:
			b.named++
			b.name(block, query.Named{Column: columnOf(n), Node: node})
			b.places[n] = inside(block, node)
			return
		case *ast.WildCardField:
			b.named++
			b.name(block, query.Named{Column: query.Column{Schema: n.Schema.O, Table: n.Table.O}, Node: node})
			return
		case *ast.TableName, *ast.Join, *ast.TableSource, *ast.SetOprSelectList, *ast.WithClause:
			b.lost = true
			return
		case *ast.TableOptimizerHint, *ast.HintTable:
			return
		}
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && f.Type != withPointer {
			b.walk(v.Field(i), block, node)
		}
	}
}
