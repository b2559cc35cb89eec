package mysql_test

import (
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
	"freshet/proxy"
)

// fromCache runs a statement until its answer comes from memory, and tells
// whether it ever does.
func fromCache(t *testing.T, c *client, q string) bool {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); {
		c.query(q)
		if strings.Contains(c.cells("EXPLAIN LAST STATEMENT"), "cache(") {
			return true
		}
	}
	return false
}

// A view may call what its reader does not name: a lock it takes stays with the
// session that read it, and goes with it.
func TestLocksTakenInAView(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		direct := mustDial(t, s.Address(), as(s, plainCaps))
		direct.query("CREATE OR REPLACE VIEW lock_view AS SELECT GET_LOCK('in a view', 0) AS g")
		direct.query("CREATE OR REPLACE VIEW lock_view2 AS SELECT g FROM lock_view WHERE g < 2")
		defer direct.query("DROP VIEW lock_view, lock_view2")
		address := serve(t, s, proxy.Config{Loops: 1})
		for _, q := range []string{"SELECT * FROM lock_view", "SELECT g FROM lock_view2", "SELECT (SELECT MAX(g) FROM lock_view2) AS g"} {
			a := mustDial(t, address, as(s, plainCaps))
			if got := a.cells(q); got != "1" {
				t.Fatalf("%s: %s", q, got)
			}
			for range 3 {
				if got := mustDial(t, address, as(s, plainCaps)).cells("SELECT GET_LOCK('in a view', 0)"); got != "0" {
					t.Errorf("another session after %s gets the lock too: %s", q, got)
				}
			}
			if got := a.cells("SELECT RELEASE_LOCK('in a view')"); got != "1" {
				t.Errorf("the session after %s no longer has its lock: %s", q, got)
			}
			a.cells(q)
			a.conn.Close()
			await(t, "the lock of a session that is gone", func() bool { return direct.cells("SELECT GET_LOCK('in a view', 1)") == "1" })
			direct.query("DO RELEASE_LOCK('in a view')")
		}
	})
}

// A generated column whose expression moves by itself is never kept.
func TestGeneratedColumnsThatMove(t *testing.T) {
	s := upstream.Need(t, upstream.MariaDB) // MySQL refuses such columns
	address := serve(t, s, proxy.Config{Loops: 1})
	direct := mustDial(t, s.Address(), as(s, plainCaps))
	for _, x := range []struct {
		column string
		still  bool
	}{{"x DATETIME(6) AS (NOW(6)) VIRTUAL", false}, {"x DOUBLE AS (RAND()) VIRTUAL", false}, {"x BIGINT AS (CONNECTION_ID()) VIRTUAL", false}, {"x VARCHAR(99) AS (@@time_zone) VIRTUAL", false},
		{"x INT AS (n + 1) VIRTUAL", true}, {"x INT AS (n + 1) STORED", true}, {"x VARCHAR(9) AS (CONCAT(n, 'a')) PERSISTENT", true}} {
		direct.query("DROP TABLE IF EXISTS moving")
		if r := direct.query("CREATE TABLE moving (id INT PRIMARY KEY, n INT, " + x.column + ")"); r.err != nil {
			t.Fatal(x.column, r.err)
		}
		direct.query("INSERT INTO moving (id, n) VALUES (1, 1)")
		c := mustDial(t, address, as(s, plainCaps))
		await(t, "the definition", func() bool { return c.cells("SELECT n FROM moving WHERE id = 1") == "1" })
		if got := fromCache(t, c, "SELECT x FROM moving WHERE id = 1"); got != x.still {
			t.Errorf("%s: kept %t, want %t", x.column, got, x.still)
		}
	}
	direct.query("DROP TABLE moving")
}

// Typed literals are literals.
func TestTypedLiteralsAreKept(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		table(t, s, "typed", "CREATE TABLE typed (id INT PRIMARY KEY, d DATE, ts DATETIME)")
		address := serve(t, s, proxy.Config{Loops: 1})
		mustDial(t, s.Address(), as(s, plainCaps)).query("INSERT INTO typed VALUES (1, '2026-11-30', '2026-11-30 10:00:00')")
		c := mustDial(t, address, as(s, plainCaps))
		for _, q := range []string{"SELECT id FROM typed WHERE d = DATE'2026-11-30'", "SELECT id FROM typed WHERE ts = TIMESTAMP '2026-11-30 10:00:00'",
			"SELECT id FROM typed WHERE ts = {ts '2026-11-30 10:00:00'}", "SELECT id FROM typed WHERE d = {d '2026-11-30'}"} {
			if !fromCache(t, c, q) {
				t.Errorf("%s is not kept: %s", q, c.cells("EXPLAIN LAST STATEMENT"))
			}
		}
	})
}

func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !f(); {
		if time.Now().After(deadline) {
			t.Fatal(what, "is awaited in vain")
		}
	}
}
