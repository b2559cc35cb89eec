package mysql_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
	"freshet/proxy"
)

// A READ COMMITTED transaction that only reads what is kept takes no link: here
// another session has the only one. Every packet is the server's own.
func TestHeldBeginTakesNoLink(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		for name, way := range map[string]struct{ opening, begin, end string }{
			"begin":              {"", "BEGIN", "COMMIT"},
			"start transaction":  {"", "start transaction", "rollback work"},
			"without autocommit": {"SET autocommit = 0", "", "COMMIT"},
		} {
			t.Run(name, func(t *testing.T) {
				table(t, s, "held", "CREATE TABLE held (id INT PRIMARY KEY, n INT)", "INSERT INTO held VALUES (1, 10), (2, 20)")
				address := serve(t, s, proxy.Config{Loops: 1, MaxLinks: 1, LinkWait: 300 * time.Millisecond})
				open := func(at string) *client {
					c := mustDial(t, at, as(s, plainCaps))
					for _, q := range []string{"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", way.opening} {
						if q != "" && c.query(q).err != nil {
							t.Fatal(q)
						}
					}
					return c
				}
				whole := func(c *client) (all []string) {
					for _, q := range []string{way.begin, "SELECT n FROM held WHERE id = 1", "SELECT n FROM held WHERE id = 2", "SELECT n FROM held WHERE id = 1", way.end} {
						if q != "" {
							all = append(all, q+": "+c.query(q).String())
						}
					}
					return all
				}
				want := whole(open(s.Address()))
				c := open(address)
				deadline := time.Now().Add(10 * time.Second)
				for kept := false; !kept; {
					if whole(c); way.begin != "" {
						c.query(way.begin)
					}
					c.query("SELECT n FROM held WHERE id = 1")
					kept = strings.HasPrefix(c.cells("EXPLAIN LAST STATEMENT"), "cache")
					c.query(way.end)
					if time.Now().After(deadline) {
						t.Fatal("a read in a transaction never hits")
					}
				}
				whole(c)
				hog := mustDial(t, address, as(s, plainCaps))
				if r := hog.query("CREATE TEMPORARY TABLE hog (a INT)"); r.err != nil {
					t.Fatal(r.err)
				}
				if got := whole(c); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			})
		}
	})
}

// Random transactions through and direct, on twin tables that others change at
// the same time: every packet must be the same.
func TestTransactionsAreTheServers(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		r := seeded(t)
		address := serve(t, s, proxy.Config{Loops: 1, MaxLinks: 4})
		const create = " (id INT PRIMARY KEY, n INT) ENGINE = InnoDB"
		admin := table(t, s, "lazyt", "CREATE TABLE lazyt"+create, "INSERT INTO lazyt VALUES (1, 1), (2, 2), (3, 3)")
		table(t, s, "lazyd", "CREATE TABLE lazyd"+create, "INSERT INTO lazyd VALUES (1, 1), (2, 2), (3, 3)")
		twin := func(q string) string { return strings.ReplaceAll(q, "lazyt", "lazyd") }
		untwin := strings.NewReplacer(hex.EncodeToString([]byte("lazyd")), hex.EncodeToString([]byte("lazyt")))
		const sessions = 3
		var through, direct [sessions]*client
		var history [sessions][]string
		for i := range sessions {
			through[i], direct[i] = mustDial(t, address, as(s, plainCaps)), mustDial(t, s.Address(), as(s, plainCaps))
			for _, c := range []*client{through[i], direct[i]} {
				c.query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
				c.query("SET SESSION innodb_lock_wait_timeout = 1")
			}
		}
		hits := 0
		for step := range 1500 {
			if r.IntN(15) == 0 {
				q := fmt.Sprintf("UPDATE lazyt SET n = n + 1 WHERE id = %d", 3)
				admin.query(q)
				admin.query(twin(q))
			}
			i := r.IntN(sessions)
			q := lazyStatement(r, i)
			history[i] = append(history[i], q)
			same := func() (string, string) {
				return through[i].query(q).String(), untwin.Replace(direct[i].query(twin(q)).String())
			}
			got, want := same()
			// Freshness is bounded, not immediate: what another has just changed may be asked for again.
			for deadline := time.Now().Add(time.Second); got != want && strings.HasPrefix(q, "SELECT") && time.Now().Before(deadline); {
				got, want = same()
			}
			if strings.Contains(got, "no longer known") {
				through[i].query("SELECT 1")
				continue
			}
			if got != want {
				t.Fatalf("step %d, session %d: %s\nthrough %q\n direct %q\nafter:\n%s", step, i, q, got, want, strings.Join(history[i][max(0, len(history[i])-12):], "\n"))
			}
			if strings.HasPrefix(q, "SELECT n") && strings.HasPrefix(through[i].cells("EXPLAIN LAST STATEMENT"), "cache") {
				hits++
			}
		}
		if hits < 10 {
			t.Errorf("only %d hits", hits)
		}
	})
}

// lazyStatement: sessions write rows of their own, so none waits for another.
func lazyStatement(r *rand.Rand, i int) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	switch r.IntN(12) {
	case 0, 1:
		return pick("BEGIN", "START TRANSACTION", "begin work", "START TRANSACTION READ ONLY", "START TRANSACTION WITH CONSISTENT SNAPSHOT")
	case 2, 3:
		return pick("COMMIT", "ROLLBACK", "commit work", "ROLLBACK", "COMMIT AND CHAIN", "ROLLBACK AND NO CHAIN")
	case 4:
		return pick("SET autocommit = 0", "SET autocommit = 1", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
			"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
	case 5:
		return pick(fmt.Sprintf("UPDATE lazyt SET n = n + 1 WHERE id = %d", 10+i), fmt.Sprintf("REPLACE INTO lazyt VALUES (%d, 5)", 10+i), fmt.Sprintf("DELETE FROM lazyt WHERE id = %d", 10+i),
			"SAVEPOINT a", "ROLLBACK TO a")
	case 6:
		return pick("SELECT @@autocommit, @@in_transaction", "SELECT 1", "SELECT n FROM lazyt WHERE id = 2 FOR UPDATE", "SELECT nosuch FROM lazyt", "SHOW WARNINGS")
	}
	return fmt.Sprintf("SELECT n FROM lazyt WHERE id = %d", []int{1, 2, 3, 10 + i}[r.IntN(4)])
}
