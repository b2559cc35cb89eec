package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"freshet/bench/upstream"
	"freshet/proxy"
)

// holdCommits sets a server up to hold each commit until Freshet has it, as
// freshet check says.
func holdCommits(t *testing.T, s *upstream.Server) {
	t.Helper()
	statements := []string{"ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (freshet)'", "SELECT pg_reload_conf()"}
	switch s.Kind {
	case upstream.MySQL:
		statements = []string{"INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'", "SET GLOBAL rpl_semi_sync_source_enabled = ON"}
	case upstream.MariaDB:
		statements = []string{"SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC'", "SET GLOBAL rpl_semi_sync_master_enabled = ON"}
	}
	for _, q := range statements {
		mustExec(t, s.DB(t), q)
	}
}

// Once a commit has returned, to a writer that Freshet does not know of, no
// read that begins later is older; and yet reads hit.
func TestLinearizable(t *testing.T) {
	for _, kind := range upstream.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			s := upstream.Own(t, kind)
			holdCommits(t, s)
			r := newRig(t, s, proxy.Config{Consistency: "linearizable"})
			until(t, "a lease", func() (bool, string) {
				got := ask(r.through, "SHOW FRESHET STATUS")
				return strings.Contains(got, "held"), got
			})
			tb := r.table(t, "id INT PRIMARY KEY, n INT", "1,0", "2,0")
			q, other := "SELECT n FROM "+tb+" WHERE id = 1", "SELECT n FROM "+tb+" WHERE id = 2"
			reader, own := conn(t, r.through), conn(t, r.through)
			hits(t, reader, q)
			hits(t, reader, other)
			hit := 0
			for i := 1; i <= 300; i++ {
				mustExec(t, r.direct, fmt.Sprintf("UPDATE %s SET n = %d WHERE id = 1", tb, i))
				if got, want := ask(reader, q), ask(r.direct, q); got != want {
					t.Fatalf("after commit %d: read %s, want %s", i, got, want)
				}
				ask(reader, q)
				if strings.Contains(ask(reader, "EXPLAIN LAST STATEMENT"), "cache(") {
					hit++
				}
				mustExec(t, own, fmt.Sprintf("UPDATE %s SET n = %d WHERE id = 1", tb, -i))
				if got, want := ask(own, q), ask(r.direct, q); got != want {
					t.Fatalf("after the session's own commit %d: read %s, want %s", i, got, want)
				}
				ask(own, other) // its own write does not keep it from other answers
				if strings.Contains(ask(own, "EXPLAIN LAST STATEMENT"), "cache(") {
					hit++
				}
			}
			if hit < 300 {
				t.Errorf("%d of 600 reads that could hit did", hit)
			}
		})
	}
}

// Without an upstream that holds commits nothing is served at this level, and
// the status says why.
func TestLinearizableWithoutALease(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		tb := r.table(t, "id INT PRIMARY KEY, n INT", "1,0")
		q := "SELECT n FROM " + tb + " WHERE id = 1"
		plain, strict := conn(t, r.through), conn(t, r.through)
		hits(t, plain, q)
		mustExec(t, strict, "SET freshet.consistency = linearizable")
		for i := range 20 {
			mustExec(t, r.direct, fmt.Sprintf("UPDATE %s SET n = %d WHERE id = 1", tb, i))
			if got, want := ask(strict, q), ask(r.direct, q); got != want {
				t.Fatalf("read %s, want %s", got, want)
			}
		}
		hits(t, plain, q)
		for range 50 {
			if got := ask(strict, q); strings.Contains(ask(strict, "EXPLAIN LAST STATEMENT"), "cache(") {
				t.Fatalf("a hit without a lease: %s", got)
			}
		}
	})
}
