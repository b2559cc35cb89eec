package feed

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"freshet/bench/upstream"
	"freshet/cache"
	"freshet/cache/canon"
)

// session runs statements on one connection.
func (r *rig) session(statements ...string) {
	r.t.Helper()
	conn, err := r.db.Conn(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	for _, s := range statements {
		if _, err := conn.ExecContext(context.Background(), s); err != nil {
			r.t.Fatalf("%s: %v", s, err)
		}
	}
	// What the session was set to must not go to the next one.
	if err := conn.Raw(func(any) error { return errBadSession }); err == nil {
		r.t.Fatal("the session was not dropped")
	}
}

func TestTruncateAndDefinitions(t *testing.T) {
	everyKind(t, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		steps := []string{"TRUNCATE TABLE defined", "ALTER TABLE defined ADD COLUMN d INT", "CREATE INDEX dx ON defined (d)",
			"ALTER TABLE defined RENAME TO defined2", "DROP TABLE defined2"}
		r.exec("DROP TABLE IF EXISTS defined2")
		r.fresh("defined", "id INT PRIMARY KEY, a INT, b INT")
		r.fresh("bystander", "id INT PRIMARY KEY, a INT, b INT")
		name := "defined"
		for _, step := range steps {
			if strings.HasPrefix(step, "DROP") {
				name = "defined2"
			}
			w, by := r.follow(name, intKinds), r.follow("bystander", intKinds)
			sh, bySh := w.shape("a", ""), by.shape("a", "")
			after := r.now()
			r.exec(step)
			r.settle()
			if strings.HasPrefix(step, "CREATE INDEX") && r.postgres() {
				continue // an index changes no answer, and PostgreSQL's catalog shows it elsewhere
			}
			w.wantsTable(after, true)
			sh.wantsShape(after, true)
			by.wantsTable(after, false)
			bySh.wantsShape(after, false)
			if !w.Gone() || !r.sawChange(w.Spec.Schema, name) {
				t.Errorf("%s: gone %v, told %v", step, w.Gone(), r.sawChange(w.Spec.Schema, name))
			}
			if by.Gone() {
				t.Errorf("%s: the other table is gone", step)
			}
			r.mu.Lock()
			r.changed = nil
			r.mu.Unlock()
		}
	})
}

// TestRenameSwap exchanges two tables under one name.
func TestRenameSwap(t *testing.T) {
	kinds(t, mysqlKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.exec("DROP TABLE IF EXISTS swap_tmp")
		r.fresh("swap_a", "id INT PRIMARY KEY")
		r.fresh("swap_b", "id INT PRIMARY KEY")
		a, b := r.follow("swap_a", intKinds), r.follow("swap_b", intKinds)
		after := r.now()
		r.exec("RENAME TABLE swap_a TO swap_tmp, swap_b TO swap_a, swap_tmp TO swap_b")
		r.settle()
		a.wantsTable(after, true)
		b.wantsTable(after, true)
		if !a.Gone() || !b.Gone() {
			t.Error("a swapped table is not gone")
		}
	})
}

// TestEverything is what no table names.
func TestEverything(t *testing.T) {
	everyKind(t, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		user, view := "'nobody'@'%'", "CREATE OR REPLACE VIEW everyview AS SELECT 1 AS x"
		create, grant, drop := "CREATE USER "+user, "GRANT SELECT ON *.* TO "+user, "DROP USER "+user
		if r.postgres() {
			create, grant, drop = "CREATE ROLE nobody", "GRANT pg_read_all_data TO nobody", "DROP ROLE nobody"
		}
		for _, step := range []string{create, grant, drop, view, "DROP VIEW everyview"} {
			r.fresh("every", "id INT PRIMARY KEY, a INT, b INT")
			w := r.follow("every", intKinds)
			sh := w.shape("a", "")
			after, flushed := r.now(), r.store.flushed()
			r.exec(step)
			r.settle()
			w.wantsTable(after, true)
			sh.wantsShape(after, true)
			if r.store.flushed() == flushed || !w.Gone() || !r.sawChange("", "") {
				t.Errorf("%s: flushed %v, gone %v", step, r.store.flushed() != flushed, w.Gone())
			}
		}
	})
}

// TestCascades changes rows of a parent that nobody follows.
func TestCascades(t *testing.T) {
	kinds(t, mysqlKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.exec("DROP TABLE IF EXISTS cas_self, cas_grandchild, cas_child, cas_parent")
		r.exec("CREATE TABLE cas_parent (id INT PRIMARY KEY, v INT)",
			"CREATE TABLE cas_child (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES cas_parent (id) ON DELETE CASCADE)",
			"CREATE TABLE cas_grandchild (id INT PRIMARY KEY, child INT, FOREIGN KEY (child) REFERENCES cas_child (id) ON DELETE SET NULL)",
			"CREATE TABLE cas_self (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES cas_self (id) ON DELETE CASCADE)",
			"INSERT INTO cas_parent VALUES (1, 1), (2, 2)", "INSERT INTO cas_child VALUES (10, 1), (20, 2)",
			"INSERT INTO cas_grandchild VALUES (100, 10), (200, 20)", "INSERT INTO cas_self VALUES (1, NULL), (2, 1)")
		ints := map[string]canon.Kind{"id": canon.Int, "parent": canon.Int, "child": canon.Int, "up": canon.Int}
		child, grand, self := r.follow("cas_child", ints), r.follow("cas_grandchild", ints), r.follow("cas_self", ints)
		childKey, grandKey, selfKey := child.shape("parent", ""), grand.shape("child", ""), self.shape("up", "")
		after := r.now()
		r.exec("INSERT INTO cas_parent VALUES (3, 3)")
		r.settle()
		child.wantsTable(after, false)
		r.exec("DELETE FROM cas_parent WHERE id = 1", "DELETE FROM cas_self WHERE id = 1")
		r.settle()
		for _, w := range []*watched{child, grand, self} {
			w.wantsTable(after, true)
		}
		for _, sh := range []*watchedShape{childKey, grandKey, selfKey} {
			// MySQL logs what its foreign keys do.
			sh.wantsShape(after, s.Kind != upstream.MySQL)
		}
		if s.Kind == upstream.MySQL {
			childKey.wantsKey(after, true, "1")
			grandKey.wantsKey(after, true, "10")
			selfKey.wantsKey(after, true, "1")
		}
	})
}

// TestRowImages logs less than whole rows.
func TestRowImages(t *testing.T) {
	kinds(t, mysqlKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.fresh("images", "id INT PRIMARY KEY, a INT, b INT, t TEXT")
		w := r.follow("images", intKinds)
		byID, byA := w.shape("id", ""), w.shape("a", "a b")
		r.exec("INSERT INTO images VALUES (1, 10, 100, 'x'), (2, 20, 200, 'y')")
		for _, image := range []string{"MINIMAL", "NOBLOB"} {
			set := "SET SESSION binlog_row_image = '" + image + "'"
			after := r.now()
			r.session(set, "UPDATE images SET b = b + 1 WHERE id = 1")
			r.settle()
			byID.wantsKey(after, true, "1")
			byID.wantsKey(after, false, "2")
			byID.wantsShape(after, false)
			if image == "MINIMAL" {
				byA.wantsShape(after, true) // nothing says which a it is
			} else {
				byA.wantsKey(after, true, "10")
				byA.wantsShape(after, false)
			}
			after = r.now()
			r.session(set, "UPDATE images SET t = CONCAT(t, 'z') WHERE id = 2")
			r.settle()
			byID.wantsKey(after, true, "2")
			after = r.now()
			r.session(set, "DELETE FROM images WHERE id = 2", "INSERT INTO images VALUES (2, 20, 200, 'y')")
			r.settle()
			byID.wantsKey(after, true, "2")
			byA.wantsKey(after, true, "20")
			byA.wantsShape(after, image == "MINIMAL")
		}
	})
}

// TestStatements logs text in place of rows.
func TestStatements(t *testing.T) {
	kinds(t, mysqlKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.fresh("statements", "id INT PRIMARY KEY, a INT, b INT")
		for _, dml := range []string{"INSERT INTO statements VALUES (1, 1, 1)", "UPDATE statements SET a = 2"} {
			w := r.follow("statements", intKinds)
			sh := w.shape("a", "")
			after := r.now()
			r.session("SET SESSION binlog_format = 'STATEMENT'", dml)
			r.settle()
			w.wantsTable(after, true)
			sh.wantsShape(after, true)
		}
	})
}

// TestXA prepares, commits and rolls back.
func TestXA(t *testing.T) {
	kinds(t, mysqlKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.fresh("xa", "id INT PRIMARY KEY, a INT, b INT")
		w := r.follow("xa", intKinds)
		sh := w.shape("a", "")
		run := func(id, end string) (afterPrepare, afterEnd cache.Position) {
			begin := r.now()
			r.session("XA START '"+id+"','b',7", "INSERT INTO xa VALUES ("+id+", 5, 5)", "XA END '"+id+"','b',7", "XA PREPARE '"+id+"','b',7")
			afterPrepare = r.now()
			w.wantsTable(begin, false)
			r.session("XA " + end + " '" + id + "','b',7")
			return afterPrepare, r.now()
		}
		prepared, _ := run("1", "COMMIT")
		w.wantsTable(prepared, true)
		sh.wantsShape(prepared, true)
		prepared, _ = run("2", "ROLLBACK")
		w.wantsTable(prepared, false)
		after := r.now()
		r.session("XA START '3'", "INSERT INTO xa VALUES (3, 6, 6)", "XA END '3'", "XA COMMIT '3' ONE PHASE")
		r.settle()
		sh.wantsKey(after, true, "6")
	})
}

// TestCompression packs transactions and rows.
func TestCompression(t *testing.T) {
	kinds(t, mysqlKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.fresh("packed", "id INT PRIMARY KEY, a INT, b INT, t TEXT")
		w := r.follow("packed", intKinds)
		sh := w.shape("a", "")
		if s.Kind == upstream.MySQL {
			r.session("SET SESSION binlog_transaction_compression = ON")
		} else {
			r.exec("SET GLOBAL log_bin_compress = ON", "SET GLOBAL log_bin_compress_min_len = 10")
			defer r.exec("SET GLOBAL log_bin_compress = OFF")
		}
		for step := range 3 {
			after := r.now()
			statements := []string{"BEGIN"}
			if s.Kind == upstream.MySQL {
				statements = append([]string{"SET SESSION binlog_transaction_compression = ON"}, statements...)
			}
			dml := []string{"INSERT INTO packed VALUES (1, 5, 5, REPEAT('long ', 1000))",
				"UPDATE packed SET a = 6, t = REPEAT('other ', 1000)", "DELETE FROM packed"}[step]
			r.session(append(statements, dml, "COMMIT")...)
			r.settle()
			sh.wantsKey(after, step < 2, "5")
			sh.wantsKey(after, step > 0, "6")
			sh.wantsShape(after, false)
		}
	})
}

// TestLargeTransaction changes more rows than keys are kept of.
func TestLargeTransaction(t *testing.T) {
	needsServers(t)
	r := newRig(t, upstream.Need(t, upstream.MariaDB))
	r.fresh("large", "id INT PRIMARY KEY, a INT, b INT")
	w := r.follow("large", intKinds)
	sh := w.shape("id", "")
	after := r.now()
	r.exec(fmt.Sprintf("INSERT INTO large SELECT seq, seq, seq FROM seq_1_to_%d", maxDeps+1000))
	r.settle()
	sh.wantsShape(after, true)
	w.wantsTable(after, true)
}
