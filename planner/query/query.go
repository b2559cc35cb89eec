// Package query holds what a dialect's parser says of one statement, before
// any catalog was asked: its class, the tables and functions it names and the
// equalities that can narrow what it depends on. It is the only thing that
// planner/mysql and planner/postgres hand to the planner.
package query

import "slices"

// Class is what a statement does, as far as its session must know.
type Class uint8

const (
	// ClassOther: anything not proven harmless; its effect on the session's
	// state is unknown.
	ClassOther Class = iota
	// ClassRead: a SELECT that changes neither data nor session state.
	ClassRead
	// ClassWrite: INSERT, UPDATE, DELETE, REPLACE, MERGE, COPY, LOAD DATA …:
	// changes data, leaves no session state.
	ClassWrite
	// ClassSchema: DDL, TRUNCATE, GRANT and the like on lasting objects.
	ClassSchema
	// ClassTransaction: BEGIN, COMMIT, ROLLBACK, SAVEPOINT and their kin.
	ClassTransaction
	// ClassSession: SET, RESET, USE, DISCARD, PREPARE, DECLARE, LISTEN, LOCK,
	// temporary tables, user variables: changes what the session is.
	ClassSession
)

var classNames = [...]string{"other", "read", "write", "schema", "transaction", "session"}

// String names the class.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "unknown"
}

// severity orders the classes by how much a session has to fear of them.
func (c Class) severity() int {
	if c == ClassOther {
		return int(ClassSession) + 1
	}
	return int(c)
}

// Worse returns the more severe of two classes: a read is the least, then
// write, schema, transaction and session; an unknown effect is the worst.
func (c Class) Worse(d Class) Class {
	if d.severity() > c.severity() {
		return d
	}
	return c
}

// Analysis is what one statement's text says.
type Analysis struct {
	Class Class
	// Reason says in words why the text alone forbids caching; "" if it does not.
	Reason string
	// CreatesTemp tells that the statement makes a temporary relation.
	CreatesTemp bool
	// ReadsSession tells that the answer speaks of what this session did
	// before (LAST_INSERT_ID(), FOUND_ROWS(), currval, user variables …): it
	// must run where those statements ran.
	ReadsSession bool
	// Tables are the tables read, each once, common table expressions left out.
	Tables []Table
	// Functions, Types and Operators are those the catalog must vouch for.
	Functions []Function
	Types     []Name
	Operators []Operation
	// Attributes are names selected from a row (`t.x`, `(f()).x`) that are not
	// named by the statement itself; one that is no column would be a function.
	Attributes []string
	// Columns are all columns named.
	Columns []string
	// TimeColumns are columns whose values are read as times (PostgreSQL):
	// none may hold text.
	TimeColumns []string
	// TimeOfDay tells of functions that give a time of day, NeedsDate of those
	// that would complete one with the current date (MySQL).
	TimeOfDay, NeedsDate bool
	// Formats are those of STR_TO_DATE: whether it gives a day or a time of day
	// hangs on them (MySQL).
	Formats []Term
	// Wildcard tells of a * in a select list, United of UNION and its kin, in which
	// columns meet that are not named.
	Wildcard, United bool
	// Comparisons are those that a column may stand in by itself, Ranked what
	// DISTINCT, GROUP BY, MIN and MAX tell apart or order, Natural tells of joins that
	// compare all columns of a name, Extremes of MIN or MAX (MySQL).
	Comparisons []Comparison
	Ranked      []Term
	Natural     bool
	Extremes    bool
	// Answer is what the statement returns (MySQL).
	Answer *Answer
	// Params counts how often each parameter stands in the text; its length
	// is the highest parameter number.
	Params []int
	// Blocks and Nodes say where the tables are read, the outer block first;
	// empty when that is not known, and then every table counts whole.
	Blocks []Block
	Nodes  []Node
}

// Refuse notes why the statement is not cacheable; the first reason stays.
func (a *Analysis) Refuse(reason string) {
	if a.Reason == "" {
		a.Reason = reason
	}
}

// ForgetValues drops the conditions that compare with parameters.
func (a *Analysis) ForgetValues() {
	keep := func(list []Conjunct) []Conjunct {
		return slices.DeleteFunc(list, func(c Conjunct) bool { return c.Relation != Same })
	}
	for i := range a.Blocks {
		a.Blocks[i].Where = keep(a.Blocks[i].Where)
	}
	for i := range a.Nodes {
		a.Nodes[i].On = keep(a.Nodes[i].On)
	}
}

// Calls counts what may run code that is not built in.
func (a *Analysis) Calls() int {
	return len(a.Functions) + len(a.Types) + len(a.Operators) + len(a.Attributes)
}

// Name is a name as its parser reads it (folded, unquoted); Schema is "" when
// it was not written.
type Name struct{ Schema, Name string }

// String writes the name for people.
func (n Name) String() string {
	if n.Schema == "" {
		return n.Name
	}
	return n.Schema + "." + n.Name
}

// Table is a table that the statement reads.
type Table struct {
	Name
	// Only tells that it is read without the tables that inherit from it
	// (PostgreSQL).
	Only bool
	// Uses counts how often it stands in the statement.
	Uses int
}

// AddTable notes one more use of a table and returns its index.
func (a *Analysis) AddTable(n Name, only bool) int {
	for i := range a.Tables {
		if t := &a.Tables[i]; t.Name == n && t.Only == only {
			t.Uses++
			return i
		}
	}
	a.Tables = append(a.Tables, Table{Name: n, Only: only, Uses: 1})
	return len(a.Tables) - 1
}

// Function is a function call by name.
type Function struct {
	Name
	Args int
	// Typed is one of its arguments whose type is known, if there is one.
	Typed Operand
}

// Operation is an operator at work. Left is opaque for a prefix operator.
type Operation struct {
	Name        string
	Left, Right Operand
}

// Operand is what is known of an operand's type before any catalog was asked.
type Operand struct {
	Kind OperandKind
	// Columns are those that the type hangs on: it is a built-in one if all of
	// theirs are, provided that all functions, operators and types that the
	// statement names are built in.
	Columns []Column
}

// OperandKind orders operands by how much is known.
type OperandKind uint8

const (
	Opaque  OperandKind = iota
	Literal             // a literal or parameter, which takes its type from what stands beside it
	Typed               // see Operand.Columns
)

// Source is one compared parameter.
type Source struct {
	Param int  // from 0
	Cast  Name // PostgreSQL: the type it is cast to; zero if it is not
	// Array tells that the parameter is an array whose elements are compared,
	// and Cast the type of its elements.
	Array bool
}
