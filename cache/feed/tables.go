package feed

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// TableStatus is what the feed can say of one followed table.
type TableStatus struct {
	Schema, Name string
	// Since is when the table was taken up; zero while it is not.
	Since time.Time
	// Image says how much of a changed row the log has: binlog_row_image, or
	// the replica identity.
	Image  string
	Shapes []string // see ShapeSpec; those not taken up yet end in "(not yet)"
	// Rows counts the changed rows looked at, Marks what they marked.
	Rows  uint64
	Marks TableMarks
	// Mend is the statement that would make tracking exact, "" when it is as
	// exact as its shapes ask for.
	Mend string
}

// TableMarks counts marks of one table by kind: keys, blocks of ranges, all
// keys of a shape at once, the table whole.
type TableMarks struct{ Key, Range, Shape, Table uint64 }

// tableCounters are TableStatus's, as the stream's goroutine counts.
type tableCounters struct{ rows, key, block, shape, table atomic.Uint64 }

// Tables lists the followed tables by name.
func (f *Feed) Tables() []TableStatus { return f.cfg.Tracker.tableStatus() }

func (t *Tracker) tableStatus() []TableStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]TableStatus, 0, len(t.tables))
	for _, tb := range t.tables {
		out = append(out, tb.status())
	}
	slices.SortFunc(out, func(a, b TableStatus) int {
		return cmp.Or(strings.Compare(a.Schema, b.Schema), strings.Compare(a.Name, b.Name))
	})
	return out
}

// status is called under Tracker.mu.
func (tb *Table) status() TableStatus {
	c := &tb.counts
	s := TableStatus{Schema: tb.Spec.Schema, Name: tb.Spec.Name, Since: tb.up, Image: tb.facts.image, Rows: c.rows.Load(),
		Marks: TableMarks{Key: c.key.Load(), Range: c.block.Load(), Shape: c.shape.Load(), Table: c.table.Load()}}
	for _, sh := range tb.shapes {
		text := sh.spec.text(tb.Spec.Columns)
		if _, up := sh.Since(); !up {
			text += " (not yet)"
		}
		s.Shapes = append(s.Shapes, text)
		if tb.facts.blurs(&sh.spec) {
			s.Mend = tb.facts.mend
		}
	}
	return s
}

// blurs tells whether the log has too little for the shape: what it compares
// must be known of a row as it was, and where the log does not say what an
// update wrote, what it reads too.
func (f *tableFacts) blurs(s *ShapeSpec) bool {
	if f.known == nil {
		return false
	}
	unknown := func(column int) bool { return !f.known[column] }
	return slices.ContainsFunc(s.Equal, unknown) || s.Range >= 0 && unknown(s.Range) ||
		!f.written && slices.ContainsFunc(s.Reads, unknown)
}

// text writes a shape as `key (a, b)`, `range (c) /16`, `key (a) range (c) /16`
// or `rows`, followed by what it reads besides, unless that is everything. The
// number is a block's width.
func (s *ShapeSpec) text(columns []Column) string {
	list := func(ordinals []int) string {
		names := make([]string, len(ordinals))
		for i, o := range ordinals {
			names[i] = columns[o].Name
		}
		return "(" + strings.Join(names, ", ") + ")"
	}
	var parts []string
	if len(s.Equal) > 0 {
		parts = append(parts, "key "+list(s.Equal))
	}
	if s.Range >= 0 {
		parts = append(parts, fmt.Sprintf("range (%s) /%d", columns[s.Range].Name, uint64(1)<<s.Level))
	}
	if len(parts) == 0 {
		parts = append(parts, "rows")
	}
	if s.Reads != nil {
		besides := slices.DeleteFunc(slices.Clone(s.Reads), func(o int) bool { return o == s.Range || slices.Contains(s.Equal, o) })
		parts = append(parts, "reads "+list(besides))
	}
	return strings.Join(parts, " ")
}
