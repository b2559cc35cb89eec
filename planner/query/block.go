package query

// Block is one SELECT: the outer query, an arm of a set operation, a subquery,
// a derived table or a common table expression. Blocks say where a statement
// reads its tables and what every row has to pass, as the text has it; which
// column a name means only the catalog can tell.
type Block struct {
	// Outer is the index of the block it stands in, -1 for none.
	Outer int
	// Sees says which of Outer's FROM items its names may mean, and so which
	// conditions hold whenever its answer matters.
	Sees Sight
	// Node is the join whose ON it stands in (SeesJoin), or the item that it is
	// (SeesBefore).
	Node int
	// From is the root of its tree of joins in Analysis.Nodes, -1 without FROM.
	From int
	// Where are the ANDed conditions of WHERE that are understood; whatever
	// else stands there only takes more rows away.
	Where []Conjunct
	// Named are all columns named in it but not in a block inside it.
	Named []Named
	// Aliases are the names its select list gives.
	Aliases []string
	// Fields are the members of its select list (MySQL).
	Fields []Field
	// Opaque are names that qualify columns of which nothing is known (an alias
	// of a join).
	Opaque []string
}

// Sight says what of the block around it a block's names may mean.
type Sight uint8

const (
	// SeesNothing: a derived table or a common table expression. It sees what
	// its outer block sees, but nothing of that block itself.
	SeesNothing Sight = iota
	// SeesRows: it is evaluated for rows that have passed the outer block's
	// WHERE, or as a part of it.
	SeesRows
	// SeesJoin: it stands in the ON of Node, and sees the items under it.
	SeesJoin
	// SeesBefore: LATERAL. It sees the items before Node.
	SeesBefore
	// SeesUnclear: it may see any of them; nothing is concluded.
	SeesUnclear
)

// NodeKind is a kind of FROM item.
type NodeKind uint8

const (
	Leaf NodeKind = iota
	Inner
	Left
	Right
	Full
)

// Node is a FROM item: a table or what stands for one, or a join of two.
// Leaves are numbered in the order of the text.
type Node struct {
	Kind NodeKind
	// A and B are what a join joins.
	A, B int
	On   []Conjunct
	// Using are the columns that a join compares by name.
	Using   []string
	Natural bool

	// Table is a leaf's index in Analysis.Tables, -1 when it is no table that
	// the catalog knows: a derived table, a function, a common table expression.
	Table int
	// Schema and Name qualify a leaf's columns; Name is "" when nothing does.
	Schema, Name string
	// Renamed tells that its columns go by other names than the catalog's.
	Renamed bool
	// Answer is what a leaf that is no table returns; nil when that is not known
	// (MySQL).
	Answer *Answer
	// Whole tells that a leaf is read by columns that are not named: those that
	// decide the partition of a row, when partitions are selected.
	Whole bool
}

// Column is a column as a text names it.
type Column struct{ Schema, Table, Name string }

// Named is a column, or with the name "" all columns, at a place of a block.
type Named struct {
	Column
	// Node is the join whose ON names it, AtRows or AtUnclear.
	Node int
}

const (
	// AtRows is where all FROM items of the block can be named.
	AtRows = -1
	// AtUnclear is where perhaps not all can: a function's argument in FROM.
	AtUnclear = -2
)

// Relation is what a Conjunct says of its column.
type Relation uint8

const (
	// Equals: the column is one of Sources.
	Equals Relation = iota
	// Same: the column equals the column Other.
	Same
	// AtLeast and AtMost: the column is not less, not more than Sources[0]
	// (a strict comparison counts as its looser sister).
	AtLeast
	AtMost
	// Between: the column is between Sources[0] and Sources[1].
	Between
)

// Conjunct is a condition that no row passes with NULL in its columns.
type Conjunct struct {
	Relation Relation
	Column   Column
	Other    Column
	Sources  []Source
}
