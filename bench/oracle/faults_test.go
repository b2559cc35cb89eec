package oracle

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
)

// faults are mistakes that must not go unseen, each with a kind of server on
// which it shows.
var faults = []struct {
	fault
	on    upstream.Kind
	gaps  int // a fault that shows only in them; 0: the usual share
	noise int // a fault that shows only beside others' reads; 0: the usual share
}{
	{fault{"a shape is dropped", "cache/feed", "(*txn).row", "sp := &f.plan.shapes[i]; t.state.touches(sp)", "sp := &f.plan.shapes[i]; i != 1 && t.state.touches(sp)"}, upstream.Postgres15, 0, 0},
	{fault{"an update's old image is ignored", "cache/feed", "(*txn).shape", "t.state.kind != row.Insert", "t.state.kind == row.Delete"}, upstream.MariaDB, 0, 0},
	{fault{"an update's new image is ignored", "cache/feed", "(*txn).shape", "t.state.kind != row.Delete", "t.state.kind == row.Insert"}, upstream.Postgres15, 0, 0},
	{fault{"the marks of whole tables are forgotten", "cache/feed", "(*txn).markTable", "a.marks.Mark(cache.DepOfTable(f.table.ID), at)",
		"if f.table.ID == 0 { a.marks.Mark(cache.DepOfTable(f.table.ID), at) }"}, upstream.MySQL, 0, 0},
	{fault{"deleted rows are overlooked", "cache/feed", "(*txn).row", "", "if kind == row.Delete { return }"}, upstream.Postgres18, 0, 0},
	{fault{"cascades are forgotten", "cache/feed", "(*txn).cascade", "", "if len(f.key.name) > 0 { return }"}, upstream.MariaDB, 0, 0},
	{fault{"TRUNCATE is forgotten", "cache/feed", "named", "case *ast.TruncateTableStmt:", "case *ast.TruncateTableStmt:\nv.nothing = true\nreturn v"}, upstream.MySQL, 0, 0},
	{fault{"changes of definitions are forgotten", "cache/feed", "(*txn).redefine", "", "if key.name != \"\" { return }"}, upstream.MariaDB, 0, 0},
	{fault{"the catalog's changes are forgotten", "cache/feed", "(*applier).redefined", "", "if len(keys) > 0 { return }"}, upstream.Postgres15, 0, 0},
	{fault{"recent changes are ignored", "cache", "(*cells).claim", "c.raise(cell, c.recent.at(dep))", "c.raise(cell, 0)"}, upstream.Postgres15, 40, 0},
	{fault{"filledAt is what was applied", "cache", "(*Fill).begin", "f.filledAt = s.Visible()", "f.filledAt = s.Applied()"}, upstream.MariaDB, 40, 0},
	{fault{"a read column is taken for unread", "cache/feed", "(*rowState).compare", "!r.same(column)", "i > 0 && !r.same(column)"}, upstream.MySQL, 0, 0},
	{fault{"texts are compared by their bytes", "cache/canon", "AppendText", "case FoldUTF8:", "case FoldUTF8:\nreturn append(dst, text...), true\ncase 255:"}, upstream.MariaDB, 0, 0},
	{fault{"filledAt is noted when the answer has come", "cache", "(*Fill).Finish", "", "f.filledAt = f.store.Visible()"}, upstream.MySQL, 0, 100},
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
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Run(strings.ReplaceAll(f.name, " ", "_"), func(t *testing.T) {
			folder := t.TempDir()
			list, err := f.overlay(strings.TrimSpace(string(module)), folder)
			if err != nil {
				t.Fatal(err)
			}
			faulty := filepath.Join(folder, "freshet")
			if err := build(faulty, "-overlay", list); err != nil {
				t.Fatal(err)
			}
			a := arena(t, f.on, faulty)
			var out strings.Builder
			report, err := a.Check(context.Background(), Config{Seed: seed(t), For: withinFor, Round: -1, Most: 1, Gaps: f.gaps, Noise: f.noise, Brief: true, Out: &out})
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
