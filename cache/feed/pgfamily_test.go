package feed

import (
	"testing"

	"freshet/bench/upstream"
)

// TestPartitions follows a partitioned table by its root and one leaf by its
// own name: whichever name a row is written by, both are marked, by key.
func TestPartitions(t *testing.T) {
	kinds(t, postgresKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.exec("DROP TABLE IF EXISTS parts, stray CASCADE", "CREATE TABLE parts (id INT, a INT, b INT, PRIMARY KEY (id)) PARTITION BY RANGE (id)",
			"CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (100)",
			// Its columns stand in another order, and it is partitioned itself.
			"CREATE TABLE high (b INT, gone INT, a INT, id INT NOT NULL) PARTITION BY RANGE (id)", "ALTER TABLE high DROP COLUMN gone",
			"CREATE TABLE higher PARTITION OF high FOR VALUES FROM (100) TO (200)", "ALTER TABLE parts ATTACH PARTITION high FOR VALUES FROM (100) TO (200)",
			"ALTER TABLE low REPLICA IDENTITY FULL", "INSERT INTO parts VALUES (1, 1, 1), (2, 2, 2), (101, 3, 3)")
		root, low := r.follow("parts", intKinds), r.follow("low", intKinds)
		byID, byB, ofLow := root.shape("id", "a"), root.shape("b", ""), low.shape("id", "")
		for _, c := range []struct {
			sql        string
			keys, none []string // of byID
			low        bool     // whether ofLow's key 1 is marked
		}{
			{"UPDATE parts SET a = a + 1 WHERE id = 1", []string{"1"}, []string{"2", "101"}, true},
			{"UPDATE low SET a = a + 1 WHERE id = 1", []string{"1"}, []string{"2", "101"}, true},
			{"UPDATE low SET b = b + 1 WHERE id = 1", nil, []string{"1", "2"}, true},
			{"UPDATE parts SET a = a + 1 WHERE id = 101", []string{"101"}, []string{"1"}, false},
			{"UPDATE high SET a = a + 1 WHERE id = 101", []string{"101"}, []string{"1"}, false},
			{"UPDATE higher SET a = a + 1 WHERE id = 101", []string{"101"}, []string{"1"}, false},
			{"INSERT INTO higher (id, a, b) VALUES (102, 5, 5)", []string{"102"}, []string{"1", "101"}, false},
			{"UPDATE parts SET id = 150 WHERE id = 1", []string{"1", "150"}, []string{"2", "101"}, true},
			{"UPDATE parts SET id = 1 WHERE id = 150", []string{"1", "150"}, []string{"2", "101"}, true},
			{"DELETE FROM parts WHERE id = 102", []string{"102"}, []string{"1", "101"}, false},
		} {
			after := r.now()
			r.exec(c.sql)
			r.settle()
			for _, key := range c.keys {
				byID.wantsKey(after, true, key)
			}
			for _, key := range c.none {
				byID.wantsKey(after, false, key)
			}
			ofLow.wantsKey(after, c.low, "1")
			root.wantsTable(after, true)
			low.wantsTable(after, c.low)
			if t.Failed() {
				t.Fatal(c.sql)
			}
		}
		// Old values of b are not in the log.
		after := r.now()
		r.exec("UPDATE higher SET b = 77")
		r.settle()
		byB.wantsKey(after, true, "77")
		byB.wantsShape(after, true)
		if root.Gone() || low.Gone() {
			t.Error("gone for no reason")
		}
		r.exec("DROP TABLE parts")
	})
}

// TestFamilyChanges makes every change of which rows are read with a table's
// own mark it and make it gone.
func TestFamilyChanges(t *testing.T) {
	kinds(t, postgresKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.exec("DROP TABLE IF EXISTS parts, stray, parent, heir CASCADE", "CREATE TABLE parts (id INT PRIMARY KEY, a INT, b INT) PARTITION BY RANGE (id)",
			"CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (100)", "CREATE TABLE stray (id INT NOT NULL, a INT, b INT)",
			"CREATE TABLE parent (id INT PRIMARY KEY, a INT, b INT)", "CREATE TABLE heir (PRIMARY KEY (id)) INHERITS (parent)",
			"INSERT INTO low VALUES (1)", "INSERT INTO heir VALUES (1)", "INSERT INTO stray VALUES (101)")
		for _, c := range []struct{ table, sql string }{
			{"parts", "ALTER TABLE parts ATTACH PARTITION stray FOR VALUES FROM (100) TO (200)"},
			{"parts", "ALTER TABLE parts DETACH PARTITION stray"},
			{"parts", "CREATE TABLE more PARTITION OF parts DEFAULT"},
			{"parts", "CREATE TABLE nested PARTITION OF parts FOR VALUES FROM (300) TO (400) PARTITION BY RANGE (id)"},
			{"parts", "CREATE TABLE within PARTITION OF nested FOR VALUES FROM (300) TO (310)"},
			{"parts", "DROP TABLE within"},
			{"parts", "TRUNCATE low"},
			{"parts", "DROP TABLE more"},
			{"parts", "ALTER TABLE low REPLICA IDENTITY FULL"},
			{"parts", "ALTER TABLE parts ENABLE ROW LEVEL SECURITY"},
			{"parent", "ALTER TABLE heir NO INHERIT parent"},
			{"parent", "ALTER TABLE heir INHERIT parent"},
			{"parent", "CREATE TABLE second (PRIMARY KEY (id)) INHERITS (heir)"},
			{"parent", "TRUNCATE ONLY parent"},
			{"parent", "TRUNCATE second"},
			{"parent", "DROP TABLE second"},
		} {
			w := r.follow(c.table, intKinds)
			sh := w.shape("id", "a")
			after := r.now()
			r.exec(c.sql)
			r.settle()
			w.wantsTable(after, true)
			sh.wantsShape(after, true)
			if !w.Gone() {
				t.Errorf("%s: the table is not gone", c.sql)
			}
		}
		r.exec("DROP TABLE parts, stray, parent, heir CASCADE")
	})
}

// TestInheritedByName tells a table from the same table with its heirs.
func TestInheritedByName(t *testing.T) {
	kinds(t, postgresKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.exec("DROP TABLE IF EXISTS parent, heir CASCADE", "CREATE TABLE parent (id INT PRIMARY KEY, a INT, b INT)",
			"CREATE TABLE heir (x TEXT, PRIMARY KEY (id)) INHERITS (parent)", "INSERT INTO parent VALUES (1)", "INSERT INTO heir VALUES (2)")
		family := r.follow("parent", intKinds)
		spec := family.Spec
		spec.Heirs, spec.Only = nil, true
		only := &watched{rig: r, Table: r.taken(spec), kinds: intKinds}
		all, own := family.shape("id", ""), only.shape("id", "")
		after := r.now()
		r.exec("UPDATE heir SET a = 5")
		r.settle()
		all.wantsKey(after, true, "2")
		own.wantsKey(after, false, "2")
		only.wantsTable(after, false)
		after = r.now()
		r.exec("UPDATE parent SET a = 6 WHERE id = 1")
		r.settle()
		all.wantsKey(after, true, "1")
		own.wantsKey(after, true, "1")
		if family.Gone() || only.Gone() {
			t.Error("gone for no reason")
		}
		// Who read the catalog before a child came has old knowledge.
		spec.Only = false
		tb, err := r.tracker.Follow(spec)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the definition without heirs is given up", tb.Gone)
		r.exec("DROP TABLE parent CASCADE")
	})
}

// taken follows a definition until it is taken up.
func (r *rig) taken(spec TableSpec) *Table {
	r.t.Helper()
	tb, err := r.tracker.Follow(spec)
	if err != nil {
		r.t.Fatal(err)
	}
	eventually(r.t, "table "+spec.Name+" is taken up", func() bool {
		since, up := tb.Since()
		return up && r.store.Visible() >= since
	})
	return tb
}
