// Package row holds what both change streams say about one row: for each
// column of its table, before and after the change, what is known of it.
package row

// State says what an image tells of a column.
type State uint8

const (
	Absent    State = iota // nothing
	Null                   // SQL NULL
	Present                // Raw is the value in the stream's own form
	Altered                // it changed, to a value that is not given whole (MySQL's partial JSON)
	Unchanged              // it did not change, and is not given (PostgreSQL's TOAST)
)

// Value is one column of an image. Raw lies in the message it came with and
// lives as long.
type Value struct {
	State State
	Raw   []byte
}

// Kind is what a change does to its row.
type Kind uint8

const (
	Insert Kind = iota + 1
	Update
	Delete
)

// Images is one row before and after a change; an insert's Old and a delete's
// New are all Absent. It is reused from row to row.
type Images struct{ Old, New []Value }

// Size makes both images n columns long and all Absent.
func (i *Images) Size(n int) {
	i.Old, i.New = sized(i.Old, n), sized(i.New, n)
}

func sized(values []Value, n int) []Value {
	if cap(values) < n {
		return make([]Value, n)
	}
	values = values[:n]
	clear(values)
	return values
}
