package proxy_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
	"freshet/proxy"
)

// TestPoolSession: with --pool session a session keeps the upstream connection
// that its first statement took until its client leaves, and then another has
// it. Hits need none.
func TestPoolSession(t *testing.T) {
	for _, kind := range upstream.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			r := newRig(t, upstream.Need(t, kind), proxy.Config{Pool: proxy.PoolSession, MaxLinks: 2, Loops: 1, LinkWait: 300 * time.Millisecond})
			tb := r.table(t, "id INT PRIMARY KEY, n INT", "1,10")
			cached, forwarded := "SELECT n FROM "+tb+" WHERE id = 1", "SELECT n, "+volatile(r)+" < 0 FROM "+tb
			for range 2 { // the second client's statement is described without the upstream
				warm := r.open(t, "")
				until(t, "a hit", func() (bool, string) {
					c := conn(t, warm)
					got := ask(c, cached) + ask(c, "EXPLAIN LAST STATEMENT")
					return strings.Contains(got, "cache("), got + fmt.Sprint(c.Close())
				})
				if err := warm.Close(); err != nil {
					t.Fatal(err)
				}
			}
			leaves := r.open(t, "")
			leaves.SetMaxOpenConns(1)
			first, second, third := conn(t, leaves), conn(t, r.open(t, "")), conn(t, r.open(t, ""))
			for n, c := range []*sql.Conn{first, second} {
				if got := ask(c, forwarded); strings.HasPrefix(got, "error") {
					t.Fatal(got)
				}
				until(t, "a link that is kept", func() (bool, string) {
					busy := r.figure(t, "links_busy")
					return busy == int64(n+1), fmt.Sprint(busy)
				})
			}
			if got := ask(third, cached); !strings.Contains(got, "10") {
				t.Errorf("a hit without a link: %s", got)
			}
			if got := ask(third, forwarded); !strings.HasPrefix(got, "error") {
				t.Errorf("a third session found a link: %s", got)
			}
			opened := r.figure(t, "links_opened_total")
			if err := errors.Join(first.Close(), leaves.Close()); err != nil {
				t.Fatal(err)
			}
			until(t, "the link of a client that left", func() (bool, string) {
				got := ask(third, forwarded)
				return !strings.HasPrefix(got, "error"), got
			})
			if now := r.figure(t, "links_opened_total"); now != opened {
				t.Errorf("%d links were opened, %d before: a clean one was not used again", now, opened)
			}
		})
	}
}

// volatile is an expression that is never answered from memory.
func volatile(r *rig) string {
	if r.postgres() {
		return "random()"
	}
	return "RAND()"
}

// TestShowLinks: who has a link, and why it is not given back; and who is
// there.
func TestShowLinks(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		pin, why := "SET @freshet_test = 1", "user variables"
		if r.postgres() {
			pin, why = "CREATE TEMPORARY TABLE freshet_test (a INT)", "temporary tables"
		}
		c := conn(t, r.open(t, ""))
		mustExec(t, c, pin)
		until(t, "the reason", func() (bool, string) {
			got := ask(r.through, "SHOW FRESHET LINKS")
			return strings.Contains(got, "|"+why+"|"), got
		})
		got := ask(c, "SHOW FRESHET CONNECTIONS")
		if !strings.Contains(got, "|"+r.server.User+"|127.0.0.1:") || !strings.Contains(got, "|on|session|") {
			t.Errorf("connections: %s", got)
		}
		if err := c.Raw(func(any) error { return driver.ErrBadConn }); !errors.Is(err, driver.ErrBadConn) { // hangs up
			t.Fatal(err)
		}
		until(t, "the link is gone", func() (bool, string) {
			got := ask(r.through, "SHOW FRESHET LINKS")
			return !strings.Contains(got, why), got
		})
	})
}
