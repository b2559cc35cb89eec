package feed

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
)

// ownKinds runs a test body on a server of its own for each kind, side by side: such
// tests mostly wait. What a test says of how soon something happens says little
// then; one that does goes by alone.
func ownKinds(t *testing.T, list []upstream.Kind, body func(t *testing.T, s *upstream.Server)) {
	t.Helper()
	needsServers(t)
	for _, kind := range list {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			body(t, upstream.Own(t, kind))
		})
	}
}

// alone is ownKinds for one kind after the other.
func alone(t *testing.T, list []upstream.Kind, body func(t *testing.T, s *upstream.Server)) {
	t.Helper()
	needsServers(t)
	for _, kind := range list {
		t.Run(string(kind), func(t *testing.T) { body(t, upstream.Own(t, kind)) })
	}
}

func (r *rig) restart(kill bool) {
	r.t.Helper()
	end := r.server.Shutdown
	if kill {
		end = r.server.Kill
	}
	r.db.SetMaxIdleConns(0)
	defer r.db.SetMaxIdleConns(2)
	if err := end(); err != nil {
		r.t.Fatal(err)
	}
	if err := r.server.Restart(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

// TestRestart stops or kills the server. A binary log is followed on from
// where the line broke; a PostgreSQL slot is gone.
func TestRestart(t *testing.T) {
	t.Parallel()
	ownKinds(t, allKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.fresh("restarted", "id INT PRIMARY KEY, a INT, b INT")
		r.exec("INSERT INTO restarted VALUES (1, 1, 1), (2, 2, 2)")
		for _, kill := range []bool{false, true} {
			w := r.follow("restarted", intKinds)
			sh := w.shape("id", "")
			after, flushes := r.now(), r.store.flushed()
			r.exec("UPDATE restarted SET a = a + 1 WHERE id = 1")
			r.restart(kill)
			r.exec("UPDATE restarted SET a = a + 1 WHERE id = 2")
			eventually(t, "the feed is back", func() bool { return r.feed.Status().Up })
			r.settle()
			r.wantsOutageLogged(!r.postgres())
			if r.postgres() {
				if !w.Gone() || r.store.flushed() == flushes {
					t.Error("the slot is lost, and nothing happened")
				}
			} else {
				if w.Gone() || r.store.flushed() != flushes {
					t.Error("the place in the log was not kept")
				}
				sh.wantsKey(after, true, "1")
				sh.wantsKey(after, true, "2")
			}
			w = r.follow("restarted", intKinds)
			after = r.now()
			r.exec("UPDATE restarted SET a = a + 1 WHERE id = 2")
			r.settle()
			w.shape("id", "")
			w.wantsTable(after, true)
		}
	})
}

// wantsOutageLogged fails the test unless the log tells, in few lines, that the
// stream ended and, in one and the last of them, that it is followed again.
func (r *rig) wantsOutageLogged(resumed bool) {
	r.t.Helper()
	got := r.log.take()
	back, ended := 0, 0
	for _, line := range got {
		if strings.HasPrefix(line, "INFO feed following again position=") && strings.HasSuffix(line, fmt.Sprint(" resumed=", resumed)) {
			back++
		}
		if strings.HasPrefix(line, "WARN feed: the change stream ended") {
			ended++
		}
	}
	if back != 1 || ended == 0 || len(got) > 10 {
		r.t.Errorf("the log tells %d times that the stream ended, %d times that it is followed again:\n%s", ended, back, strings.Join(got, "\n"))
	}
}

// TestLogReset begins the log anew under a feed that follows it.
func TestLogReset(t *testing.T) {
	t.Parallel()
	ownKinds(t, mysqlKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.fresh("reset", "id INT PRIMARY KEY, a INT, b INT")
		w := r.follow("reset", intKinds)
		before := r.now()
		flushes := r.store.flushed()
		statement := "RESET MASTER"
		if s.Kind == upstream.MySQL {
			statement = "RESET BINARY LOGS AND GTIDS"
		}
		r.exec(statement)
		r.exec("INSERT INTO reset VALUES (1, 1, 1)")
		eventually(t, "the feed notices", func() bool { return r.store.flushed() > flushes && w.Gone() })
		w = r.follow("reset", intKinds)
		sh := w.shape("id", "")
		after := r.now()
		if after <= before {
			t.Errorf("positions fell from %d to %d", before, after)
		}
		r.exec("UPDATE reset SET a = 2")
		r.settle()
		sh.wantsKey(after, true, "1")
	})
}

// TestPurged takes the log away while the feed cannot see it.
func TestPurged(t *testing.T) {
	t.Parallel()
	ownKinds(t, mysqlKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.fresh("purged", "id INT PRIMARY KEY, a INT, b INT")
		w := r.follow("purged", intKinds)
		r.settle()
		flushes := r.store.flushed()
		r.feed.stop()
		r.feed.running.Wait()
		r.exec("INSERT INTO purged VALUES (1, 1, 1)", "FLUSH BINARY LOGS", "INSERT INTO purged VALUES (2, 2, 2)", "FLUSH BINARY LOGS")
		eventually(t, "the log is purged", func() bool {
			// A file that the old line's thread still reads stays.
			logs := r.logs()
			r.exec("PURGE BINARY LOGS TO '" + logs[len(logs)-1] + "'")
			return len(r.logs()) == 1
		})
		ctx, stop := context.WithCancel(context.Background())
		r.feed.stop = stop
		r.feed.running.Add(3)
		go r.feed.followLoop(ctx)
		go r.feed.probeLoop(ctx)
		go r.feed.keepLoop(ctx)
		eventually(t, "the feed notices", func() bool { return r.store.flushed() > flushes && w.Gone() })
		r.follow("purged", intKinds)
	})
}

// logs lists the server's binary log files.
func (r *rig) logs() (files []string) {
	r.t.Helper()
	rows, err := r.db.Query("SHOW BINARY LOGS")
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		r.t.Fatal(err)
	}
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		name := ""
		values[0] = &name
		if err := rows.Scan(values...); err != nil {
			r.t.Fatal(err)
		}
		files = append(files, name)
	}
	if err := rows.Err(); err != nil {
		r.t.Fatal(err)
	}
	return files
}

// TestSlotLost ends the walsender.
func TestSlotLost(t *testing.T) {
	kinds(t, postgresKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.fresh("slotless", "id INT PRIMARY KEY, a INT, b INT")
		w := r.follow("slotless", intKinds)
		flushes := r.store.flushed()
		r.exec("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name LIKE 'freshet%'")
		eventually(t, "the feed notices", func() bool { return w.Gone() && r.store.flushed() > flushes })
		sh := r.follow("slotless", intKinds).shape("id", "")
		after := r.now()
		r.exec("INSERT INTO slotless VALUES (1, 1, 1)")
		r.settle()
		sh.wantsKey(after, true, "1")
	})
}

// TestSilentServer stops the server's processes without ending them.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	ownKinds(t, []upstream.Kind{upstream.MariaDB, upstream.MySQL}, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.fresh("silent", "id INT PRIMARY KEY, a INT, b INT")
		r.follow("silent", intKinds)
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
		asked := Now()
		time.Sleep(300 * time.Millisecond) // what must not happen has this long to happen
		if at := r.feed.ProvenAt(); at > asked {
			t.Errorf("proven at %d, after the server was stopped at %d", at, asked)
		}
		if err := s.Resume(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "proofs go on", func() bool { return r.feed.ProvenAt() > asked })
	})
}

// TestCloseLeavesNothing counts goroutines, slots and publications.
func TestCloseLeavesNothing(t *testing.T) {
	everyKind(t, func(t *testing.T, s *upstream.Server) {
		db := s.DB(t)
		if err := db.Ping(); err != nil {
			t.Fatal(err)
		}
		before := runtime.NumGoroutine()
		r := newRig(t, s)
		r.fresh("closing", "id INT PRIMARY KEY")
		w := r.follow("closing", intKinds)
		r.feed.Close()
		if !w.Gone() || r.store.Visible() != 0 {
			t.Error("a closed feed still vouches for its tables")
		}
		if _, err := r.tracker.Follow(w.Spec); err == nil {
			t.Error("a closed feed follows a table")
		}
		if err := r.db.Close(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
		if s.Dialect != upstream.DialectPostgres {
			return
		}
		eventually(t, "nothing is left", func() bool {
			var n int
			if err := db.QueryRow("SELECT (SELECT count(*) FROM pg_publication) + (SELECT count(*) FROM pg_replication_slots)").Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n == 0
		})
	})
}

// TestTwoFeeds has two on one server; the first to close leaves the
// publication to the other.
func TestTwoFeeds(t *testing.T) {
	everyKind(t, func(t *testing.T, s *upstream.Server) {
		a, b := newRig(t, s), newRig(t, s)
		a.fresh("shared", "id INT PRIMARY KEY, a INT, b INT")
		a.follow("shared", intKinds)
		shared := b.follow("shared", intKinds)
		sh := shared.shape("id", "")
		a.feed.Close()
		after := b.now()
		b.exec("INSERT INTO shared VALUES (1, 1, 1)")
		b.settle()
		sh.wantsKey(after, true, "1")
		if shared.Gone() {
			t.Error("the other feed took the table with it")
		}
	})
}

// TestOpenRefuses says what is missing and how to mend it.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	needsServers(t)
	try := func(kind upstream.Kind, words string, settings ...string) {
		t.Run(string(kind)+" "+strings.Join(settings, " "), func(t *testing.T) {
			t.Parallel()
			s := upstream.Own(t, kind, upstream.WithSettings(settings...))
			f, err := Open(context.Background(), Config{DSN: s.DSN(), Store: newStore(), Tracker: NewTracker(newStore())})
			if err == nil {
				f.Close()
				t.Fatal("it opened")
			}
			if !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), "mend:") {
				t.Errorf("the error does not say %q and how to mend it: %v", words, err)
			}
			found := false
			for _, finding := range Check(context.Background(), s.DSN()) {
				found = found || !finding.OK && strings.Contains(finding.What, words) && finding.Mend != ""
			}
			if !found {
				t.Errorf("the check does not say %q: %+v", words, Check(context.Background(), s.DSN()))
			}
		})
	}
	try(upstream.MySQL, "gtid_mode", "gtid_mode=OFF", "enforce_gtid_consistency=OFF")
	try(upstream.MySQL, "log_bin", "skip-log-bin")
	try(upstream.MariaDB, "log_bin", "skip-log-bin")
	try(upstream.MariaDB, "binlog_format", "binlog_format=MIXED")
	try(upstream.Postgres15, "wal_level", "wal_level=replica")
}

// TestOpenNeedsPrivileges logs in as a user who may do little.
func TestOpenNeedsPrivileges(t *testing.T) {
	everyKind(t, func(t *testing.T, s *upstream.Server) {
		db := s.DB(t)
		statements := []string{"CREATE USER 'modest'@'%' IDENTIFIED BY 'modest'"}
		drop, words := "DROP USER 'modest'@'%'", "GRANT"
		if s.Dialect == upstream.DialectPostgres {
			statements = []string{"CREATE ROLE modest LOGIN PASSWORD 'modest'"}
			drop, words = "DROP ROLE modest", "REPLICATION"
		}
		for _, statement := range statements {
			if _, err := db.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() {
			if _, err := db.Exec(drop); err != nil {
				t.Error(err)
			}
		})
		dsn := strings.Replace(s.DSN(), "freshet:freshet@", "modest:modest@", 1)
		dsn = strings.Replace(dsn, "/freshet_test", "/", 1)
		if s.Dialect == upstream.DialectPostgres {
			dsn = strings.Replace(dsn, "/?", "/freshet_test?", 1)
		}
		f, err := Open(context.Background(), Config{DSN: dsn, Store: newStore(), Tracker: NewTracker(newStore())})
		if err == nil {
			f.Close()
			t.Fatal("it opened")
		}
		if !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), "mend:") {
			t.Errorf("the error does not name the grant: %v", err)
		}
	})
}

// TestCheckIsContent finds nothing wrong with a server that has it all.
func TestCheckIsContent(t *testing.T) {
	everyKind(t, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		if r.postgres() {
			r.exec("DROP TABLE IF EXISTS keyless")
		}
		for _, f := range Check(context.Background(), s.DSN()) {
			if !f.OK && !strings.Contains(f.What, "table ") {
				t.Errorf("%s (mend: %s)", f.What, f.Mend)
			}
		}
	})
}
