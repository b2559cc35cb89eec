package proxy_test

import (
	"fmt"
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
