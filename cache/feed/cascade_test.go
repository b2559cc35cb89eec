package feed

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"freshet/bench/seed"
	"freshet/bench/upstream"
	"freshet/cache"
	"freshet/cache/canon"
	"freshet/cache/feed/row"
)

// TestCascadeActs spells out which updates reach a child.
func TestCascadeActs(t *testing.T) {
	v := func(raw string) row.Value { return row.Value{State: row.Present, Raw: []byte(raw)} }
	null, absent := row.Value{State: row.Null}, row.Value{}
	for _, c := range []struct {
		before, after []row.Value
		acts          bool
	}{
		{[]row.Value{v("1"), v("2")}, []row.Value{v("1"), v("3")}, false},
		{[]row.Value{v("1"), v("2")}, []row.Value{v("2"), v("2")}, true},
		{[]row.Value{v("1"), absent}, []row.Value{absent, v("3")}, false},
		{[]row.Value{absent, absent}, []row.Value{v("1"), absent}, true},
		{[]row.Value{null, absent}, []row.Value{null, v("3")}, false},
		{[]row.Value{null, absent}, []row.Value{v("1"), v("3")}, true},
		{[]row.Value{v("1"), absent}, []row.Value{null, v("3")}, true},
		{[]row.Value{v("1"), v("2")}, []row.Value{{State: row.Altered}, v("3")}, true},
		{[]row.Value{v("1")}, []row.Value{v("1")}, true}, // another definition's rows
	} {
		cs := cascade{columns: []int{0}, width: 2}
		if got := cs.acts(&row.Images{Old: c.before, New: c.after}); got != c.acts {
			t.Errorf("%v to %v: %v", c.before, c.after, got)
		}
		cs.columns = nil
		if !cs.acts(&row.Images{Old: c.before, New: c.after}) {
			t.Error("a blunt cascade does not act")
		}
	}
}

// family are tables that lead to each other by foreign keys: by the primary
// key and by another, over one and two steps, with each rule, and to itself.
var family = []struct{ name, columns string }{
	{"fam_root", "id INT PRIMARY KEY, code INT UNIQUE, v INT, w INT"},
	{"fam_cascade", "id INT PRIMARY KEY, r INT, v INT, FOREIGN KEY (r) REFERENCES fam_root (id) ON DELETE CASCADE ON UPDATE CASCADE"},
	{"fam_null", "id INT PRIMARY KEY, r INT, v INT, FOREIGN KEY (r) REFERENCES fam_root (code) ON DELETE SET NULL ON UPDATE SET NULL"},
	{"fam_delete", "id INT PRIMARY KEY, r INT, v INT, UNIQUE (r), FOREIGN KEY (r) REFERENCES fam_cascade (id) ON DELETE CASCADE ON UPDATE RESTRICT"},
	{"fam_grand", "id INT PRIMARY KEY, r INT, v INT, FOREIGN KEY (r) REFERENCES fam_delete (id) ON DELETE SET NULL ON UPDATE CASCADE"},
	{"fam_self", "id INT PRIMARY KEY, r INT, v INT, FOREIGN KEY (r) REFERENCES fam_self (id) ON DELETE CASCADE"},
}

// TestFamily changes rows of tables at random and looks at which rows of the
// others changed with them. Half of the tables are not followed.
func TestFamily(t *testing.T) {
	kinds(t, mysqlKinds, func(t *testing.T, s *upstream.Server) {
		seed := seed.Of(t, "FRESHET_SEED", 1)
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 4))
		r := newRig(t, s)
		f := newFamilyRun(t, r, rng)
		for range 80 {
			before, after := f.read(), r.now()
			statement := f.statement()
			f.session(statement)
			r.settle()
			f.judge(statement, after, before)
			if t.Failed() {
				return
			}
			f.refill()
		}
		t.Logf("%d rows changed with others'", f.carried)
		if f.carried < 5 {
			t.Error("the statements drawn prove nothing")
		}
		after := r.now()
		f.session("UPDATE fam_root SET v = v + 1, w = 3")
		r.settle()
		for name, sh := range f.shapes {
			if name != "fam_root" {
				sh.wantsTable(after, false)
			}
		}
	})
}

type familyRun struct {
	*rig
	rng     *rand.Rand
	shapes  map[string]*watchedShape // by id
	carried int
}

func newFamilyRun(t *testing.T, r *rig, rng *rand.Rand) *familyRun {
	f := &familyRun{rig: r, rng: rng, shapes: map[string]*watchedShape{}}
	for i := range family {
		r.exec("DROP TABLE IF EXISTS " + family[len(family)-1-i].name)
	}
	for _, table := range family {
		r.exec("CREATE TABLE " + table.name + " (" + table.columns + ")")
	}
	f.refill()
	for i, table := range family {
		if i%2 == 1 || i == len(family)-2 || rng.IntN(3) == 0 {
			f.shapes[table.name] = r.follow(table.name, map[string]canon.Kind{"id": canon.Int}).shape("id", "")
		}
	}
	return f
}

// refill puts rows in where they are missing.
func (f *familyRun) refill() {
	for _, table := range family {
		for id := range 4 {
			columns := fmt.Sprintf("%d, %d, 0", id, id)
			if table.name == "fam_root" {
				columns += ", 0"
			}
			f.exec(fmt.Sprintf("INSERT IGNORE INTO %s VALUES (%s)", table.name, columns))
		}
	}
}

// session runs a statement under some row image.
func (f *familyRun) session(statement string) {
	f.rig.session("SET SESSION binlog_row_image = '"+[]string{"FULL", "MINIMAL", "NOBLOB"}[f.rng.IntN(3)]+"'", statement)
}

func (f *familyRun) statement() string {
	table, id := family[f.rng.IntN(len(family))].name, f.rng.IntN(4)
	if f.rng.IntN(2) == 0 {
		table = "fam_root"
	}
	other := "r"
	if table == "fam_root" {
		other = "code"
	}
	switch f.rng.IntN(5) {
	case 0:
		return fmt.Sprintf("DELETE FROM %s WHERE id = %d", table, id)
	case 1:
		return fmt.Sprintf("UPDATE IGNORE %s SET v = %d WHERE id = %d", table, f.rng.IntN(9), id)
	case 2:
		return fmt.Sprintf("UPDATE IGNORE %s SET %s = NULL, v = 2 WHERE id = %d", table, other, id)
	case 3:
		return fmt.Sprintf("REPLACE INTO fam_root VALUES (%d, %d, 8, 8)", id, f.rng.IntN(4))
	}
	return fmt.Sprintf("UPDATE IGNORE %s SET id = %d WHERE id = %d", table, 100+f.rng.IntN(1<<20), id)
}

// read reads every row: "table id" to its values.
func (f *familyRun) read() map[string]string {
	f.t.Helper()
	out := map[string]string{}
	for _, table := range family {
		rows, err := f.db.Query("SELECT id, CONCAT_WS(' ', IFNULL(v, 'null'), IFNULL(" + map[bool]string{true: "code", false: "r"}[table.name == "fam_root"] +
			", 'null')) FROM " + table.name)
		if err != nil {
			f.t.Fatal(err)
		}
		for rows.Next() {
			var id, rest string
			if err := rows.Scan(&id, &rest); err != nil {
				f.t.Fatal(err)
			}
			out[table.name+" "+id] = rest
		}
		if err := rows.Close(); err != nil {
			f.t.Fatal(err)
		}
	}
	return out
}

func (f *familyRun) judge(statement string, after cache.Position, before map[string]string) {
	f.t.Helper()
	now := f.read()
	changed := map[string]bool{}
	for row, was := range before {
		if is, there := now[row]; !there || is != was {
			changed[row] = true
		}
	}
	for row := range now {
		if _, was := before[row]; !was {
			changed[row] = true
		}
	}
	for row := range changed {
		table, id, _ := strings.Cut(row, " ")
		sh := f.shapes[table]
		if sh == nil {
			continue
		}
		if !strings.Contains(statement, table) {
			f.carried++
		}
		sh.wantsTable(after, true)
		if f.store.at(sh.key(id)) <= after && f.store.at(cache.DepOfShape(sh.Shape.ID)) <= after {
			f.t.Errorf("%s: row %s of %s changed and is not marked", statement, id, table)
		}
	}
}

// TestParentsRedefined changes the definition of a parent that nobody follows.
func TestParentsRedefined(t *testing.T) {
	kinds(t, []upstream.Kind{upstream.MariaDB, upstream.MariaDB11}, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.exec("DROP TABLE IF EXISTS redef_child, redef_parent")
		r.exec("CREATE TABLE redef_parent (v INT, id INT PRIMARY KEY)",
			"CREATE TABLE redef_child (id INT PRIMARY KEY, r INT, FOREIGN KEY (r) REFERENCES redef_parent (id) ON UPDATE CASCADE)",
			"INSERT INTO redef_parent VALUES (7, 1)", "INSERT INTO redef_child VALUES (1, 1)")
		w := r.follow("redef_child", intKinds)
		old := w.shape("id", "")
		after := r.now()
		r.exec("UPDATE redef_parent SET v = 8")
		r.settle()
		w.wantsTable(after, false)
		r.exec("ALTER TABLE redef_parent MODIFY v INT AFTER id")
		r.settle()
		if !w.Gone() {
			t.Error("the child is not gone")
		}
		// Its old definition must be marked by whatever may reach it.
		after = r.now()
		r.exec("UPDATE redef_parent SET id = 2")
		r.settle()
		old.wantsShape(after, true)
		w = r.follow("redef_child", intKinds)
		after = r.now()
		r.exec("UPDATE redef_parent SET v = 9")
		r.settle()
		w.wantsTable(after, false)
		r.exec("UPDATE redef_parent SET id = 3")
		r.settle()
		w.wantsTable(after, true)
	})
}
