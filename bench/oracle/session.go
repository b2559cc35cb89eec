package oracle

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"freshet/bench/wire"
)

// opTimeout ends a statement that a server never answers.
const opTimeout = 30 * time.Second

// how is the way in which a read goes over the wire.
type how uint8

const (
	asText     how = iota // COM_QUERY; Query
	asPrepared            // prepared once per session and kept
	asBinary              // PostgreSQL: prepared, with binary results and integers
)

var howNames = [...]string{"text", "prepared", "binary"}

// read is one statement of a working set. In sql, `?` is a parameter.
type read struct {
	kind    string // what reports call statements of its sort
	sql     string
	args    []any // int64, uint64, string, []byte
	how     how
	ordered bool // the statement orders its rows totally
	views   bool // it names a view
}

func (q *read) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", howNames[q.how], q.sql)
	for i, a := range q.args {
		if s, ok := a.([]byte); ok {
			a = fmt.Sprintf("x'%x'", s)
		}
		fmt.Fprintf(&b, " $%d=%#v", i+1, a)
	}
	return b.String()
}

// step is one statement of a write, or of what makes a round's tables.
type step struct {
	sql  string
	file []byte // what LOAD DATA LOCAL or COPY FROM STDIN gets
}

// answer is a reply without what may differ from one run to the next.
type answer struct {
	head    []byte   // the columns as the protocol describes them
	rows    [][]byte // as they came
	refusal string   // code and message of an error, "" for none
}

// source is where Freshet says that its last answer came from.
type source struct{ place, reason string }

// twoWays tells of an answer that the server itself gave, to what it answers in
// two ways, by an index and without one: its next answer, with nothing changed,
// may be the other one.
func (s source) twoWays() bool {
	return s.place == "upstream" && strings.Contains(s.reason, "in two ways")
}

func (s source) fromCache() bool { return strings.HasPrefix(s.place, "cache") }

// session is one connection, owned by one goroutine. An error is about the
// connection; what the server refuses is part of the answer.
type session interface {
	// ask runs a read; with explain, it also asks Freshet where the answer
	// came from.
	ask(q *read, explain bool) (answer, source, error)
	// forget closes the prepared statement of a read, if there is one.
	forget(q *read) error
	// run runs a statement for its effect; refusal says that the server
	// refused it, and why.
	run(s step) (refusal string, err error)
	close() error
}

// dial opens a session to a server or to Freshet.
func dial(ctx context.Context, t wire.Target) (session, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	if t.Dialect == wire.MySQL {
		return dialMySQL(ctx, t)
	}
	return dialPostgres(ctx, t)
}

// staleDescription is PostgreSQL's refusal of a prepared statement whose
// columns are no longer those that the client was told.
const staleDescription = "0A000 cached plan must not change result type"

// difference says in what b is not a; "" when they are alike.
func difference(a, b *answer, ordered bool) string {
	switch {
	case a.refusal != b.refusal:
		return fmt.Sprintf("refusal %q, not %q", b.refusal, a.refusal)
	case !bytes.Equal(a.head, b.head):
		return "columns" + apart(a.head, b.head)
	}
	x, y := a.rows, b.rows
	if !ordered {
		x, y = sorted(x), sorted(y)
	}
	if len(x) != len(y) {
		return fmt.Sprintf("%d rows, not %d", len(y), len(x))
	}
	for i := range x {
		if !bytes.Equal(x[i], y[i]) {
			return fmt.Sprintf("row %d", i) + apart(x[i], y[i])
		}
	}
	return ""
}

// apart shows where two sides' bytes part.
func apart(direct, through []byte) string {
	at := 0
	for at < len(direct) && at < len(through) && direct[at] == through[at] {
		at++
	}
	return fmt.Sprintf(" from byte %d\n    through %s\n    direct  %s", at, clip(through[max(0, at-40):]), clip(direct[max(0, at-40):]))
}

// clip quotes bytes for people.
func clip(b []byte) string {
	const most = 160
	if len(b) > most {
		return fmt.Sprintf("%q and %d bytes more", b[:most], len(b)-most)
	}
	return fmt.Sprintf("%q", b)
}

func sorted(rows [][]byte) [][]byte {
	if slices.IsSortedFunc(rows, bytes.Compare) {
		return rows
	}
	out := slices.Clone(rows)
	slices.SortFunc(out, bytes.Compare)
	return out
}

// show prints an answer for a report.
func (a *answer) show() string {
	if a.refusal != "" {
		return "refused: " + a.refusal
	}
	const most = 12
	var b strings.Builder
	fmt.Fprintf(&b, "%d rows", len(a.rows))
	for i, row := range a.rows {
		if i == most {
			fmt.Fprintf(&b, "\n      and %d more", len(a.rows)-most)
			break
		}
		fmt.Fprintf(&b, "\n      %s", clip(row))
	}
	return b.String()
}
