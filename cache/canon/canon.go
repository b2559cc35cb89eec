// Package canon turns column values into canonical bytes: whenever the
// database holds two values to be equal, their canonical bytes are the same.
// The planner applies it to literals and parameters, the feed to row images,
// so that a change finds the answers that depend on it. Making two unequal
// values alike costs a needless miss; making two equal ones differ would be a
// wrong answer, so whatever is not proven is refused (ok == false).
package canon

// Kind says how values of one column are compared.
type Kind uint8

const (
	// None: equality is not proven for this column; it never joins a shape.
	None Kind = iota
	// Int: every integer type of either dialect, signed or not, BIT not included.
	Int
	// Decimal: DECIMAL/NUMERIC (1.19 equals 1.190). NaN and infinities are refused.
	Decimal
	// Bytes: byte equality (PostgreSQL text/varchar under a deterministic
	// collation, bytea, MySQL VARBINARY/BLOB).
	Bytes
	// BytesTrim: byte equality once trailing spaces and zero bytes are dropped
	// (PostgreSQL bpchar, MySQL BINARY(n), *_bin collations with PAD SPACE).
	BytesTrim
	// FoldASCII: text under a collation that ignores case, accents or padding.
	// ASCII is folded to lower case and trailing spaces dropped; a value with
	// any byte outside 0x20..0x7E is refused.
	FoldASCII
	// FoldUTF8: the same for text in UTF-8, whose Latin, Greek, Cyrillic and
	// Japanese letters are folded too, and whose Han and Hangul characters
	// stand for themselves; a value with any other character is refused.
	FoldUTF8
	// UUID: PostgreSQL uuid.
	UUID
	// Bool: PostgreSQL boolean.
	Bool
	// Date: a calendar day without a time.
	Date
	// Bytea: PostgreSQL bytea, whose text form is hexadecimal.
	Bytea
	// DateTime: a day and a time as the clock on the wall shows them
	// (PostgreSQL timestamp, MySQL DATETIME), to the microsecond.
	DateTime
	// Instant: a moment in time (PostgreSQL timestamptz), to the microsecond.
	Instant
)

var kindNames = [...]string{
	None: "none", Int: "int", Decimal: "decimal", Bytes: "bytes", BytesTrim: "bytes-trim",
	FoldASCII: "fold-ascii", FoldUTF8: "fold-utf8", UUID: "uuid", Bool: "bool", Date: "date", Bytea: "bytea", DateTime: "datetime", Instant: "instant",
}

// String names the kind for traces and tests.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// IsText tells whether values of this kind are strings whose bytes depend on
// the character set they are written in.
func (k Kind) IsText() bool {
	return k == Bytes || k == BytesTrim || k == FoldASCII || k == FoldUTF8
}
