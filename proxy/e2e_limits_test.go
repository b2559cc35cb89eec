package proxy_test

import (
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"freshet/bench/upstream"
	"freshet/proxy"
)

// At shutdown a session at rest is told so at once, in the server's words; one
// in a transaction may end it.
func TestShutdown(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		tb := r.table(t, "id INT PRIMARY KEY, n INT", "1,10")
		idle, busy := conn(t, r.through), conn(t, r.through)
		ask(idle, "SELECT n FROM "+tb)
		mustExec(t, busy, "BEGIN")
		mustExec(t, busy, "UPDATE "+tb+" SET n = 11 WHERE id = 1")
		began := time.Now()
		r.stop()
		until(t, "the idle session's farewell", func() (bool, string) {
			got := ask(idle, "SELECT n FROM "+tb+" WHERE id = 1")
			return strings.HasPrefix(got, "error"), got
		})
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("the idle session was told after %v", took)
		}
		mustExec(t, busy, "COMMIT")
		if got := ask(r.direct, "SELECT n FROM "+tb); !strings.Contains(got, "11") {
			t.Errorf("the transaction was lost: %s", got)
		}
	})
}

// An upstream that takes fewer connections than there are clients: they wait
// for each other, and the upstream's other clients get in again.
func TestUpstreamWithFewConnections(t *testing.T) {
	for _, kind := range []upstream.Kind{upstream.MariaDB, upstream.Postgres15} {
		t.Run(string(kind), func(t *testing.T) {
			sleep := "SELECT SLEEP(0.1)"
			if kind == upstream.Postgres15 {
				sleep = "SELECT pg_sleep(0.1)"
			}
			r := newRig(t, upstream.Own(t, kind, upstream.WithSettings("max_connections=14")), proxy.Config{MaxLinks: 100, Loops: 1})
			var all sync.WaitGroup
			failed := make(chan string, 30)
			for range 30 {
				all.Add(1)
				go func() {
					defer all.Done()
					if got := ask(r.through, sleep); strings.HasPrefix(got, "error") {
						failed <- got
					}
				}()
			}
			all.Wait()
			close(failed)
			refused := 0
			for msg := range failed {
				refused++
				t.Log(msg)
			}
			if refused > 0 {
				t.Errorf("%d of 30 clients were refused", refused)
			}
			if got := ask(r.open(t, ""), fmt.Sprintf("SELECT %d AS n", 7)); !strings.Contains(got, "7") {
				t.Errorf("a later client: %s", got)
			}
		})
	}
}

// What comes in pieces does not cost the link that brought it, and links are
// counted right.
func TestLongAnswersKeepTheirLink(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		long := "WITH RECURSIVE g AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM g WHERE i < 900) SELECT i, " + r.random() + " AS x, REPEAT('y', 100) AS y FROM g"
		c := conn(t, r.through)
		ask(c, long)
		before := r.figure(t, "links_opened_total")
		for range 20 {
			if got := ask(c, long); strings.HasPrefix(got, "error") {
				t.Fatal(got)
			}
		}
		// The session that asks for the figures may need one.
		if opened := r.figure(t, "links_opened_total") - before; opened > 1 {
			t.Errorf("%d links were opened for 20 answers", opened)
		}
		if busy := r.figure(t, "links_busy"); busy < 0 || busy > 1 {
			t.Errorf("%d links are busy", busy)
		}
	})
}

// --max-links bounds all loops together: a session whose loop has none gets one
// that lies idle on another, and none is counted twice.
func TestLinksMoveBetweenLoops(t *testing.T) {
	for _, kind := range []upstream.Kind{upstream.MariaDB, upstream.Postgres15} {
		t.Run(string(kind), func(t *testing.T) {
			r := newRig(t, upstream.Need(t, kind), proxy.Config{MaxLinks: 4, Loops: 2, LinkWait: 5 * time.Second})
			tb := r.table(t, "id INT PRIMARY KEY, n INT", "1,10")
			var all []*sql.Conn
			for range 6 {
				all = append(all, conn(t, r.through)) // by turns on either loop
			}
			write := func(c *sql.Conn) string {
				if got := ask(c, "BEGIN"); strings.HasPrefix(got, "error") {
					return got
				}
				if _, err := c.ExecContext(t.Context(), "INSERT INTO "+tb+" VALUES ("+fmt.Sprint(time.Now().UnixNano()%1_000_000_000)+", 1)"); err != nil {
					return "error: " + err.Error()
				}
				return ""
			}
			for turn := range 3 {
				for _, set := range [][]int{{0, 2, 4}, {1, 3, 5}, {0, 1, 2, 3}, {2, 3, 4, 5}} {
					for _, i := range set {
						if got := write(all[i]); got != "" {
							t.Fatalf("turn %d, sessions %v: session %d: %s", turn, set, i, got)
						}
					}
					if idle, busy := r.figure(t, "links_idle"), r.figure(t, "links_busy"); idle < 0 || idle+busy > 4 || busy < int64(len(set)) {
						t.Errorf("sessions %v: %d links idle, %d busy", set, idle, busy)
					}
					for _, i := range set {
						mustExec(t, all[i], "ROLLBACK")
					}
				}
			}
			// All are taken; a fifth waits, and any that ends serves it.
			for ends := range 4 {
				for i := range 4 {
					if got := write(all[i]); got != "" {
						t.Fatal(got)
					}
				}
				told := make(chan string, 1)
				go func() { told <- write(all[4]) }()
				time.Sleep(20 * time.Millisecond) // so that it waits; if not, the test is only easier
				mustExec(t, all[ends], "ROLLBACK")
				if got := <-told; got != "" {
					t.Errorf("after the end of session %d: %s", ends, got)
				}
				for i := range 5 {
					if i != ends {
						mustExec(t, all[i], "ROLLBACK")
					}
				}
			}
		})
	}
}

// figure is one of SHOW FRESHET STATUS.
func (r *rig) figure(t *testing.T, name string) int64 {
	t.Helper()
	rows, err := r.through.QueryContext(t.Context(), "SHOW FRESHET STATUS")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var key, value string
		if err := rows.Scan(&key, &value); err != nil {
			t.Fatal(err)
		}
		if key == name {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("SHOW FRESHET STATUS has no %s: %v", name, rows.Err())
	return 0
}

// random is the dialect's function that no answer is kept of.
func (r *rig) random() string {
	if r.postgres() {
		return "RANDOM()"
	}
	return "RAND()"
}
