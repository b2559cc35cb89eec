package proxy

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// showTables is SHOW FRESHET TABLES: what the feed follows, and how exactly.
type showTables struct{}

func (showTables) run(_ context.Context, c *console) (*Result, error) {
	r := &Result{Tag: "SHOW", Columns: columns("schema", "table", "image", "shapes", "since", "#changes", "#marked_keys", "#marked_ranges", "#marked_shapes", "#marked_tables", "mend")}
	if c.upstream.Feed == nil {
		return r, nil
	}
	for _, t := range c.upstream.Feed.Tables() {
		since := "not yet"
		if !t.Since.IsZero() {
			since = t.Since.UTC().Format(time.RFC3339)
		}
		row := []string{t.Schema, t.Name, t.Image, strings.Join(t.Shapes, "; "), since}
		for _, n := range []uint64{t.Rows, t.Marks.Key, t.Marks.Range, t.Marks.Shape, t.Marks.Table} {
			row = append(row, fmt.Sprint(n))
		}
		r.Rows = append(r.Rows, append(row, t.Mend))
	}
	return r, nil
}
