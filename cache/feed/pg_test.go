package feed

import (
	"context"
	"strings"
	"testing"

	"freshet/bench/upstream"
	"freshet/cache/canon"
)

// TestReplicaIdentity looks at what old rows tell under each.
func TestReplicaIdentity(t *testing.T) {
	kinds(t, postgresKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.fresh("identity", "id INT PRIMARY KEY, a INT NOT NULL, b INT")
		r.exec("CREATE UNIQUE INDEX identity_a ON identity (a)", "INSERT INTO identity VALUES (1, 10, 100), (2, 20, 200)")
		for _, mode := range []string{"DEFAULT", "FULL", "USING INDEX identity_a"} {
			r.exec("ALTER TABLE identity REPLICA IDENTITY " + mode)
			w := r.follow("identity", intKinds)
			byID, byA, byB, readsA := w.shape("id", ""), w.shape("a", ""), w.shape("b", ""), w.shape("id", "a")
			after := r.now()
			r.exec("UPDATE identity SET b = b + 1 WHERE id = 1")
			r.settle()
			byID.wantsShape(after, mode != "DEFAULT" && mode != "FULL")
			byA.wantsShape(after, mode == "DEFAULT")
			byB.wantsShape(after, mode != "FULL")
			byID.wantsKey(after, true, "1")
			byA.wantsKey(after, true, "10")
			if mode == "FULL" {
				readsA.wantsKey(after, false, "1")
			}
			after = r.now()
			r.exec("UPDATE identity SET id = 7 WHERE id = 1")
			r.settle()
			if mode != "USING INDEX identity_a" {
				byID.wantsKey(after, true, "1")
				byID.wantsShape(after, false)
			} else {
				byID.wantsShape(after, true)
			}
			byID.wantsKey(after, true, "7")
			byID.wantsKey(after, false, "2")
			r.exec("UPDATE identity SET id = 1 WHERE id = 7")
			after = r.now()
			r.exec("DELETE FROM identity WHERE id = 2", "INSERT INTO identity VALUES (2, 20, 200)")
			r.settle()
			byB.wantsShape(after, mode != "FULL")
			byB.wantsKey(after, true, "200")
		}
		r.exec("ALTER TABLE identity REPLICA IDENTITY NOTHING")
		r.settle()
		_, err := r.tracker.Follow(r.spec("identity", intKinds))
		if err == nil || !strings.Contains(err.Error(), "REPLICA IDENTITY FULL") {
			t.Errorf("a table without identity: %v", err)
		}
		// It was published before; now that would make its updates fail.
		eventually(t, "it is published no more", func() bool {
			_, err := r.db.Exec("UPDATE identity SET b = b + 1")
			return err == nil
		})
	})
}

// TestUnchangedToast updates a row without its large value.
func TestUnchangedToast(t *testing.T) {
	kinds(t, postgresKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.fresh("toasted", "id INT PRIMARY KEY, a INT, big TEXT")
		r.exec("ALTER TABLE toasted ALTER big SET STORAGE EXTERNAL", "INSERT INTO toasted VALUES (1, 1, repeat('x', 100000))")
		text := map[string]canon.Kind{"id": canon.Int, "a": canon.Int, "big": canon.Bytes}
		for _, mode := range []string{"DEFAULT", "FULL"} {
			r.exec("ALTER TABLE toasted REPLICA IDENTITY " + mode)
			w := r.follow("toasted", text)
			byBig, readsBig := w.shape("big", ""), w.shape("id", "big")
			after := r.now()
			r.exec("UPDATE toasted SET a = a + 1")
			r.settle()
			byBig.wantsShape(after, mode == "DEFAULT")
			byBig.wantsKey(after, mode == "FULL", strings.Repeat("x", 100000))
			readsBig.wantsKey(after, false, "1")
		}
	})
}

// TestInFlightWhileAdded has a transaction write to a table before the table
// is published, and commit long after. Its changes are not in the stream, so
// the table must not be taken up before it has ended.
func TestInFlightWhileAdded(t *testing.T) {
	kinds(t, postgresKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.fresh("inflight", "id INT PRIMARY KEY, a INT, b INT")
		tx, err := r.db.BeginTx(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("INSERT INTO inflight VALUES (1, 1, 1)"); err != nil {
			t.Fatal(err)
		}
		tb, err := r.tracker.Follow(r.spec("inflight", intKinds))
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is published", func() bool {
			var n int
			if err := r.db.QueryRow("SELECT count(*) FROM pg_publication_tables WHERE tablename = 'inflight'").Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n == 1
		})
		for range 50 {
			r.settle()
			if _, up := tb.Since(); up {
				t.Fatal("taken up while a transaction of before still runs")
			}
		}
		if _, err := tx.Exec("INSERT INTO inflight VALUES (2, 2, 2)"); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "taken up", func() bool { _, up := tb.Since(); return up })
		w := &watched{rig: r, Table: tb}
		sh := w.shape("id", "")
		after := r.now()
		r.exec("UPDATE inflight SET a = 3 WHERE id = 2")
		r.settle()
		sh.wantsKey(after, true, "2")
	})
}

// TestDefinitionsInTheCatalog changes what no row says.
func TestDefinitionsInTheCatalog(t *testing.T) {
	kinds(t, postgresKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.exec("DROP SCHEMA IF EXISTS elsewhere CASCADE", "DROP TYPE IF EXISTS mood CASCADE", "CREATE TYPE mood AS ENUM ('sad')")
		r.fresh("catalogued", "id INT PRIMARY KEY, a INT, b INT, m mood")
		r.exec("CREATE SCHEMA elsewhere")
		for _, step := range []string{
			"ALTER TABLE catalogued ALTER a TYPE bigint",
			"ALTER TABLE catalogued ALTER b TYPE int USING b + 1",
			"GRANT SELECT ON catalogued TO PUBLIC", "GRANT UPDATE (a) ON catalogued TO PUBLIC",
			"ALTER TYPE mood ADD VALUE 'glad'", "ALTER TABLE catalogued ENABLE ROW LEVEL SECURITY",
			"CREATE POLICY p ON catalogued USING (true)", "ALTER POLICY p ON catalogued USING (false)",
			"CREATE TABLE elsewhere.catalogued (id INT)", "ALTER TABLE catalogued DISABLE ROW LEVEL SECURITY",
			"CREATE FUNCTION elsewhere.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
			"CREATE OR REPLACE FUNCTION elsewhere.f() RETURNS int LANGUAGE sql AS 'SELECT 2'",
			"ALTER ROLE freshet SET search_path = public", "ALTER ROLE freshet RESET search_path",
			"ALTER SCHEMA elsewhere RENAME TO elsewhere2", "ALTER SCHEMA elsewhere2 RENAME TO elsewhere",
			"CREATE TABLE heir () INHERITS (catalogued)", "DROP TABLE heir",
		} {
			if strings.HasPrefix(step, "DROP TABLE heir") {
				r.exec(step)
				continue
			}
			w := r.follow("catalogued", intKinds)
			sh := w.shape("a", "")
			after := r.now()
			r.exec(step)
			r.settle()
			w.wantsTable(after, true)
			sh.wantsShape(after, true)
			if !w.Gone() {
				t.Errorf("%s: the table is not gone", step)
			}
		}
		// What changes nothing must leave it alone; the first ANALYZE notes that
		// the table has no heirs any more.
		r.exec("ANALYZE catalogued")
		w := r.follow("catalogued", intKinds)
		after := r.now()
		r.exec("CREATE TABLE elsewhere.other (id INT)", "CREATE TEMP TABLE tt (id INT)", "CREATE TEMP VIEW tv AS SELECT 1", "ANALYZE catalogued", "VACUUM catalogued",
			"INSERT INTO elsewhere.other VALUES (1)", "DROP TABLE elsewhere.other", "DROP TABLE tt")
		r.settle()
		w.wantsTable(after, false)
		if w.Gone() {
			t.Error("gone for no reason")
		}
		r.exec("DROP SCHEMA elsewhere CASCADE")
	})
}

// TestRefusedTables cannot be followed, and the error says why.
func TestRefusedTables(t *testing.T) {
	kinds(t, postgresKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.exec("DROP TABLE IF EXISTS partitioned, keyless, unlogged, parent CASCADE", "CREATE TABLE keyless (id INT)",
			"CREATE TABLE partitioned (id INT) PARTITION BY RANGE (id)", "CREATE TABLE sound PARTITION OF partitioned (PRIMARY KEY (id)) FOR VALUES FROM (1) TO (9)",
			"CREATE TABLE unsound PARTITION OF partitioned DEFAULT",
			"CREATE UNLOGGED TABLE unlogged (id INT PRIMARY KEY)", "CREATE TABLE parent (id INT PRIMARY KEY)", "CREATE UNLOGGED TABLE child (PRIMARY KEY (id)) INHERITS (parent)")
		for table, words := range map[string]string{"partitioned": `"unsound" REPLICA IDENTITY FULL`, "keyless": "REPLICA IDENTITY FULL",
			"unlogged": "SET LOGGED", "parent": `"child" SET LOGGED`} {
			if _, err := r.tracker.Follow(r.spec(table, intKinds)); err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v", table, err)
			}
		}
		for _, table := range []string{"keyless", "partitioned"} {
			if _, err := r.db.Exec("UPDATE " + table + " SET id = 1"); err != nil {
				t.Errorf("an update of a table that is not followed: %v", err)
			}
		}
		r.exec("DROP TABLE partitioned, keyless, unlogged, parent CASCADE")
	})
}

// TestRollbackAndSubtransactions marks what was committed and no more.
func TestRollbackAndSubtransactions(t *testing.T) {
	everyKind(t, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.fresh("subs", "id INT PRIMARY KEY, a INT, b INT")
		sh := r.follow("subs", intKinds).shape("id", "")
		after := r.now()
		r.session("BEGIN", "INSERT INTO subs VALUES (1, 1, 1)", "SAVEPOINT s", "INSERT INTO subs VALUES (2, 2, 2)", "ROLLBACK TO SAVEPOINT s",
			"SAVEPOINT u", "INSERT INTO subs VALUES (3, 3, 3)", "RELEASE SAVEPOINT u", "COMMIT")
		r.session("BEGIN", "INSERT INTO subs VALUES (4, 4, 4)", "ROLLBACK")
		r.settle()
		sh.wantsKey(after, true, "1")
		sh.wantsKey(after, false, "2")
		sh.wantsKey(after, true, "3")
		sh.wantsKey(after, false, "4")
	})
}

// TestGeneratedInTheIdentity has replica identities that hold generated
// columns. PostgreSQL 18 refuses updates of a published table when such a
// column is not published, so it must not be, or not any more.
func TestGeneratedInTheIdentity(t *testing.T) {
	kinds(t, []upstream.Kind{upstream.Postgres18}, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.fresh("virtually", "id INT PRIMARY KEY, a INT, b INT GENERATED ALWAYS AS (a * 2) VIRTUAL")
		r.exec("INSERT INTO virtually VALUES (1, 1)", "ALTER TABLE virtually REPLICA IDENTITY FULL")
		if _, err := r.tracker.Follow(r.spec("virtually", intKinds)); err == nil || !strings.Contains(err.Error(), "REPLICA IDENTITY DEFAULT") {
			t.Errorf("a virtual column in the identity: %v", err)
		}
		r.exec("UPDATE virtually SET a = 2", "ALTER TABLE virtually REPLICA IDENTITY DEFAULT")
		byID := r.follow("virtually", intKinds).shape("id", "b")
		after := r.now()
		r.exec("UPDATE virtually SET a = 3")
		r.settle()
		byID.wantsKey(after, true, "1")

		r.fresh("stored", "id INT PRIMARY KEY, a INT, b INT GENERATED ALWAYS AS (a / 10) STORED")
		r.exec("INSERT INTO stored VALUES (1, 1)", "ALTER TABLE stored REPLICA IDENTITY FULL")
		byB := r.follow("stored", intKinds).shape("b", "b")
		after = r.now()
		r.exec("UPDATE stored SET a = 2")
		r.settle()
		byB.wantsKey(after, false, "0")
		r.exec("UPDATE stored SET a = 33")
		r.settle()
		byB.wantsKey(after, true, "0")
		byB.wantsKey(after, true, "3")
		byB.wantsShape(after, false)

		r.exec("ALTER TABLE stored ADD c INT GENERATED ALWAYS AS (a) VIRTUAL")
		eventually(t, "it is published no more", func() bool {
			_, err := r.db.Exec("UPDATE stored SET a = a + 1")
			return err == nil
		})
	})
}
