package postgres

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"freshet/planner/query"
)

// A builder finds the blocks of a query: who reads which table where, under
// which conditions. It visits what the walker visits, in the same order of
// scopes; if the two do not count the same tables and columns, there is a
// corner of the grammar that the builder does not know, and nothing it found
// is used.
type builder struct {
	analysis *query.Analysis
	ctes     []string
	tables   []int // how often each of analysis.Tables was met
	named    int   // how many references to columns were met
	seen     []map[query.Named]bool
	lost     bool
}

// blocks completes an analysis with the blocks of its query.
func (w *walker) blocks(sel *pg.SelectStmt) {
	b := &builder{analysis: w.analysis, tables: make([]int, len(w.analysis.Tables))}
	b.query(sel, place{outer: -1, sees: query.SeesNothing})
	ok := !b.lost && b.named == w.named
	for i, t := range w.analysis.Tables {
		ok = ok && b.tables[i] == t.Uses
	}
	if !ok {
		w.analysis.Blocks, w.analysis.Nodes = nil, nil
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

// query visits a SELECT, or a set operation: its arms are blocks of their own,
// and ORDER BY and LIMIT after them stand in a block without FROM, for they can
// name only what the arms return.
func (b *builder) query(sel *pg.SelectStmt, p place) {
	mark := len(b.ctes)
	block := b.open(p)
	b.with(sel.GetWithClause(), block)
	if sel.GetOp() != pg.SetOperation_SETOP_NONE {
		p.exists = false // INTERSECT and EXCEPT compare what their arms return
		b.query(sel.GetLarg(), p)
		b.query(sel.GetRarg(), p)
		b.rest(sel, block, "with_clause", "larg", "rarg")
	} else {
		b.from(sel.GetFromClause(), block)
		where := conjuncts(nil, sel.GetWhereClause())
		b.analysis.Blocks[block].Where = where
		b.targets(sel.GetTargetList(), block, p.exists && len(sel.GetDistinctClause()) == 0)
		b.rest(sel, block, "with_clause", "from_clause", "target_list")
	}
	b.ctes = b.ctes[:mark]
}

// with visits common table expressions: one is in sight of those after it, and
// under RECURSIVE of all.
func (b *builder) with(with *pg.WithClause, block int) {
	if with.GetRecursive() {
		for _, n := range with.GetCtes() {
			b.ctes = append(b.ctes, n.GetCommonTableExpr().GetCtename())
		}
	}
	for _, n := range with.GetCtes() {
		cte := n.GetCommonTableExpr()
		if sel := cte.GetCtequery().GetSelectStmt(); sel != nil {
			b.query(sel, place{outer: block, sees: query.SeesNothing})
		} else {
			b.lost = true
		}
		b.ctes = append(b.ctes, cte.GetCtename())
		// SEARCH and CYCLE name columns of the expression itself.
		b.children(cte.ProtoReflect(), block, query.AtUnclear, "ctequery")
	}
}

// targets visits a select list. Under EXISTS a star reads nothing; after
// DISTINCT it does, for OFFSET counts what is left.
func (b *builder) targets(list []*pg.Node, block int, exists bool) {
	for _, n := range list {
		target := n.GetResTarget()
		if name := target.GetName(); name != "" {
			b.analysis.Blocks[block].Aliases = append(b.analysis.Blocks[block].Aliases, name)
		}
		if fields := target.GetVal().GetColumnRef().GetFields(); exists && len(fields) > 0 && fields[len(fields)-1].GetAStar() != nil {
			b.named++
			continue
		}
		b.walk(n, block, query.AtRows)
	}
}

// from visits FROM: items with commas between them are joined without ON.
func (b *builder) from(list []*pg.Node, block int) {
	root := -1
	for _, n := range list {
		node := b.item(n, block, hidden{})
		if root >= 0 {
			node = b.node(query.Node{Kind: query.Inner, A: root, B: node})
		}
		root = node
	}
	b.analysis.Blocks[block].From = root
}

// hidden tells what an alias of a join hides of the items in it.
type hidden struct{ names, columns bool }

func (b *builder) node(n query.Node) int {
	b.analysis.Nodes = append(b.analysis.Nodes, n)
	return len(b.analysis.Nodes) - 1
}

// item visits a FROM item and returns its node.
func (b *builder) item(n *pg.Node, block int, h hidden) int {
	leaf := query.Node{Kind: query.Leaf, Table: -1}
	switch v := n.GetNode().(type) {
	case *pg.Node_JoinExpr:
		return b.join(v.JoinExpr, block, h)
	case *pg.Node_RangeVar:
		b.table(v.RangeVar, &leaf)
	case *pg.Node_RangeSubselect:
		leaf.Name = v.RangeSubselect.GetAlias().GetAliasname()
		return b.derived(v.RangeSubselect, block, leaf, h)
	case *pg.Node_RangeFunction:
		leaf.Name = v.RangeFunction.GetAlias().GetAliasname()
		b.walk(n, block, query.AtUnclear)
	default:
		b.lost = true
	}
	return b.leaf(leaf, h)
}

func (b *builder) leaf(n query.Node, h hidden) int {
	if h.names {
		n.Name = ""
	}
	n.Renamed = n.Renamed || h.columns
	return b.node(n)
}

func (b *builder) derived(v *pg.RangeSubselect, block int, leaf query.Node, h hidden) int {
	node := b.leaf(leaf, h)
	p := place{outer: block, sees: query.SeesNothing}
	if v.GetLateral() {
		p.sees, p.node = query.SeesBefore, node
	}
	if sel := v.GetSubquery().GetSelectStmt(); sel != nil {
		b.query(sel, p)
	} else {
		b.lost = true
	}
	return node
}

// table completes the leaf of a table's name.
func (b *builder) table(v *pg.RangeVar, leaf *query.Node) {
	leaf.Schema, leaf.Name = v.GetSchemaname(), goesBy(v)
	leaf.Renamed = len(v.GetAlias().GetColnames()) > 0
	if v.GetAlias() != nil {
		leaf.Schema = "" // an alias is not qualified
	}
	if v.GetSchemaname() == "" && slices.Contains(b.ctes, v.GetRelname()) {
		return
	}
	leaf.Table = slices.IndexFunc(b.analysis.Tables, func(t query.Table) bool {
		return t.Name == query.Name{Schema: v.GetSchemaname(), Name: v.GetRelname()} && t.Only == !v.GetInh()
	})
	if leaf.Table < 0 {
		b.lost = true
		return
	}
	b.tables[leaf.Table]++
}

func (b *builder) join(v *pg.JoinExpr, block int, h hidden) int {
	j := query.Node{Natural: v.GetIsNatural()}
	switch v.GetJointype() {
	case pg.JoinType_JOIN_INNER:
		j.Kind = query.Inner
	case pg.JoinType_JOIN_LEFT:
		j.Kind = query.Left
	case pg.JoinType_JOIN_RIGHT:
		j.Kind = query.Right
	case pg.JoinType_JOIN_FULL:
		j.Kind = query.Full
	default:
		b.lost = true
		j.Kind = query.Full
	}
	for _, alias := range []*pg.Alias{v.GetAlias(), v.GetJoinUsingAlias()} {
		if alias != nil {
			b.analysis.Blocks[block].Opaque = append(b.analysis.Blocks[block].Opaque, alias.GetAliasname())
		}
	}
	// The alias hides names from what stands around the join, but not from its
	// own ON: with one, nothing is said of what ON names.
	within := hidden{names: h.names || v.GetAlias() != nil, columns: h.columns || len(v.GetAlias().GetColnames()) > 0}
	j.A = b.item(v.GetLarg(), block, within)
	j.B = b.item(v.GetRarg(), block, within)
	for _, n := range v.GetUsingClause() {
		j.Using = append(j.Using, n.GetString_().GetSval())
	}
	if !within.names {
		j.On = conjuncts(nil, v.GetQuals())
	}
	node := b.node(j)
	for _, name := range j.Using {
		b.name(block, query.Named{Column: query.Column{Name: name}, Node: node})
	}
	b.walk(v.GetQuals(), block, node)
	return node
}

// name notes that a block names a column.
func (b *builder) name(block int, n query.Named) {
	if !b.seen[block][n] {
		b.seen[block][n] = true
		b.analysis.Blocks[block].Named = append(b.analysis.Blocks[block].Named, n)
	}
}

// rest visits what a SELECT has besides the fields that are skipped.
func (b *builder) rest(sel *pg.SelectStmt, block int, skip ...protoreflect.Name) {
	b.children(sel.ProtoReflect(), block, query.AtRows, skip...)
}

// walk visits an expression for the columns it names and the queries in it.
func (b *builder) walk(n *pg.Node, block, node int) {
	if n != nil {
		b.message(n.ProtoReflect(), block, node)
	}
}

func (b *builder) message(m protoreflect.Message, block, node int) {
	switch v := m.Interface().(type) {
	case *pg.SelectStmt:
		b.query(v, inside(block, node))
		return
	case *pg.SubLink:
		if sel := v.GetSubselect().GetSelectStmt(); v.GetSubLinkType() == pg.SubLinkType_EXISTS_SUBLINK && sel != nil {
			p := inside(block, node)
			p.exists = true
			b.query(sel, p)
			return
		}
	case *pg.ColumnRef:
		b.named++
		b.name(block, query.Named{Column: columnOf(v), Node: node})
		return
	case *pg.RangeVar, *pg.JoinExpr, *pg.InsertStmt, *pg.UpdateStmt, *pg.DeleteStmt, *pg.MergeStmt, *pg.WithClause, *pg.RangeSubselect:
		b.lost = true
		return
	}
	b.children(m, block, node)
}

// children visits every message below m but those in the fields skipped.
func (b *builder) children(m protoreflect.Message, block, node int, skip ...protoreflect.Name) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil || slices.Contains(skip, f.Name()):
		case f.IsList():
			for i, list := 0, v.List(); i < list.Len(); i++ {
				b.message(list.Get(i).Message(), block, node)
			}
		default:
			b.message(v.Message(), block, node)
		}
		return true
	})
}
