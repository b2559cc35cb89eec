package proxy_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
	"freshet/proxy"
)

// Settings change answers: each session gets its own.
func TestSettingsAreInTheKey(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		column, query := "ts TIMESTAMP", "SELECT ts FROM %s WHERE id = 1"
		zones := []string{"SET time_zone = '+05:00'", "SET SESSION time_zone='-03:00'", "SET @@session.time_zone = DEFAULT"}
		if r.postgres() {
			column, query = "ts TIMESTAMPTZ", "SELECT ts::text AS ts FROM %s WHERE id = 1"
			zones = []string{"SET TimeZone = 'Asia/Tokyo'", "SET TIME ZONE 'America/Lima'", "SELECT set_config('timezone','UTC',false)", "RESET ALL"}
		}
		tb := r.table(t, "id INT PRIMARY KEY, "+column, "1,'2024-05-06 07:08:09'")
		q := fmt.Sprintf(query, tb)
		plain, c, own := conn(t, r.through), conn(t, r.through), conn(t, r.direct)
		hits(t, plain, q)
		for _, zone := range zones {
			ask(c, zone)
			ask(own, zone)
			want := ask(own, q)
			for range 3 {
				if got := ask(c, q); got != want {
					t.Fatalf("after %s: got %s want %s", zone, got, want)
				}
			}
			hits(t, c, q)
			if got := ask(c, q); got != want {
				t.Fatalf("a hit after %s: got %s want %s", zone, got, want)
			}
			if got := ask(plain, q); got != ask(r.direct, q) {
				t.Fatalf("another session after %s: %s", zone, got)
			}
		}
	})
}

// Temporary tables hide tables of the same name from their own session only.
func TestTemporaryTableHidesATable(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		tb := r.table(t, "id INT PRIMARY KEY, n INT", "1,10")
		q := "SELECT n FROM " + tb + " WHERE id = 1"
		c, other := conn(t, r.through), conn(t, r.through)
		hits(t, other, q)
		mustExec(t, c, "CREATE TEMPORARY TABLE "+tb+" (id INT PRIMARY KEY, n INT)")
		for range 3 {
			if got := ask(c, q); strings.Contains(got, "10") {
				t.Fatalf("the hidden table answered: %s", got)
			}
		}
		if got := ask(other, q); !strings.Contains(got, "10") {
			t.Fatalf("the other session saw the temporary table: %s", got)
		}
		mustExec(t, c, "DROP TABLE "+tb)
		r.agrees(t, c, q)
	})
}

// Errors come through as the server words them, and the session lives on.
func TestErrorsPass(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		tb := r.table(t, "id INT PRIMARY KEY", "1")
		c, own := conn(t, r.through), conn(t, r.direct)
		for _, q := range []string{"SELECT nonsense FROM " + tb, "SELEKT 1", "INSERT INTO " + tb + " VALUES (1)", "SELECT * FROM no_such_table", "SELECT 1 FROM " + tb + " WHERE id = 'x' + FROM"} {
			for range 2 {
				if got, want := ask(c, q), ask(own, q); got != want {
					t.Errorf("%s\n got %s\nwant %s", q, got, want)
				}
			}
		}
		r.agrees(t, c, "SELECT id FROM "+tb)
	})
}

func TestWrongPasswordAndUnknownUser(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		for _, who := range [][2]string{{r.server.User, "wrong"}, {"nobody_here", r.server.Password}} {
			dsn := strings.Replace(r.dsn(""), r.server.User+":"+r.server.Password, who[0]+":"+who[1], 1)
			db, err := sql.Open(r.server.Driver(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			err = db.Ping()
			want := "Error 1045 (28000): Access denied for user '" + who[0] + "'@"
			if r.postgres() {
				want = "password authentication failed for user \"" + who[0] + "\" (SQLSTATE 28P01)"
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", who[0], err, want)
			}
			db.Close()
		}
	})
}

func TestFullHouseInEachDialect(t *testing.T) {
	for _, kind := range upstream.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			r := newRig(t, upstream.Need(t, kind), proxy.Config{MaxConnections: 1})
			conn(t, r.through)
			err := r.open(t, "").Ping()
			want := "1040"
			if r.postgres() {
				want = "53300"
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

// The upstream is killed and comes back: errors, not hangs; then all resumes.
func TestUpstreamDiesAndComesBack(t *testing.T) {
	for _, kind := range upstream.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, upstream.Own(t, kind), proxy.Config{})
			tb := r.table(t, "id INT PRIMARY KEY, n INT", "1,10")
			q := "SELECT n FROM " + tb + " WHERE id = 1"
			hits(t, conn(t, r.through), q)
			if err := r.server.Kill(); err != nil {
				t.Fatal(err)
			}
			// Past the bound nothing is served; each answer comes soon.
			until(t, "an error", func() (bool, string) {
				started := time.Now()
				answer := ask(r.through, q)
				if took := time.Since(started); took > 8*time.Second {
					t.Fatalf("hung for %v: %s", took, answer)
				}
				return strings.HasPrefix(answer, "error"), answer
			})
			if err := r.server.Restart(context.Background()); err != nil {
				t.Fatal(err)
			}
			until(t, "a direct write", func() (bool, string) { // the pool's old connections fail once
				_, err := r.direct.Exec("UPDATE " + tb + " SET n = 11 WHERE id = 1")
				return err == nil, fmt.Sprint(err)
			})
			until(t, "forwarding", func() (bool, string) {
				answer := ask(r.through, q)
				return strings.Contains(answer, "11"), answer
			})
			c := conn(t, r.through)
			hits(t, c, q)
			mustExec(t, r.direct, "UPDATE "+tb+" SET n = 12 WHERE id = 1")
			r.agrees(t, c, q)
		})
	}
}

func TestModesAndSavedQueries(t *testing.T) {
	everywhere(t, func(t *testing.T, first *rig) {
		dir := t.TempDir()
		r := newRig(t, first.server, proxy.Config{Cache: proxy.CacheExplicit, StoreDir: dir})
		tb := r.table(t, "id INT PRIMARY KEY, n INT", "1,10")
		q := "SELECT n FROM " + tb + " WHERE id = 1"
		c := conn(t, r.through)
		for range 3 {
			ask(c, q)
			if d, _ := where(t, c); d != "upstream" {
				t.Fatalf("kept without being asked: %s", d)
			}
		}
		mustExec(t, c, "CREATE CACHE hot FROM SELECT n FROM "+tb+" WHERE id = 99")
		hits(t, c, q)
		if got := ask(c, "SHOW CACHES LIKE 'hot'"); !strings.Contains(got, "hot|") {
			t.Fatalf("SHOW CACHES: %s", got)
		}
		again := newRig(t, first.server, proxy.Config{Cache: proxy.CacheExplicit, StoreDir: dir})
		c2 := conn(t, again.through)
		hits(t, c2, q)
		mustExec(t, c2, "DROP CACHE hot")
		ask(c2, q)
		if d, _ := where(t, c2); d != "upstream" {
			t.Fatalf("kept after DROP CACHE: %s", d)
		}
		if got := ask(c2, "DROP CACHE hot"); !strings.HasPrefix(got, "error") {
			t.Fatalf("dropping twice: %s", got)
		}
		off := newRig(t, first.server, proxy.Config{Cache: proxy.CacheOff})
		c3 := conn(t, off.through)
		for range 3 {
			off.agrees(t, c3, q)
			if d, _ := where(t, c3); d != "upstream" {
				t.Fatalf("--cache off: %s", d)
			}
		}
	})
}

func TestCommands(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		tb := r.table(t, "id INT PRIMARY KEY, n INT", "1,10")
		c := conn(t, r.through)
		q := "SELECT n FROM " + tb + " WHERE id = 1"
		if got := ask(c, "EXPLAIN CREATE CACHE FROM "+q); !strings.Contains(got, "|yes|key|") {
			t.Errorf("EXPLAIN CREATE CACHE: %s", got)
		}
		if got := ask(c, "EXPLAIN CREATE CACHE FROM SELECT n, now() FROM "+tb); !strings.Contains(got, "|no: ") {
			t.Errorf("EXPLAIN CREATE CACHE of a volatile one: %s", got)
		}
		hits(t, c, q)
		mustExec(t, c, "FLUSH ALL CACHES")
		ask(c, q)
		if d, reason := where(t, c); d != "fill" {
			t.Errorf("after FLUSH ALL CACHES: %s (%s)", d, reason)
		}
		hits(t, c, q)
		hits(t, c, strings.Replace(q, "SELECT", "SELECT /*+ freshet: ttl 60s */", 1))
		for range 2 {
			ask(c, strings.Replace(q, "SELECT", "SELECT /*+ freshet: no-cache */", 1))
			if d, _ := where(t, c); d != "upstream" {
				t.Errorf("no-cache: %s", d)
			}
		}
		if got := ask(c, "SHOW freshet.cache"); !strings.Contains(got, "on|") {
			t.Errorf("SHOW freshet.cache: %s", got)
		}
		mustExec(t, c, "SET freshet.cache = off")
		ask(c, q)
		if d, _ := where(t, c); d != "upstream" {
			t.Errorf("with the cache off: %s", d)
		}
		mustExec(t, c, "SET freshet.cache = on")
		hits(t, c, q)
		ask(c, "SELECT now() AS t FROM "+tb)
		if got := ask(c, "SHOW PROXIED QUERIES LIMIT 50"); !strings.Contains(got, "no: ") {
			t.Errorf("SHOW PROXIED QUERIES: %s", got)
		}
		if got := ask(c, "SHOW FRESHET STATUS"); !strings.Contains(got, "feed|following|") {
			t.Errorf("SHOW FRESHET STATUS: %s", got)
		}
		for range 2 {
			ask(c, strings.Replace(q, "SELECT", "SELECT /*+ freshet: no-cahce */", 1))
			if d, reason := where(t, c); d != "upstream" || !strings.Contains(reason, "no-cahce") {
				t.Errorf("a hint with a mistake: %s (%s)", d, reason)
			}
		}
		mustExec(t, c, "UPDATE "+tb+" SET n = n")
		if got := ask(c, "SHOW PROXIED QUERIES"); strings.Contains(got, "q_0000000000000000") {
			t.Errorf("SHOW PROXIED QUERIES has a query_id that is none: %s", got)
		}
		if got := ask(c, "SHOW FRESHET VERSION"); !strings.HasPrefix(got, "name:") || !strings.Contains(got, "version|"+proxy.Version+"|") {
			t.Errorf("SHOW FRESHET VERSION: %s", got)
		}
		number := "42601"
		if !r.postgres() {
			number = "1064 (42000)"
		}
		if got := ask(c, "CREATE CACHE WITH (TTL 5 HOURS) FROM SELECT 1"); !strings.Contains(got, number) || !strings.Contains(got, "expected SECONDS") {
			t.Errorf("a mistake: %s", got)
		}
	})
}

// A command inside a transaction is answered and leaves it as it is.
func TestCommandInATransaction(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		tb := r.table(t, "id INT PRIMARY KEY, n INT", "1,10")
		extra := ""
		if r.postgres() {
			extra = "default_query_exec_mode=simple_protocol"
		}
		tx, err := r.open(t, extra).Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback() //nolint:errcheck // committed below
		mustExec(t, tx, "UPDATE "+tb+" SET n = 11 WHERE id = 1")
		ask(tx, "SELECT n FROM "+tb+" WHERE id = 1")
		if got := ask(tx, "EXPLAIN LAST STATEMENT"); !strings.Contains(got, "upstream|inside a transaction") {
			t.Errorf("EXPLAIN LAST STATEMENT: %s", got)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if got := ask(r.direct, "SELECT n FROM "+tb); !strings.Contains(got, "11") {
			t.Errorf("after COMMIT: %s", got)
		}
	})
}

func TestHealthAndMetrics(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		tb := r.table(t, "id INT PRIMARY KEY, n INT", "1,10")
		hits(t, conn(t, r.through), "SELECT n FROM "+tb+" WHERE id = 1")
		var h struct{ Status string }
		if err := json.Unmarshal([]byte(get(t, r, "/health")), &h); err != nil || h.Status != "ok" {
			t.Errorf("health %q, %v", h.Status, err)
		}
		m := get(t, r, "/metrics")
		for _, name := range []string{"queries_total", "hit_seconds", "forward_seconds", "entries", "store_bytes", "store_limit_bytes", "evictions_total",
			"invalidations_total", "feed_lag_seconds", "feed_position", "feed_up", "stale_bypass_total", "connections", "links", "links_opened_total",
			"protocol_errors_total", "build_info"} {
			if !strings.Contains(m, "\nfreshet_"+name) {
				t.Errorf("no metric %s", name)
			}
		}
	})
}

func get(t testing.TB, r *rig, path string) string {
	t.Helper()
	resp, err := http.Get("http://" + r.http + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A customised option that one session made (even for a moment) is there for
// that session ever after, empty, and for no other.
func TestCustomisedOptionsStayWithTheirSession(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		if !r.postgres() {
			t.Skip("PostgreSQL's")
		}
		const q = "SELECT current_setting('myapp.tenant', true) IS NULL, coalesce(current_setting('myapp.tenant', true), 'none')"
		c, own := conn(t, r.through), conn(t, r.direct)
		for _, statement := range []string{"SELECT 1", "BEGIN", "SET LOCAL myapp.tenant = 'x'", "COMMIT", "RESET ALL", "SELECT 2", "SET myapp.tenant = 'y'", "DISCARD ALL"} {
			ask(c, statement)
			ask(own, statement)
			if got, want := ask(c, q), ask(own, q); got != want {
				t.Errorf("after %s: %s, want %s", statement, got, want)
			}
			other := conn(t, r.through)
			if got, want := ask(other, q), ask(r.direct, q); got != want {
				t.Errorf("another session after %s: %s, want %s", statement, got, want)
			}
		}
	})
}

// A prepared statement's literals were read when it was parsed. What it answers
// later is for no session that parsed the same text under other settings.
func TestLiteralsAreReadWhenParsed(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		if !r.postgres() {
			t.Skip("PostgreSQL's")
		}
		tb := r.table(t, "id INT PRIMARY KEY, d DATE, ts TIMESTAMPTZ", "1,'2024-01-02','2024-03-10 00:00+00'", "2,'2024-02-01','2024-03-10 09:00+00'")
		for _, x := range [][2]string{{"SET datestyle = 'SQL, DMY'", "SELECT id FROM " + tb + " WHERE d = '02/01/2024'"}, {"SET timezone = 'Asia/Tokyo'", "SELECT id FROM " + tb + " WHERE ts = '2024-03-10 09:00'"}} {
			plain, a, own := conn(t, r.through), conn(t, r.through), conn(t, r.direct)
			hits(t, plain, x[1])
			want := ask(own, x[1])
			mustExec(t, own, x[0])
			mustExec(t, a, x[0])
			for _, c := range []*sql.Conn{a, own} {
				if _, err := c.ExecContext(t.Context(), "SELECT 1"); err != nil {
					t.Fatal(err)
				}
			}
			prepare := func(c *sql.Conn) *sql.Stmt {
				st, err := c.PrepareContext(t.Context(), x[1]+" AND id < 100")
				if err != nil {
					t.Fatal(err)
				}
				return st
			}
			run := func(st *sql.Stmt) (id int) {
				if err := st.QueryRowContext(t.Context()).Scan(&id); err != nil {
					t.Fatal(err)
				}
				return id
			}
			through, direct := prepare(a), prepare(own)
			for _, reset := range []string{"SELECT 1", "RESET ALL"} {
				mustExec(t, a, reset)
				mustExec(t, own, reset)
				for range 3 {
					if got, want := run(through), run(direct); got != want {
						t.Errorf("%s; %s: %d, want %d", x[0], reset, got, want)
					}
				}
			}
			for range 3 {
				if got := ask(conn(t, r.through), x[1]); got != want {
					t.Errorf("another session after %s: %s, want %s", x[0], got, want)
				}
				other := conn(t, r.through)
				if got := run(prepare(other)); !strings.Contains(want, fmt.Sprint(got)) {
					t.Errorf("another session that prepares, after %s: %d, want %s", x[0], got, want)
				}
			}
		}
	})
}
