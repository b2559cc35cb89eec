package witness

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"freshet/bench/upstream"
)

// table is what is needed to read a table whole and in a fixed order.
type table struct {
	name    string
	columns []string
	order   []string // the primary key, or every column
}

// tablesOf lists the database's tables, leaving out columns of these names.
func tablesOf(ctx context.Context, db *sql.DB, dialect string, leaveOut []string) ([]table, error) {
	schema := "database()"
	if dialect == upstream.DialectPostgres {
		schema = "'public'"
	}
	rows, err := db.QueryContext(ctx, `
		SELECT c.table_name, c.column_name,
		       (SELECT count(*) FROM information_schema.table_constraints tc
		          JOIN information_schema.key_column_usage k
		            ON k.constraint_schema = tc.constraint_schema AND k.constraint_name = tc.constraint_name AND k.table_name = tc.table_name
		         WHERE tc.constraint_type = 'PRIMARY KEY' AND tc.table_schema = c.table_schema
		           AND tc.table_name = c.table_name AND k.column_name = c.column_name)
		  FROM information_schema.columns c
		 WHERE c.table_schema = `+schema+`
		 ORDER BY c.table_name, c.ordinal_position`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var tables []table
	for rows.Next() {
		var name, column string
		var key int
		if err := rows.Scan(&name, &column, &key); err != nil {
			return nil, err
		}
		if len(tables) == 0 || tables[len(tables)-1].name != name {
			tables = append(tables, table{name: name})
		}
		t := &tables[len(tables)-1]
		if !slices.Contains(leaveOut, column) {
			t.columns = append(t.columns, column)
		}
		if key > 0 {
			t.order = append(t.order, column)
		}
	}
	for i := range tables {
		if len(tables[i].order) == 0 {
			tables[i].order = tables[i].columns
		}
	}
	return tables, rows.Err()
}

func (t table) query() string {
	return "SELECT " + strings.Join(t.columns, ", ") + " FROM " + t.name + " ORDER BY " + strings.Join(t.order, ", ")
}

// errDiffer is wrapped by what says that two sides answer differently, as
// opposed to not at all.
var errDiffer = errors.New("the answers differ")

// sameTables compares every row of every table of two databases.
// It returns the number of rows.
func sameTables(ctx context.Context, dialect string, want, got *sql.DB, leaveOut []string) (int, error) {
	tables, err := tablesOf(ctx, want, dialect, leaveOut)
	if err != nil {
		return 0, err
	}
	if len(tables) == 0 {
		return 0, errors.New("no tables to compare")
	}
	total := 0
	for _, t := range tables {
		n, err := sameAnswers(ctx, want, got, t.query())
		total += n
		if err != nil {
			return total, fmt.Errorf("table %s: %w", t.name, err)
		}
	}
	return total, nil
}

// sameAnswers compares two sides' answers to one query, columns first and then
// row by row as they come, so that a large table needs no memory.
func sameAnswers(ctx context.Context, want, got *sql.DB, query string) (int, error) {
	w, err := want.QueryContext(ctx, query)
	if err != nil {
		return 0, err
	}
	defer w.Close()
	g, err := got.QueryContext(ctx, query)
	if err != nil {
		return 0, err
	}
	defer g.Close()
	wanted, err := newReader(w)
	if err != nil {
		return 0, err
	}
	received, err := newReader(g)
	if err != nil {
		return 0, err
	}
	if wanted.header != received.header {
		return 0, fmt.Errorf("%w in their columns:\nwant %s\ngot  %s", errDiffer, wanted.header, received.header)
	}
	for n := 0; ; n++ {
		moreWanted, err := wanted.next()
		if err != nil {
			return n, err
		}
		more, err := received.next()
		if err != nil {
			return n, err
		}
		if moreWanted != more {
			return n, fmt.Errorf("%w after row %d: want more %t, got more %t", errDiffer, n, moreWanted, more)
		}
		if !more {
			return n, nil
		}
		if !slices.EqualFunc(wanted.values, received.values, equalValues) {
			return n, fmt.Errorf("%w in row %d:\nwant %s\ngot  %s", errDiffer, n+1, wanted.text(), received.text())
		}
	}
}

// reader goes through an answer; values are the current row's, as text or nil
// for NULL, and hold until the next row.
type reader struct {
	rows    *sql.Rows
	header  string // names and types of the columns
	values  []sql.RawBytes
	targets []any
}

func newReader(rows *sql.Rows) (*reader, error) {
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	r := &reader{rows: rows, values: make([]sql.RawBytes, len(types)), targets: make([]any, len(types))}
	for i, t := range types {
		r.header += t.Name() + " " + t.DatabaseTypeName() + ", "
		r.targets[i] = &r.values[i]
	}
	return r, nil
}

func (r *reader) next() (bool, error) {
	if !r.rows.Next() {
		return false, r.rows.Err()
	}
	return true, r.rows.Scan(r.targets...)
}

func (r *reader) text() string {
	var text strings.Builder
	for _, v := range r.values {
		if v == nil {
			text.WriteString("NULL ")
		} else {
			fmt.Fprintf(&text, "%q ", v)
		}
	}
	return text.String()
}

// equalValues tells NULL from an empty text.
func equalValues(a, b sql.RawBytes) bool { return (a == nil) == (b == nil) && string(a) == string(b) }

// ask runs the probe for every value and returns one text for each.
func (p Probe) ask(ctx context.Context, db *sql.DB, e Endpoint, mode Mode) ([]string, error) {
	statement := strings.Replace(p.Statement, "?", placeholder(e.Dialect, 1), 1)
	query := func(value int) (*sql.Rows, error) { return db.QueryContext(ctx, statement, value) }
	if mode == Prepared {
		prepared, err := db.PrepareContext(ctx, statement)
		if err != nil {
			return nil, err
		}
		defer prepared.Close()
		query = func(value int) (*sql.Rows, error) { return prepared.QueryContext(ctx, value) }
	}
	answers := make([]string, p.Last)
	for i := range answers {
		rows, err := query(i + 1)
		if err != nil {
			return nil, fmt.Errorf("%s for %d: %w", p.Statement, i+1, err)
		}
		if answers[i], err = allRows(rows); err != nil {
			return nil, fmt.Errorf("%s for %d: %w", p.Statement, i+1, err)
		}
	}
	return answers, nil
}

func allRows(rows *sql.Rows) (string, error) {
	defer rows.Close()
	r, err := newReader(rows)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString(r.header + "\n")
	for {
		more, err := r.next()
		if err != nil || !more {
			return text.String(), err
		}
		text.WriteString(r.text() + "\n")
	}
}

// same compares the probe's answers of two sides.
func (p Probe) same(ctx context.Context, e Endpoint, mode Mode, want, got *sql.DB) error {
	wanted, err := p.ask(ctx, want, e, mode)
	if err != nil {
		return err
	}
	received, err := p.ask(ctx, got, e, mode)
	if err != nil {
		return err
	}
	for i := range wanted {
		if wanted[i] != received[i] {
			return fmt.Errorf("%w, %s, for %d (%s):\nwant %sgot  %s", errDiffer, p.Statement, i+1, mode, wanted[i], received[i])
		}
	}
	return nil
}
