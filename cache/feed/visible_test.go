package feed

import (
	"context"
	"testing"
	"time"

	"freshet/bench/upstream"
	"freshet/cache"
)

// delay makes commits wait between the log and their being readable: for an
// acknowledgement that nobody gives. It returns what lets them go.
func (r *rig) delay() (release func()) {
	r.t.Helper()
	switch r.server.Kind {
	case upstream.MySQL:
		if _, err := r.db.Exec("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'"); err != nil {
			r.t.Logf("semi-synchronous replication: %v", err)
		}
		r.exec("SET GLOBAL rpl_semi_sync_source_timeout = 60000", "SET GLOBAL rpl_semi_sync_source_wait_no_replica = ON",
			"SET GLOBAL rpl_semi_sync_source_enabled = ON")
		return func() { r.exec("SET GLOBAL rpl_semi_sync_source_enabled = OFF") }
	case upstream.MariaDB, upstream.MariaDB11:
		r.exec("SET GLOBAL rpl_semi_sync_master_timeout = 60000", "SET GLOBAL rpl_semi_sync_master_wait_no_slave = ON",
			"SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC'", "SET GLOBAL rpl_semi_sync_master_enabled = ON")
		return func() { r.exec("SET GLOBAL rpl_semi_sync_master_enabled = OFF") }
	}
	r.exec("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
	eventually(r.t, "commits wait", func() bool {
		var names string
		if err := r.db.QueryRow("SHOW synchronous_standby_names").Scan(&names); err != nil {
			r.t.Fatal(err)
		}
		return names == "nobody"
	})
	return func() { r.exec("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()") }
}

// TestVisibleWaitsForReaders delays a commit after it is in the log. The feed
// has it long before anybody can read it; visible must not pass it.
func TestVisibleWaitsForReaders(t *testing.T) {
	everyKind(t, func(t *testing.T, s *upstream.Server) {
		newRig(t, s).visibleWaits(func(cache.Dep) {})
	})
}

// visibleWaits runs meanwhile while a commit is delayed, which changes what
// depends on its argument.
func (r *rig) visibleWaits(meanwhile func(cache.Dep)) {
	r.t.Helper()
	r.fresh("gap", "id INT PRIMARY KEY, a INT, b INT")
	r.exec("INSERT INTO gap VALUES (1, 1, 1)")
	sh := r.follow("gap", intKinds).shape("id", "")
	var after cache.Position
	key := sh.key("1")
	release := r.delay()
	done := make(chan error, 1)
	// PostgreSQL takes its new settings when it comes to it.
	eventually(r.t, "a commit is delayed", func() bool {
		after = r.now()
		go func() {
			_, err := r.db.ExecContext(context.Background(), "UPDATE gap SET a = 2 WHERE id = 1")
			done <- err
		}()
		eventually(r.t, "the change is marked", func() bool { return r.store.at(key) > after })
		select {
		case err := <-done:
			if err != nil {
				r.t.Fatal(err)
			}
			r.exec("UPDATE gap SET a = 1 WHERE id = 1")
			return false
		case <-time.After(200 * time.Millisecond):
			return true
		}
	})
	for range 20 {
		r.settle()
		var a int
		if err := r.db.QueryRow("SELECT a FROM gap").Scan(&a); err != nil {
			r.t.Fatal(err)
		}
		if a != 1 {
			r.t.Fatal("the commit was not delayed")
		}
		if at := r.store.at(key); r.store.Visible() >= at {
			r.t.Fatalf("visible %d has passed the delayed commit at %d", r.store.Visible(), at)
		}
	}
	meanwhile(key)
	select {
	case err := <-done:
		r.t.Fatalf("the commit was not delayed: %v", err)
	default:
	}
	release()
	if err := <-done; err != nil {
		r.t.Fatal(err)
	}
	eventually(r.t, "visible passes the commit", func() bool { return r.store.Visible() >= r.store.at(key) })
}

// TestIdleVisible makes sure that visible comes up to applied on a server that
// does nothing.
func TestIdleVisible(t *testing.T) {
	everyKind(t, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.fresh("idle", "id INT PRIMARY KEY")
		r.exec("INSERT INTO idle VALUES (1)")
		eventually(t, "visible is applied", func() bool {
			return r.store.Applied() != 0 && r.store.Visible() == r.store.Applied()
		})
	})
}
