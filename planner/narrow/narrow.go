// Package narrow works out which rows and columns of each table a statement's
// answer can depend on: for every place where a table is read, the equalities
// and ranges that a row has to satisfy to matter, and the columns that are
// read. It knows neither values nor servers.
//
// A row "does not matter" at a place when the statement's answer is the same
// with it and without it, whatever else the tables hold. All that is concluded
// here is of that kind; see facts.go for why each step holds.
package narrow

import (
	"freshet/planner/query"
)

const (
	// maxLeaves, maxBlocks and maxConjuncts bound the work; a statement with
	// more is not narrowed.
	maxLeaves    = 40
	maxBlocks    = 100
	maxConjuncts = 300
)

// Ref is a column of one of the statement's tables.
type Ref struct{ Table, Ordinal int }

// Input is what is known of a statement and its tables.
type Input struct {
	Analysis *query.Analysis
	// Columns holds the ordinals of each table's columns by name; nil where the
	// columns are not known, or the name may stand for several tables.
	Columns []map[string]int
	// Fold tells that the server may compare the names of tables without case.
	Fold bool
	// Alike tells whether equality carries over: two equal values of two alike
	// columns have the same canonical bytes. It must be an equivalence.
	Alike func(a, b Ref) bool
}

// Reference is one place where a table is read.
type Reference struct {
	Table int
	// Equal are columns that a row must have one of some values in, each
	// column once.
	Equal []Equal
	// Ranges are columns whose value must lie within bounds, none of Equal's.
	Ranges []Range
	// Reads are the ordinals of the columns read, unless All.
	Reads []int
	All   bool
}

// Equal says that a column is one of Sources. Of is the column that the text
// compares them with: this one, or an alike one that equals it.
type Equal struct {
	Ordinal int
	Of      Ref
	Sources []query.Source
}

// Range says that a column is not less than Low and not more than High.
type Range struct {
	Ordinal   int
	Low, High Bound
	// Between tells that the two stand in one BETWEEN.
	Between bool
}

// Bound is one bound and the column that the text compares it with.
type Bound struct {
	Of     Ref
	Source query.Source
}

// References lists the places where tables are read. ok is false when they are
// not known: every table then counts whole.
func References(in Input) (refs []Reference, ok bool) {
	a := in.Analysis
	if len(a.Blocks) == 0 || len(a.Blocks) > maxBlocks {
		return nil, false
	}
	s := &statement{in: in, nodes: a.Nodes, blocks: a.Blocks}
	if !s.index() {
		return nil, false
	}
	s.gather()
	s.flow()
	reads := s.reads()
	for i := range s.nodes {
		if s.nodes[i].Kind != query.Leaf || s.nodes[i].Table < 0 {
			continue
		}
		ref := Reference{Table: s.nodes[i].Table, All: reads[i].all, Reads: reads[i].sorted()}
		if s.columns(i) != nil {
			s.conclude(&ref, i)
		}
		refs = append(refs, ref)
	}
	return refs, true
}

// statement is one analysis being worked on.
type statement struct {
	in     Input
	nodes  []query.Node
	blocks []query.Block
	// home is the block that a node's FROM belongs to, leaves the leaves under
	// it, in order.
	home   []int
	leaves [][]int

	facts  []fact
	where  []set // per block: WHERE
	on     []set // per node: ON and USING
	within []set // per node: what holds of its rows that matter
	inside []set // per node: what holds where its ON is evaluated
	rows   []set // per block: what holds of its rows that matter
	around []set // per block: what holds of the rows it sees from outside
}

// index finds out what stands under what; false when it is too much.
func (s *statement) index() bool {
	s.home = make([]int, len(s.nodes))
	s.leaves = make([][]int, len(s.nodes))
	count := 0
	for i := range s.nodes {
		if s.nodes[i].Kind == query.Leaf {
			s.leaves[i] = []int{i}
			count++
			continue
		}
		// Joins come after what they join.
		n := &s.nodes[i]
		s.leaves[i] = append(append([]int{}, s.leaves[n.A]...), s.leaves[n.B]...)
	}
	for b := range s.blocks {
		s.settle(s.blocks[b].From, b)
	}
	return count <= maxLeaves
}

func (s *statement) settle(node, block int) {
	if node < 0 {
		return
	}
	s.home[node] = block
	if n := &s.nodes[node]; n.Kind != query.Leaf {
		s.settle(n.A, block)
		s.settle(n.B, block)
	}
}

// columns returns the columns of a leaf by name, nil when they are not known.
func (s *statement) columns(leaf int) map[string]int {
	n := &s.nodes[leaf]
	if n.Table < 0 || n.Renamed {
		return nil
	}
	return s.in.Columns[n.Table]
}

// from returns the leaves of a block's FROM.
func (s *statement) from(block int) []int {
	if root := s.blocks[block].From; root >= 0 {
		return s.leaves[root]
	}
	return nil
}
