package query

// Comparison is one comparison of values: what stands on its sides, rows taken
// apart. MySQL and MariaDB turn a value that is compared with a column into the
// column's type where they look it up in an index, and compare it as it is
// where they do not.
type Comparison struct {
	// Ordered tells of <, <=, > and >=, Between of BETWEEN.
	Ordered, Between bool
	// OfDay tells that TIME() stands on one side, and constants or TIME() on the
	// others.
	OfDay bool
	Terms []Term
}

// TermKind is what one side of a comparison is.
type TermKind uint8

const (
	// TermColumn: a column by itself.
	TermColumn TermKind = iota
	// TermParam: a parameter by itself.
	TermParam
	// TermLiteral: a literal that is no parameter of the skeleton.
	TermLiteral
	// TermComputed: whatever else, see Parts.
	TermComputed
)

// Term is one side of a comparison.
type Term struct {
	Kind    TermKind
	Column  Column
	Param   int
	Literal Written
	// Block is the block that names the column, -1 when it is not known; Join
	// tells that it does so in the ON of a join, from where some of the block's
	// tables may not be in sight.
	Block int
	Join  bool
	// Inner tells that a subquery returns it.
	Inner bool
	// Parts are what a computed value takes its digits from, none of them
	// computed themselves; a value that has none of its own has none from elsewhere.
	Parts []Term
	// Makes is what the computation may add to them; Product tells that their
	// digits add up, Negates that it may be less than all of them.
	Makes   Making
	Product bool
	Negates bool
}

// Add takes another term for a part.
func (t *Term) Add(part Term) {
	if part.Kind != TermComputed {
		t.Parts = append(t.Parts, part)
		return
	}
	t.Parts = append(t.Parts, part.Parts...)
	t.Makes = max(t.Makes, part.Makes)
	t.Product = t.Product || part.Product
	t.Negates = t.Negates || part.Negates
}

// Making is what a computed value may have that nothing it is computed from has.
type Making uint8

const (
	// MakesNothing: no more digits, no time of day.
	MakesNothing Making = iota
	// MakesTime: a time of day in whole seconds.
	MakesTime
	// MakesDigits: anything.
	MakesDigits
)

// Written is a literal in a tree.
type Written struct {
	Text string
	// Number tells that it was written without quotes, Bits that it is b'…', x'…' or
	// 0x…, Double that it has an exponent.
	Number, Bits, Double bool
}

// Field is a member of a select list.
type Field struct {
	// Name is what it is called, "" when that hangs on its text.
	Name string
	Term Term
	// Star tells of *, or of all columns of the item Term.Column.Table.
	Star bool
}

// Answer is what a derived table, a common table expression or a statement
// returns: the fields of the blocks Arms, one for each arm of a set operation,
// called by Names, or if that is empty as the first arm calls them.
type Answer struct {
	Arms  []int
	Names []string
}
