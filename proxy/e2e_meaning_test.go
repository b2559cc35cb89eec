package proxy_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"
)

// What partitions are selected makes an answer depend on columns that it does
// not name: those that decide a row's partition.
func TestSelectedPartitions(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		if r.postgres() {
			t.Skip("MySQL's and MariaDB's")
		}
		tb := fmt.Sprintf("p%d", time.Now().UnixNano())
		mustExec(t, r.direct, "CREATE TABLE "+tb+` (id INT, a INT, b INT, PRIMARY KEY (id, a))
			PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (3), PARTITION p1 VALUES LESS THAN MAXVALUE)`)
		t.Cleanup(func() { mustExec(t, r.direct, "DROP TABLE "+tb) })
		mustExec(t, r.direct, "INSERT INTO "+tb+" VALUES (1, 1, 1), (2, 2, 2), (3, 5, 3)")
		c := conn(t, r.through)
		queries := []string{"SELECT id FROM %s PARTITION (p0) ORDER BY id", "SELECT COUNT(*) FROM %s PARTITION (p0)", "SELECT b FROM %s PARTITION (p1) WHERE id = 1",
			"SELECT x.id FROM %[1]s PARTITION (p0) AS x JOIN %[1]s AS y ON y.id = x.id ORDER BY x.id"}
		for i, q := range queries {
			queries[i] = fmt.Sprintf(q, tb)
			hits(t, c, queries[i])
		}
		for _, write := range []string{"UPDATE %s SET a = 9 WHERE id = 1", "UPDATE %s SET a = 8 WHERE id = 2", "UPDATE %s SET a = 1 WHERE id = 3"} {
			mustExec(t, r.direct, fmt.Sprintf(write, tb))
			for _, q := range queries {
				fresh(t, r, c, q)
			}
		}
	})
}

// A view's columns may be given other names; a statement that uses the old ones
// has no answer any more, and one that uses them anew another.
func TestViewColumnsAreRenamed(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		tb := r.table(t, "id INT PRIMARY KEY, v INT, w INT", "1,1,2", "2,2,3")
		view := "v_" + tb
		mustExec(t, r.direct, "CREATE VIEW "+view+" AS SELECT id, v, w FROM "+tb+" WHERE v < 5")
		t.Cleanup(func() { mustExec(t, r.direct, "DROP VIEW IF EXISTS "+view) })
		c := conn(t, r.through)
		q := "SELECT count(*) FROM " + view + " WHERE v = 1"
		hits(t, c, q)
		steps := []string{"CREATE OR REPLACE VIEW " + view + " AS SELECT id, v AS q, w AS v FROM " + tb}
		if r.postgres() {
			steps = []string{"ALTER VIEW " + view + " RENAME COLUMN v TO q", "ALTER VIEW " + view + " RENAME COLUMN w TO v"}
		}
		for _, step := range steps {
			mustExec(t, r.direct, step)
			fresh(t, r, c, q)
		}
	})
}

// A transaction that holds locks on what the catalog is asked for does not wait
// for itself.
func TestReadsBehindOwnLocks(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		if !r.postgres() {
			t.Skip("elsewhere DDL ends the transaction")
		}
		tb := r.table(t, "id INT PRIMARY KEY, v INT", "1,1")
		mustExec(t, r.direct, "CREATE VIEW v_"+tb+" AS SELECT * FROM "+tb)
		t.Cleanup(func() { mustExec(t, r.direct, "DROP VIEW v_"+tb) })
		for i, lock := range []string{"DROP VIEW v_" + tb, "ALTER TABLE " + tb + " REPLICA IDENTITY FULL", "TRUNCATE " + tb} {
			c := conn(t, r.through)
			mustExec(t, c, "BEGIN")
			mustExec(t, c, lock)
			began := time.Now()
			got := ask(c, fmt.Sprintf("SELECT count(*) FROM v_%s WHERE v = %d", tb, 12345+i))
			got += ask(c, fmt.Sprintf("SELECT v FROM %s WHERE v = %d AND id = 1", tb, 12345+i))
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("after %s the session waited %v for %s", lock, took, got)
			}
			mustExec(t, c, "ROLLBACK")
		}
	})
}

// fresh waits until a statement's answer through is the server's, within the
// bound, and holds it to that.
func fresh(t *testing.T, r *rig, c querier, q string) {
	t.Helper()
	same := func() (bool, string) {
		got, want := ask(c, q), ask(r.direct, q)
		if strings.HasPrefix(got, "error") && strings.HasPrefix(want, "error") {
			return true, ""
		}
		return got == want, fmt.Sprintf("%s: got %s, want %s", q, got, want)
	}
	deadline := time.Now().Add(time.Second)
	for {
		ok, what := same()
		if ok {
			break
		}
		if time.Now().After(deadline) {
			t.Error(what)
			return
		}
	}
	for range 3 {
		if ok, what := same(); !ok {
			t.Error("it was right before: " + what)
		}
	}
}

// unprepared gives the rig with a direct client that prepares nothing, and such a
// session through Freshet: a plan that a server keeps for a prepared statement
// knows nothing itself of some changes.
func (r *rig) unprepared(t *testing.T) (*rig, *sql.Conn) {
	t.Helper()
	const simple = "default_query_exec_mode=simple_protocol"
	direct, err := sql.Open(r.server.Driver(), r.server.DSN()+"&"+simple)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { direct.Close() })
	other := *r
	other.direct = direct
	return &other, conn(t, r.open(t, simple))
}

// A text search configuration and its dictionaries are named by strings, and
// decide what immutable functions answer.
func TestTextSearchConfigurationsChange(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		if !r.postgres() {
			t.Skip("PostgreSQL's")
		}
		tb := r.table(t, "id INT PRIMARY KEY, v INT", "1,1")
		mustExec(t, r.direct, "CREATE TEXT SEARCH DICTIONARY d_"+tb+" (TEMPLATE = snowball, Language = english)")
		mustExec(t, r.direct, "CREATE TEXT SEARCH CONFIGURATION c_"+tb+" (COPY = pg_catalog.english)")
		t.Cleanup(func() {
			mustExec(t, r.direct, "DROP TEXT SEARCH CONFIGURATION IF EXISTS c_"+tb)
			mustExec(t, r.direct, "DROP TEXT SEARCH DICTIONARY IF EXISTS d_"+tb)
		})
		simple, c := r.unprepared(t)
		queries := []string{
			"SELECT to_tsvector('c_" + tb + "', 'the dogs') FROM " + tb + " WHERE id = 1",
			"SELECT count(*) FROM " + tb + " WHERE to_tsvector('c_" + tb + "', 'the dogs') @@ to_tsquery('c_" + tb + "', 'the & dogs')",
			"SELECT ts_lexize('d_" + tb + "', 'dogs') FROM " + tb + " WHERE id = 1",
		}
		for _, step := range []string{
			"ALTER TEXT SEARCH CONFIGURATION c_" + tb + " ALTER MAPPING FOR asciiword WITH simple",
			"ALTER TEXT SEARCH CONFIGURATION c_" + tb + " ALTER MAPPING FOR asciiword WITH d_" + tb,
			"ALTER TEXT SEARCH DICTIONARY d_" + tb + " (StopWords = english)",
			"DROP TEXT SEARCH CONFIGURATION c_" + tb,
		} {
			for _, q := range queries {
				hits(t, c, q)
			}
			mustExec(t, simple.direct, step)
			for _, q := range queries {
				fresh(t, simple, c, q)
			}
		}
	})
}

// Types within types decide what a value looks like: attributes of composite
// ones, in arrays, domains and ranges, and the row types of tables.
func TestTypesWithinTypesChange(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		if !r.postgres() {
			t.Skip("PostgreSQL's")
		}
		base := r.table(t, "id INT PRIMARY KEY, v INT", "1,1")
		n := strings.TrimPrefix(base, "t")
		named := strings.NewReplacer("@", n)
		do := func(sql string) { t.Helper(); mustExec(t, r.direct, named.Replace(sql)) }
		for _, sql := range []string{"CREATE TYPE en@ AS ENUM ('a', 'b')", "CREATE TYPE co@ AS (p int, q text, e en@)", "CREATE DOMAIN dom@ AS co@",
			"CREATE TABLE typed@ (id INT PRIMARY KEY, c co@, arr co@[], d dom@, r t@)", "INSERT INTO typed@ VALUES (1, (1, 'x', 'b'), ARRAY[(1, 'y', 'b')::co@], (2, 'z', 'a'), (7, 8))"} {
			do(sql)
		}
		t.Cleanup(func() {
			do("DROP TABLE typed@")
			do("DROP DOMAIN dom@")
			do("DROP TYPE co@")
			do("DROP TYPE en@")
		})
		simple, c := r.unprepared(t)
		var queries []string
		for _, q := range []string{"SELECT c FROM typed@ WHERE id = 1", "SELECT arr FROM typed@ WHERE id = 1", "SELECT d FROM typed@ WHERE id = 1", "SELECT r FROM typed@ WHERE id = 1",
			"SELECT row_to_json(c), to_json(arr), to_json(r) FROM typed@ WHERE id = 1"} {
			queries = append(queries, named.Replace(q))
		}
		for _, step := range []string{"ALTER TYPE co@ RENAME ATTRIBUTE q TO qq", "ALTER TYPE en@ RENAME VALUE 'b' TO 'bb'", "ALTER TABLE t@ ADD COLUMN w INT",
			"ALTER TYPE co@ ADD ATTRIBUTE s INT", "ALTER TYPE co@ DROP ATTRIBUTE p"} {
			for _, q := range queries {
				hits(t, c, q)
			}
			do(step)
			for _, q := range queries {
				fresh(t, simple, c, q)
			}
		}
	})
}
