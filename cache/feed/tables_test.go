package feed

import (
	"slices"
	"strings"
	"testing"

	"freshet/bench/upstream"
)

func TestShapesInWords(t *testing.T) {
	columns := []Column{{Name: "id"}, {Name: "a"}, {Name: "b"}}
	for want, spec := range map[string]ShapeSpec{
		"key (id)":                        {Equal: []int{0}, Range: -1},
		"key (a, id) reads (b)":           {Equal: []int{1, 0}, Range: -1, Reads: []int{2}},
		"range (b) /16":                   {Range: 2, Level: 4},
		"key (a) range (b) /1 reads (id)": {Equal: []int{1}, Range: 2, Reads: []int{0}},
		"rows":                            {Range: -1},
		"rows reads (a, b)":               {Range: -1, Reads: []int{1, 2}},
		"rows reads ()":                   {Range: -1, Reads: []int{}},
		"range (a) /9223372036854775808":  {Range: 1, Level: maxLevel},
	} {
		spec := spec.normal()
		if got := spec.text(columns); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestTables reads the status of a table that is changed, under whole and
// partial images.
func TestTables(t *testing.T) {
	everyKind(t, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.fresh("told", "id INT PRIMARY KEY, a INT, b INT")
		whole, partial, image, restore := "ALTER TABLE told REPLICA IDENTITY FULL", "ALTER TABLE told REPLICA IDENTITY DEFAULT", "replica identity default", ""
		if !r.postgres() {
			whole, partial, image = "SET GLOBAL binlog_row_image = 'FULL'", "SET GLOBAL binlog_row_image = 'MINIMAL'", "MINIMAL"
			restore = whole
		}
		if restore != "" {
			defer r.exec(restore)
		}
		r.exec(whole, "INSERT INTO told VALUES (1, 10, 100)")
		w := r.follow("told", intKinds)
		w.shape("id", "")
		w.shape("a", "a b")
		w.shape("", "b")
		w.tracker.ShapeOf(w.Table, ShapeSpec{Range: 2, Level: 2, Reads: []int{0}})
		eventually(t, "the shapes are taken up", func() bool { return !strings.Contains(strings.Join(r.told().Shapes, ""), "not yet") })
		before := r.told()
		want := []string{"key (id)", "key (a) reads (b)", "rows reads (b)", "range (b) /4 reads (id)"}
		if !slices.Equal(before.Shapes, want) || before.Schema != r.schema() || before.Since.IsZero() || before.Mend != "" ||
			!strings.Contains(strings.ToLower(before.Image), "full") {
			t.Errorf("%+v", before)
		}
		r.exec("UPDATE told SET b = 200")
		r.settle()
		got := r.told()
		if got.Rows != before.Rows+1 || got.Marks != (TableMarks{Key: before.Marks.Key + 3, Range: before.Marks.Range + 2}) {
			t.Errorf("after an update: %+v, before %+v", got, before)
		}
		r.exec(partial)
		w = r.follow("told", intKinds)
		if !r.postgres() {
			r.exec("ALTER TABLE told COMMENT = 'another definition'")
			w = r.follow("told", intKinds)
		}
		w.shape("id", "")
		if got := r.told(); got.Image != image || got.Mend != "" {
			t.Errorf("only the key is compared: %+v", got)
		}
		byA := w.shape("a", "")
		if got := r.told(); !strings.Contains(got.Mend, "FULL") {
			t.Errorf("another column is compared: %+v", got)
		}
		after := r.now()
		if r.postgres() {
			r.exec("DELETE FROM told")
		} else {
			r.session("SET SESSION binlog_row_image = 'MINIMAL'", "DELETE FROM told")
		}
		r.settle()
		if got := r.told(); got.Marks.Shape != 1 {
			t.Errorf("after a delete: %+v", got)
		}
		byA.wantsShape(after, true)
	})
}

// told is the status of table told.
func (r *rig) told() TableStatus {
	r.t.Helper()
	for _, s := range r.feed.Tables() {
		if s.Name == "told" {
			return s
		}
	}
	r.t.Fatal("the table is not followed")
	return TableStatus{}
}
