package proxy_test

import (
	"strings"
	"testing"

	"freshet/bench/upstream"
	"freshet/proxy"
)

// inOwnPostgres is inPostgres on servers that no other test uses.
func inOwnPostgres(t *testing.T, body func(t *testing.T, r *rig), settings ...string) {
	t.Helper()
	for _, kind := range []upstream.Kind{upstream.Postgres15, upstream.Postgres18} {
		t.Run(string(kind), func(t *testing.T) {
			body(t, newRig(t, upstream.Own(t, kind, upstream.WithSettings(settings...)), proxy.Config{Loops: 1}))
		})
	}
}

// Whoever commits what was prepared, itself or another, sees it from then on.
func TestCommitPreparedIsAWrite(t *testing.T) {
	inOwnPostgres(t, func(t *testing.T, r *rig) {
		tb := r.table(t, "id INT PRIMARY KEY, n INT", "1,0")
		read := "SELECT n FROM " + tb + " WHERE id = 1"
		writer, s := r.line(t, false), r.line(t, true)
		until(t, "a hit", func() (bool, string) {
			got := s.ask(read) + s.ask("EXPLAIN LAST STATEMENT")
			return strings.Contains(got, "cache("), got
		})
		wrong := 0
		for n := range 60 {
			by := writer
			if n%2 == 1 {
				by = s
			}
			for _, text := range []string{"BEGIN", "UPDATE " + tb + " SET n = n + 1 WHERE id = 1", "PREPARE TRANSACTION 'freshet'"} {
				if got := by.ask(text); strings.HasPrefix(got, "error") {
					t.Fatal(got)
				}
			}
			for range 5 { // the feed proves what came before
				s.ask(read)
			}
			if got := s.ask("COMMIT PREPARED 'freshet'"); strings.HasPrefix(got, "error") {
				t.Fatal(got)
			}
			if got, want := s.ask(read), writer.ask(read); got != want {
				wrong++
				t.Logf("round %d: %s after the commit of %s", n, got, want)
			}
		}
		if wrong > 0 {
			t.Errorf("%d own commits of 60 were not seen", wrong)
		}
	}, "max_prepared_transactions=4")
}

// Columns whose values are shown by names that the catalog gives: renaming what
// they name changes no row. Other columns of the table are kept.
func TestColumnsThatTheCatalogNames(t *testing.T) {
	inPostgres(t, func(t *testing.T, r *rig) {
		direct, s := r.line(t, false), r.line(t, true)
		named := r.table(t, "id INT PRIMARY KEY")
		tb := r.table(t, "id INT PRIMARY KEY, r REGCLASS, t REGTYPE[], n INT", "1, '"+named+"', ARRAY['int'::regtype], 7")
		mustExec(t, r.direct, "CREATE DOMAIN d_"+tb+" AS REGCLASS")
		t.Cleanup(func() { mustExec(t, r.direct, "DROP DOMAIN d_"+tb+" CASCADE") })
		mustExec(t, r.direct, "ALTER TABLE "+tb+" ADD d d_"+tb)
		for _, read := range []string{"SELECT r FROM " + tb, "SELECT * FROM " + tb, "SELECT t FROM " + tb, "SELECT json_agg(x) FROM " + tb + " x",
			"SELECT d FROM " + tb, "SELECT n FROM " + tb + " WHERE r::text = '" + named + "'"} {
			for range 3 {
				s.ask(read)
			}
			if got := s.ask("EXPLAIN CREATE CACHE FROM " + read); !strings.Contains(got, "no: ") {
				t.Errorf("%s: %s", read, got)
			}
			mustExec(t, r.direct, "ALTER TABLE "+named+" RENAME TO other_"+named)
			if got, want := s.ask(read), direct.ask(read); got != want {
				t.Errorf("%s: %s, the server says %s", read, got, want)
			}
			mustExec(t, r.direct, "ALTER TABLE other_"+named+" RENAME TO "+named)
		}
		until(t, "a hit", func() (bool, string) {
			got := s.ask("SELECT n FROM "+tb+" WHERE id = 1") + s.ask("EXPLAIN LAST STATEMENT")
			return strings.Contains(got, "cache("), got
		})
	})
}

// What came with the server can be taken from users, too.
func TestRightsOnBuiltInFunctions(t *testing.T) {
	inOwnPostgres(t, func(t *testing.T, r *rig) {
		tb := r.table(t, "id INT PRIMARY KEY, w TEXT", "1,'A'")
		s := r.line(t, true)
		read := "SELECT lower(w) FROM " + tb
		until(t, "a hit", func() (bool, string) {
			got := s.ask(read) + s.ask("EXPLAIN LAST STATEMENT")
			return strings.Contains(got, "cache("), got
		})
		mustExec(t, r.direct, "REVOKE EXECUTE ON FUNCTION lower(text) FROM PUBLIC")
		until(t, "the entries are gone", func() (bool, string) {
			got := s.ask(read) + s.ask("EXPLAIN LAST STATEMENT")
			return !strings.Contains(got, "cache("), got
		})
	})
}
