package witness

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// copyBatch is the number of rows in one INSERT.
const copyBatch = 200

// copyRows makes the rows of one database's tables those of another, which has
// the same tables.
func copyRows(ctx context.Context, dialect string, from, to *sql.DB) error {
	tables, err := tablesOf(ctx, from, dialect, nil)
	if err != nil {
		return err
	}
	for _, t := range tables {
		if err := t.copy(ctx, dialect, from, to); err != nil {
			return fmt.Errorf("table %s: %w", t.name, err)
		}
	}
	return nil
}

func (t table) copy(ctx context.Context, dialect string, from, to *sql.DB) error {
	if _, err := to.ExecContext(ctx, "TRUNCATE TABLE "+t.name); err != nil {
		return err
	}
	rows, err := from.QueryContext(ctx, t.query())
	if err != nil {
		return err
	}
	defer rows.Close()
	r, err := newReader(rows)
	if err != nil {
		return err
	}
	var batch []any
	for {
		more, err := r.next()
		if err != nil {
			return err
		}
		if more {
			for _, v := range r.values {
				if v == nil {
					batch = append(batch, nil)
				} else {
					batch = append(batch, string(v))
				}
			}
		}
		if len(batch) > 0 && (!more || len(batch) >= copyBatch*len(t.columns)) {
			if _, err := to.ExecContext(ctx, t.insert(dialect, len(batch)/len(t.columns)), batch...); err != nil {
				return err
			}
			batch = batch[:0]
		}
		if !more {
			return nil
		}
	}
}

// insert is an INSERT of n rows with parameters.
func (t table) insert(dialect string, n int) string {
	var text strings.Builder
	text.WriteString("INSERT INTO " + t.name + " (" + strings.Join(t.columns, ", ") + ") VALUES ")
	for i := range n * len(t.columns) {
		switch {
		case i == 0:
			text.WriteString("(")
		case i%len(t.columns) == 0:
			text.WriteString("), (")
		default:
			text.WriteString(", ")
		}
		text.WriteString(placeholder(dialect, i+1))
	}
	return text.String() + ")"
}
