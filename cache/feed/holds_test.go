package feed

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/client"

	"freshet/bench/upstream"
	"freshet/cache"
)

// wantsNoLease waits until there is none, for a reason that has these words.
func (r *rig) wantsNoLease(words string) {
	r.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		st := r.feed.Status()
		if !r.leased() && strings.Contains(st.NoLease, words) {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("lease %v, reason %q, want %q", r.leased(), st.NoLease, words)
		}
		time.Sleep(time.Millisecond)
	}
}

// semi runs a statement in the server's words for source and replica.
func (r *rig) semi(statement string) {
	r.t.Helper()
	w := oldSemiWords
	if r.server.Kind == upstream.MySQL {
		w = newSemiWords
	}
	r.exec(strings.NewReplacer("$S", "rpl_semi_sync_"+w.source, "$R", w.replica).Replace(statement))
}

// TestSettingsEndLease changes the server's settings under a lease, and back.
func TestSettingsEndLease(t *testing.T) {
	t.Parallel()
	ownKinds(t, mysqlKinds, func(t *testing.T, s *upstream.Server) {
		r := synchronous(t, s, 10*time.Second, s.DSN())
		for _, c := range []struct{ off, words, on string }{
			{"SET GLOBAL $S_wait_point = 'AFTER_COMMIT'", "wait_point", "SET GLOBAL $S_wait_point = 'AFTER_SYNC'"},
			{"SET GLOBAL $S_wait_no_$R = OFF", "wait_no_", "SET GLOBAL $S_wait_no_$R = ON"},
			{"SET GLOBAL $S_timeout = 100", "timeout", "SET GLOBAL $S_timeout = 10000"},
			{"SET GLOBAL $S_enabled = OFF", "enabled", "SET GLOBAL $S_enabled = ON"},
		} {
			r.wantsLease()
			r.semi(c.off)
			r.wantsNoLease(c.words)
			r.semi(c.on)
		}
		r.wantsLease()
	})
	ownKinds(t, postgresKinds, func(t *testing.T, s *upstream.Server) {
		r := synchronous(t, s, 0, s.DSN())
		r.exec("CREATE ROLE lazy")
		for _, c := range []struct{ off, words, on string }{
			{"ALTER SYSTEM SET synchronous_commit = 'local'", "synchronous_commit is local", "ALTER SYSTEM RESET synchronous_commit"},
			{"ALTER SYSTEM SET synchronous_standby_names = 'other, freshet'", "prefers others", "ALTER SYSTEM SET synchronous_standby_names = 'freshet, other'"},
			{"ALTER SYSTEM SET synchronous_standby_names = ''", "empty", "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (freshet)'"},
			{"ALTER ROLE lazy SET synchronous_commit = 'off'", "role lazy", "ALTER ROLE lazy RESET synchronous_commit"},
			{"ALTER DATABASE freshet_test SET synchronous_commit = '0'", "database freshet_test", "ALTER DATABASE freshet_test RESET synchronous_commit"},
		} {
			r.wantsLease()
			// With these settings the statement itself would wait for nobody who is there.
			r.session("SET synchronous_commit = local", c.off, "SELECT pg_reload_conf()")
			r.wantsNoLease(c.words)
			r.session("SET synchronous_commit = local", c.on, "SELECT pg_reload_conf()")
		}
		r.wantsLease()
	})
}

// TestGivesUpAndComesBack lets the server give up on a feed that is cut off.
func TestGivesUpAndComesBack(t *testing.T) {
	t.Parallel()
	ownKinds(t, mysqlKinds, func(t *testing.T, s *upstream.Server) {
		w := newWire(t, s.Address())
		r := synchronous(t, s, 600*time.Millisecond, w.through(s))
		r.fresh("impatient", "id INT PRIMARY KEY, a INT, b INT")
		r.wantsLease()
		w.set(true)
		r.exec("INSERT INTO impatient VALUES (1, 0, 0)", "INSERT INTO impatient VALUES (2, 0, 0)")
		if r.leased() {
			t.Error("the server has given up, and there is a lease")
		}
		w.set(false)
		r.wantsLease()
	})
}

// TestSecondReplica has somebody else acknowledge commits.
func TestSecondReplica(t *testing.T) {
	t.Parallel()
	ownKinds(t, mysqlKinds, func(t *testing.T, s *upstream.Server) {
		a := synchronous(t, s, 10*time.Second, s.DSN())
		a.wantsLease()
		b := &rig{t: t, server: s, db: a.db, store: newStore()}
		b.openSynchronous(s.DSN())
		b.wantsNoLease("in Freshet's place")
		a.wantsLease()
		if s.Kind == upstream.MySQL {
			a.semi("SET GLOBAL $S_wait_for_$R_count = 2")
			b.wantsLease()
			a.wantsLease()
			a.feed.Close()
			a.semi("SET GLOBAL $S_wait_for_$R_count = 1")
		} else {
			a.feed.Close()
		}
		b.wantsLease()
		leave := b.intrude()
		b.wantsNoLease("in Freshet's place")
		leave()
		b.wantsLease()
	})
	ownKinds(t, postgresKinds, func(t *testing.T, s *upstream.Server) {
		a := synchronous(t, s, 0, s.DSN())
		a.wantsLease()
		b := &rig{t: t, server: s, db: a.db, store: newStore()}
		b.openSynchronous(s.DSN())
		b.wantsNoLease("another standby is called freshet")
		a.wantsLease()
		c := &rig{t: t, server: s, db: a.db, store: newStore()}
		c.openSynchronous(s.DSN() + "&application_name=freshet_c")
		c.wantsNoLease("does not name freshet_c")
		a.exec("ALTER SYSTEM SET synchronous_standby_names = 'FIRST 2 (freshet, freshet_c)'", "SELECT pg_reload_conf()")
		c.wantsLease()
		a.wantsLease()
		a.feed.Close()
		b.wantsLease()
		c.wantsLease()
	})
}

// intrude connects a semi-synchronous replica that asks nobody.
func (r *rig) intrude() (leave func()) {
	r.t.Helper()
	source, ok := r.feed.source.(*mysqlSource)
	if !ok {
		r.t.Fatal("not a MySQL server")
	}
	ctx, cancel := context.WithCancel(context.Background())
	conn, _, err := source.dsn.dial(ctx, "", time.Minute)
	if err == nil {
		_, err = prepareDump(conn, source.fact(), "00000000-0000-0000-0000-000000000001")
	}
	if err == nil {
		err = askSemiSync(conn)
	}
	if err == nil {
		err = dumpEverything(conn, source)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	var p packet
	if _, _, err := readEvent(conn, &p); err != nil {
		r.t.Fatal(err)
	}
	return func() {
		cancel()
		closeQuietly(conn)
		r.exec("CREATE TABLE IF NOT EXISTS intruder (id INT)") // so that the server notices
	}
}

func dumpEverything(conn *client.Conn, source *mysqlSource) error {
	if source.fact().maria {
		place, err := mariaSnapshot(conn)
		if err != nil {
			return err
		}
		return dumpFrom(conn, 4242, place.file, place.offset)
	}
	set, err := readExecuted(conn)
	if err != nil {
		return err
	}
	return dumpAfter(conn, 4242, set)
}

// TestWhatCancelsWaits pins down what a lease does not cover, as the docs say.
func TestWhatCancelsWaits(t *testing.T) {
	synchronousKinds(t, func(t *testing.T, s *upstream.Server) {
		r := synchronous(t, s, 10*time.Second, s.DSN())
		r.fresh("cancelled", "id INT PRIMARY KEY, a INT, b INT")
		r.exec("INSERT INTO cancelled VALUES (1, 0, 0)")
		sh := r.follow("cancelled", intKinds).shape("id", "")
		key := sh.key("1")
		r.wantsLease()
		gate := make(chan struct{})
		inside := make(chan struct{}, 10)
		r.store.mu.Lock()
		r.store.onMarked = func(d cache.Dep, _ cache.Position) {
			if d == key {
				inside <- struct{}{}
				<-gate
			}
		}
		r.store.mu.Unlock()
		conn, err := r.db.Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer closeQuietly(conn)
		session, kill := "SELECT CONNECTION_ID()", "KILL QUERY %d"
		if r.postgres() {
			session, kill = "SELECT pg_backend_pid()", "SELECT pg_cancel_backend(%d)"
		}
		var id int64
		if err := conn.QueryRowContext(context.Background(), session).Scan(&id); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := conn.ExecContext(context.Background(), "UPDATE cancelled SET a = 1 WHERE id = 1")
			done <- err
		}()
		<-inside
		r.exec(fmt.Sprintf(kill, id))
		seen := false
		for end := time.Now().Add(time.Second); time.Now().Before(end) && !seen; {
			var a int
			if err := r.db.QueryRow("SELECT a FROM cancelled").Scan(&a); err != nil {
				t.Fatal(err)
			}
			seen = a == 1
		}
		if want := s.Kind != upstream.MySQL; seen != want {
			t.Errorf("a cancelled wait makes the commit readable: %v, and the docs say %v", seen, want)
		}
		if r.postgres() {
			r.session("SET synchronous_commit = off", "UPDATE cancelled SET a = 2 WHERE id = 1")
			var a int
			if err := r.db.QueryRow("SELECT a FROM cancelled").Scan(&a); err != nil || a != 2 {
				t.Errorf("a commit with synchronous_commit off waits (%d, %v), and the docs say that it does not", a, err)
			}
		}
		close(gate)
		if err := <-done; err != nil {
			t.Logf("the killed statement: %v", err)
		}
	})
}

// TestStoppedFreshet stops a process that has a lease, with SIGSTOP, for longer
// than the server waits. When it goes on, it must not serve what it had.
func TestStoppedFreshet(t *testing.T) {
	alone(t, mysqlKinds, func(t *testing.T, s *upstream.Server) {
		const timeout = 1500 * time.Millisecond
		r := &rig{t: t, server: s, db: s.DB(t), store: newStore()}
		r.exec(holdStatements(s, timeout)...)
		r.fresh("stopped", "id INT PRIMARY KEY, a INT, b INT")
		r.exec("INSERT INTO stopped VALUES (1, 0, 0)")
		child := exec.Command(os.Args[0], "-test.run=^TestStoppedChild$", "-test.count=1")
		child.Env = append(os.Environ(), "FRESHET_STOPPED_DSN="+s.DSN())
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		end := func() {
			if err := child.Process.Kill(); err != nil {
				t.Log(err) // it ended before
			}
		}
		deadline := time.AfterFunc(time.Minute, end)
		defer func() {
			deadline.Stop()
			end()
			if err := child.Wait(); err == nil {
				t.Error("the child ended by itself")
			}
		}()
		lines := bufio.NewScanner(out)
		// Each line is a hit: when, as the child's clock has it, and the number
		// of marks at that time.
		hit := func() (at int64, marks int) {
			for lines.Scan() {
				if n, err := fmt.Sscanf(lines.Text(), "hit %d %d", &at, &marks); err == nil && n == 2 {
					return at, marks
				}
			}
			t.Fatal("the child said no more")
			return 0, 0
		}
		last, _ := hit()
		if err := child.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		r.exec("UPDATE stopped SET a = 1 WHERE id = 1")
		if err := child.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		for {
			at, marks := hit()
			if gap := at - last; gap < int64(timeout/2) {
				last = at // from before it was stopped
				continue
			}
			if marks == 0 {
				t.Fatal("a stopped Freshet served an old answer when it went on")
			}
			return
		}
	})
}

// TestStoppedChild is the process that TestStoppedFreshet stops.
func TestStoppedChild(t *testing.T) {
	dsn := os.Getenv("FRESHET_STOPPED_DSN")
	if dsn == "" {
		return // it is run by TestStoppedFreshet
	}
	store := newStore()
	tracker := NewTracker(store)
	f, err := Open(context.Background(), Config{DSN: dsn, Store: store, Tracker: tracker, Synchronous: true})
	if err != nil {
		t.Fatal(err)
	}
	spec := TableSpec{Schema: "freshet_test", Name: "stopped", Columns: []Column{{Name: "id"}, {Name: "a"}, {Name: "b"}}}
	var tb *Table
	eventually(t, "the table is taken up", func() bool {
		if tb == nil || tb.Gone() {
			if tb, err = tracker.Follow(spec); err != nil {
				t.Fatal(err)
			}
		}
		_, up := tb.Since()
		return up
	})
	began := store.at(cache.DepOfTable(tb.ID))
	for {
		at := Now()
		if at < f.LeaseUntil() {
			marks := 0
			if store.at(cache.DepOfTable(tb.ID)) > began {
				marks = 1
			}
			fmt.Printf("hit %d %d\n", at, marks)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestCheckSynchronous says what is missing, and what it says mends it.
func TestCheckSynchronous(t *testing.T) {
	t.Parallel()
	ownKinds(t, allKinds, func(t *testing.T, s *upstream.Server) {
		db := s.DB(t)
		ctx := context.Background()
		missing := 0
		for _, f := range CheckSynchronous(ctx, s.DSN()) {
			if !f.OK {
				missing++
				if f.Mend == "" {
					t.Errorf("%s: how is that mended?", f.What)
				}
			}
		}
		if missing == 0 {
			t.Error("a server that is not set up lacks nothing")
		}
		// Some of it is told only once the plugin is there; loading settings takes
		// a moment.
		for range 6 {
			for _, found := range CheckSynchronous(ctx, s.DSN()) {
				if found.OK {
					continue
				}
				mend := strings.TrimPrefix(found.Mend, "start Freshet, then ")
				mend, _, _ = strings.Cut(mend, " (before")
				mend, _, _ = strings.Cut(mend, ", and ")
				for _, statement := range strings.Split(mend, "; ") {
					if statement == "then check again" {
						continue
					}
					if _, err := db.Exec(statement); err != nil {
						t.Fatalf("%s: %s: %v", found.What, statement, err)
					}
				}
			}
		}
		for _, found := range CheckSynchronous(ctx, s.DSN()) {
			if !found.OK {
				t.Errorf("still missing: %s (%s)", found.What, found.Mend)
			}
		}
		store := newStore()
		f, err := Open(ctx, Config{DSN: s.DSN(), Store: store, Tracker: NewTracker(store), Synchronous: true})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		eventually(t, "there is a lease", func() bool { return Now() < f.LeaseUntil() })
	})
}
