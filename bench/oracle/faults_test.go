package oracle

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"freshet/bench/program"
	"freshet/bench/upstream"
)

// faults are mistakes that must not go unseen, each with a kind of server on
// which it shows.
var faults = []struct {
	program.Fault
	on    upstream.Kind
	gaps  int // a fault that shows only in them; 0: the usual share
	noise int // a fault that shows only beside others' reads; 0: the usual share
}{
	{program.Fault{Name: "a shape is dropped", In: "cache/feed", Fn: "(*txn).row", Old: "sp := &f.plan.shapes[i]; t.state.touches(sp)", New: "sp := &f.plan.shapes[i]; i != 1 && t.state.touches(sp)"}, upstream.Postgres15, 0, 0},
	{program.Fault{Name: "an update's old image is ignored", In: "cache/feed", Fn: "(*txn).shape", Old: "t.state.kind != row.Insert", New: "t.state.kind == row.Delete"}, upstream.MariaDB, 0, 0},
	{program.Fault{Name: "an update's new image is ignored", In: "cache/feed", Fn: "(*txn).shape", Old: "t.state.kind != row.Delete", New: "t.state.kind == row.Insert"}, upstream.Postgres15, 0, 0},
	{program.Fault{Name: "the marks of whole tables are forgotten", In: "cache/feed", Fn: "(*txn).markTable", Old: "a.marks.Mark(cache.DepOfTable(f.table.ID), at)", New: "if f.table.ID == 0 { a.marks.Mark(cache.DepOfTable(f.table.ID), at) }"}, upstream.MySQL, 0, 0},
	{program.Fault{Name: "deleted rows are overlooked", In: "cache/feed", Fn: "(*txn).row", New: "if kind == row.Delete { return }"}, upstream.Postgres18, 0, 0},
	{program.Fault{Name: "cascades are forgotten", In: "cache/feed", Fn: "(*txn).cascade", New: "if len(f.key.name) > 0 { return }"}, upstream.MariaDB, 0, 0},
	{program.Fault{Name: "TRUNCATE is forgotten", In: "cache/feed", Fn: "named", Old: "case *ast.TruncateTableStmt:", New: "case *ast.TruncateTableStmt:\nv.nothing = true\nreturn v"}, upstream.MySQL, 0, 0},
	{program.Fault{Name: "changes of definitions are forgotten", In: "cache/feed", Fn: "(*txn).redefine", New: "if key.name != \"\" { return }"}, upstream.MariaDB, 0, 0},
	{program.Fault{Name: "the catalog's changes are forgotten", In: "cache/feed", Fn: "(*applier).redefined", New: "if len(keys) > 0 { return }"}, upstream.Postgres15, 0, 0},
	{program.Fault{Name: "recent changes are ignored", In: "cache", Fn: "(*cells).claim", Old: "c.raise(cell, c.recent.at(dep))", New: "c.raise(cell, 0)"}, upstream.Postgres15, 40, 0},
	{program.Fault{Name: "filledAt is what was applied", In: "cache", Fn: "(*Fill).begin", Old: "f.filledAt = s.Visible()", New: "f.filledAt = s.Applied()"}, upstream.MariaDB, 40, 0},
	{program.Fault{Name: "a read column is taken for unread", In: "cache/feed", Fn: "(*rowState).compare", Old: "!r.same(column)", New: "i > 0 && !r.same(column)"}, upstream.MySQL, 0, 0},
	{program.Fault{Name: "texts are compared by their bytes", In: "cache/canon", Fn: "AppendText", Old: "case FoldUTF8:", New: "case FoldUTF8:\nreturn append(dst, text...), true\ncase 255:"}, upstream.MariaDB, 0, 0},
	{program.Fault{Name: "filledAt is noted when the answer has come", In: "cache", Fn: "(*Fill).Finish", New: "f.filledAt = f.store.Visible()"}, upstream.MySQL, 0, 100},
}

// withinFor is how soon a fault must be found.
const withinFor = time.Minute

// TestFindsFaults: an oracle that cannot fail proves nothing. Each fault is
// built into a Freshet of its own, and the oracle must find a wrong answer
// within a minute.
func TestFindsFaults(t *testing.T) {
	if os.Getenv("FRESHET_ORACLE") != "full" {
		t.Skip("a program and a minute for each fault: make oracle")
	}
	for _, f := range faults {
		t.Run(strings.ReplaceAll(f.Name, " ", "_"), func(t *testing.T) {
			faulty := program.Faulty(t, f.Fault)
			a := arena(t, f.on, faulty)
			var out strings.Builder
			report, err := a.Check(context.Background(), Config{Seed: drawn(t), For: withinFor, Round: -1, Most: 1, Gaps: f.gaps, Noise: f.noise, Brief: true, Out: &out})
			if err != nil {
				t.Fatalf("%v\n%s", err, report)
			}
			if report.Differences == 0 {
				t.Errorf("not found: %s%s", report, report.Detail())
			}
			t.Logf("found after %s, %d writes\n%s", report.Took.Round(time.Second/10), report.Writes, out.String())
			if err := os.Remove(faulty); err != nil {
				t.Error(err)
			}
		})
	}
}
