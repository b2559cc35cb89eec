package feed

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"freshet/bench/upstream"
	"freshet/cache"
)

// holdStatements set a server up to hold commits back for the feed.
func holdStatements(s *upstream.Server, timeout time.Duration) []string {
	ms := strconv.FormatInt(timeout.Milliseconds(), 10)
	switch s.Kind {
	case upstream.MySQL:
		return []string{"INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'",
			"SET GLOBAL rpl_semi_sync_source_timeout = " + ms, "SET GLOBAL rpl_semi_sync_source_enabled = ON"}
	case upstream.MariaDB, upstream.MariaDB11:
		return []string{"SET GLOBAL rpl_semi_sync_master_timeout = " + ms, "SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC'",
			"SET GLOBAL rpl_semi_sync_master_enabled = ON"}
	}
	return []string{"ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (freshet)'", "SELECT pg_reload_conf()"}
}

// synchronous makes a rig whose feed holds commits, on a server of its own. The
// server is set up first; dsn may lead through something else.
func synchronous(t *testing.T, s *upstream.Server, timeout time.Duration, dsn string) *rig {
	t.Helper()
	r := &rig{t: t, server: s, db: s.DB(t), store: newStore()}
	r.exec(holdStatements(s, timeout)...)
	r.openSynchronous(dsn)
	return r
}

func (r *rig) openSynchronous(dsn string) {
	r.t.Helper()
	r.tracker = NewTracker(r.store)
	r.log = &lines{show: func(l slog.Level, line string) {
		if l >= slog.LevelWarn {
			r.t.Log(line)
		}
	}}
	f, err := Open(context.Background(), Config{DSN: dsn, Store: r.store, Tracker: r.tracker, Log: slog.New(r.log), Synchronous: true})
	if err != nil {
		r.t.Fatal(err)
	}
	r.feed = f
	r.t.Cleanup(func() { f.Close() })
	eventually(r.t, "the feed runs", func() bool { return f.Status().Up && f.ProvenTicket() > 0 })
}

func (r *rig) leased() bool { return Now() < r.feed.LeaseUntil() }

func (r *rig) wantsLease() {
	r.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !r.leased() {
		if time.Now().After(deadline) {
			r.t.Fatalf("there is no lease: %s", r.feed.Status().NoLease)
		}
		time.Sleep(time.Millisecond)
	}
}

// synchronousKinds starts a server for each kind, one after the other: what has to
// do with a lease has to do with time.
func synchronousKinds(t *testing.T, body func(t *testing.T, s *upstream.Server)) {
	t.Helper()
	alone(t, allKinds, body)
}

// TestCommitWaitsForMarks slows marking down: commits return, and are seen by
// others, only after their marks, and there is a lease all the while.
func TestCommitWaitsForMarks(t *testing.T) {
	synchronousKinds(t, func(t *testing.T, s *upstream.Server) {
		r := synchronous(t, s, 10*time.Second, s.DSN())
		r.fresh("held", "id INT PRIMARY KEY, a INT, b INT")
		r.exec("INSERT INTO held VALUES (1, 0, 0)")
		sh := r.follow("held", intKinds).shape("id", "")
		key := sh.key("1")
		r.wantsLease()
		const slow = 150 * time.Millisecond
		var marked atomic.Int64
		r.store.mu.Lock()
		r.store.onMarked = func(d cache.Dep, _ cache.Position) {
			if d == key {
				time.Sleep(slow) // what the test is about: marking takes long
				marked.Add(1)
			}
		}
		r.store.mu.Unlock()
		for i := range 5 {
			done := make(chan error, 1)
			began := time.Now()
			go func() {
				_, err := r.db.Exec(fmt.Sprintf("UPDATE held SET a = %d WHERE id = 1", i+1))
				done <- err
			}()
			var err error
			for waiting := true; waiting; {
				var a int
				if err := r.db.QueryRow("SELECT a FROM held WHERE id = 1").Scan(&a); err != nil {
					t.Fatal(err)
				}
				if n := marked.Load(); int64(a) > n {
					t.Fatalf("value %d was read when %d had been marked", a, n)
				}
				select {
				case err = <-done:
					waiting = false
				default:
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if marked.Load() != int64(i+1) || time.Since(began) < slow {
				t.Fatalf("commit %d returned after %s, with %d marked", i+1, time.Since(began), marked.Load())
			}
		}
		if !r.leased() {
			t.Errorf("the lease was lost: %s", r.feed.Status().NoLease)
		}
		r.store.check(t)
	})
}

// wire forwards connections, and can stop to, without closing anything.
type wire struct {
	t      *testing.T
	listen net.Listener
	to     string
	mu     sync.Mutex
	cond   *sync.Cond
	cut    bool
	ends   []net.Conn
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, listen: l, to: to}
	w.cond = sync.NewCond(&w.mu)
	go w.accept()
	t.Cleanup(func() {
		closeQuietly(l)
		w.set(false)
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, c := range w.ends {
			closeQuietly(c)
		}
	})
	return w
}

func (w *wire) accept() {
	for {
		from, err := w.listen.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", w.to)
		if err != nil {
			closeQuietly(from)
			continue
		}
		w.mu.Lock()
		w.ends = append(w.ends, from, to)
		w.mu.Unlock()
		go w.copy(from, to)
		go w.copy(to, from)
	}
}

func (w *wire) copy(to, from net.Conn) {
	defer closeQuietly(to)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		w.mu.Lock()
		for w.cut {
			w.cond.Wait()
		}
		w.mu.Unlock()
		if err != nil {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	w.cond.Broadcast()
}

// through is the server's DSN by way of the wire.
func (w *wire) through(s *upstream.Server) string {
	return strings.Replace(s.DSN(), s.Address(), w.listen.Addr().String(), 1)
}

// TestCutLineEndsLease cuts every line of the feed without closing any. Commits
// then wait; whatever the upstream does when it is tired of it, the lease is
// over first. Then the line comes back, and so does the lease.
func TestCutLineEndsLease(t *testing.T) {
	synchronousKinds(t, func(t *testing.T, s *upstream.Server) {
		const timeout = 2 * time.Second
		w := newWire(t, s.Address())
		r := synchronous(t, s, timeout, w.through(s))
		r.fresh("cut", "id INT PRIMARY KEY, a INT, b INT")
		r.exec("INSERT INTO cut VALUES (1, 0, 0)")
		sh := r.follow("cut", intKinds).shape("id", "")
		r.wantsLease()
		after := r.now()
		w.set(true)
		done := make(chan error, 1)
		go func() {
			_, err := r.db.Exec("UPDATE cut SET a = 1 WHERE id = 1")
			done <- err
		}()
		var unseen, lastLeased int64
		for began := time.Now(); time.Since(began) < timeout+2*time.Second; {
			at := Now()
			if at < r.feed.LeaseUntil() {
				lastLeased = at
			}
			var a int
			if err := r.db.QueryRow("SELECT a FROM cut WHERE id = 1").Scan(&a); err != nil {
				t.Fatal(err)
			}
			if a != 0 {
				break
			}
			unseen = at
		}
		if lastLeased == 0 || lastLeased >= unseen || r.leased() {
			t.Errorf("the lease was there at %d, and the commit not yet at %d", lastLeased, unseen)
		}
		if r.feed.Status().NoLease == "" {
			t.Error("nobody says why there is no lease")
		}
		w.set(false)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		r.wantsLease()
		r.settle()
		if !r.postgres() || r.feed.Status().LastError == "" {
			sh.wantsKey(after, true, "1")
		}
	})
}

// latencies commits n times and returns how long the slowest hundredth took.
func latencies(t *testing.T, db *sql.DB, n int) (median, p99 time.Duration) {
	t.Helper()
	took := make([]time.Duration, n)
	for i := range took {
		began := time.Now()
		if _, err := db.Exec("UPDATE latency SET a = a + 1 WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		took[i] = time.Since(began)
	}
	return quantile(took, 0.5), quantile(took, 0.99)
}

func quantile(took []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// TestHeldCommitLatency prints what waiting for the feed costs a commit, and
// fails if it costs what only waiting for a timer can.
func TestHeldCommitLatency(t *testing.T) {
	synchronousKinds(t, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.fresh("latency", "id INT PRIMARY KEY, a INT")
		r.exec("INSERT INTO latency VALUES (1, 0)")
		const commits = 500
		median, p99 := latencies(t, r.db, commits)
		r.feed.Close()
		held := synchronous(t, s, 10*time.Second, s.DSN())
		held.wantsLease()
		heldMedian, held99 := latencies(t, r.db, commits)
		t.Logf("commit: median %s, p99 %s; held for the feed: median %s, p99 %s", median, p99, heldMedian, held99)
		if heldMedian > median+20*time.Millisecond {
			t.Errorf("a commit waits %s for the feed", heldMedian-median)
		}
	})
}

// standing starts a commit that waits, and reports its end. A server takes its
// new settings when it comes to it, and MySQL and MariaDB give up after a while
// for good, so there it need not wait.
func (r *rig) standing(statement string, done chan<- error) {
	r.t.Helper()
	if r.postgres() {
		statement = strings.Replace(statement, "REPLACE", "INSERT", 1) + " ON CONFLICT (id) DO UPDATE SET a = 1"
	}
	eventually(r.t, "a commit waits", func() bool {
		ended := make(chan error, 1)
		go func() {
			_, err := r.db.Exec(statement)
			ended <- err
		}()
		select {
		case err := <-ended:
			if err != nil {
				r.t.Fatal(err)
			}
			if r.postgres() {
				return false
			}
			done <- nil
		case <-time.After(200 * time.Millisecond):
			go func() { done <- <-ended }()
		}
		return true
	})
}

// TestComesToWaitingCommits opens the feed while commits wait for it already,
// and once more after it was away.
func TestComesToWaitingCommits(t *testing.T) {
	t.Parallel()
	ownKinds(t, allKinds, func(t *testing.T, s *upstream.Server) {
		r := &rig{t: t, server: s, db: s.DB(t), store: newStore()}
		r.fresh("standing", "id INT PRIMARY KEY, a INT, b INT")
		r.exec(holdStatements(s, 3*time.Second)...)
		done := make(chan error, 3)
		for i := range 3 {
			r.standing(fmt.Sprintf("REPLACE INTO standing VALUES (%d, 0, 0)", i), done)
		}
		for range 2 {
			r.openSynchronous(s.DSN())
			r.wantsLease()
			for range 3 {
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
			r.feed.Close()
			if r.leased() {
				t.Error("a closed feed has a lease")
			}
			r.store = newStore()
			for i := range 3 {
				go func() {
					_, err := r.db.Exec(fmt.Sprintf("UPDATE standing SET a = a + 1 WHERE id = %d", i))
					done <- err
				}()
			}
		}
		r.openSynchronous(s.DSN())
		for range 3 {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
	})
}
