package feed

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"freshet/bench/seed"
	"freshet/bench/upstream"
	"freshet/cache"
)

// replicaKinds are the servers that can be followed by a replica.
var replicaKinds = []upstream.Kind{upstream.MariaDB11, upstream.MariaDB, upstream.MySQL, upstream.Postgres18}

// copied is a rig whose stream comes from a replica.
type copied struct {
	*rig
	replica *upstream.Server
	onCopy  *sql.DB
}

// TestReplica runs these on each kind, on one primary with one replica, which the
// last of them leaves unfit.
func TestReplica(t *testing.T) {
	t.Parallel()
	needsServers(t)
	for _, kind := range replicaKinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			primary := upstream.Own(t, kind)
			replica := upstream.OwnReplica(t, primary)
			for _, test := range []struct {
				name string
				body func(*copied)
			}{{"stream", replicaStream}, {"lags", replicaLags}, {"waits", replicaWaits}, {"check", replicaCheck}, {"restarts", replicaRestarts}, {"promoted", replicaPromoted}} {
				t.Run(test.name, func(t *testing.T) {
					test.body(newCopied(t, primary, replica))
				})
			}
		})
	}
}

func newCopied(t *testing.T, primary, replica *upstream.Server) *copied {
	t.Helper()
	r := &copied{newRigFrom(t, primary, replica.DSN()), replica, replica.DB(t)}
	r.fresh("copied", "id INT PRIMARY KEY, a INT, b INT")
	r.exec("INSERT INTO copied VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)")
	if r.postgres() {
		r.exec("ALTER TABLE copied REPLICA IDENTITY FULL")
	}
	return r
}

func (r *copied) applying(on bool) {
	r.t.Helper()
	do := r.replica.StopApplying
	if on {
		do = r.replica.StartApplying
	}
	if err := do(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

// unproven fails the test if a probe that begins now is proven within a while.
func (r *copied) unproven(why string) (ticket uint64) {
	r.t.Helper()
	ticket = r.feed.Ticket()
	r.feed.Kick()
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if r.feed.ProvenTicket() >= ticket {
			r.t.Fatalf("proven, though %s", why)
		}
	}
	return ticket
}

// replicaStream changes rows of the primary. Once a probe is proven, their
// keys are marked, others are not, and never is a key still unmarked.
func replicaStream(r *copied) {
	seed := seed.Of(r.t, "FRESHET_SEED", 1)
	r.t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	sh := r.follow("copied", intKinds).shape("id", "a")
	if st := r.feed.Status(); !st.Replica || st.From != r.replica.Address() {
		r.t.Errorf("the stream comes from %q (replica: %v)", st.From, st.Replica)
	}
	for range 100 {
		id, other := random.IntN(3)+1, 0
		for other == 0 || other == id {
			other = random.IntN(3) + 1
		}
		after := r.now()
		switch random.IntN(4) {
		case 0:
			r.exec(fmt.Sprintf("DELETE FROM copied WHERE id = %d", id), fmt.Sprintf("INSERT INTO copied VALUES (%d, 1, 1)", id))
		case 1:
			r.exec(fmt.Sprintf("UPDATE copied SET b = b + 1 WHERE id = %d", id))
			id, other = 0, id // not read
		default:
			r.exec(fmt.Sprintf("UPDATE copied SET a = a + 1 WHERE id = %d", id))
		}
		r.settle()
		if id != 0 {
			sh.wantsKey(after, true, fmt.Sprint(id))
		}
		sh.wantsKey(after, false, fmt.Sprint(other))
	}
	r.redefined()
}

// redefined alters the table, makes another, and truncates that.
func (r *copied) redefined() {
	r.t.Helper()
	old := r.follow("copied", intKinds)
	r.exec("ALTER TABLE copied ADD COLUMN c INT")
	r.settle()
	eventually(r.t, "the definition is gone", old.Gone)
	r.exec("CREATE TABLE later (id INT PRIMARY KEY, a INT, b INT)", "INSERT INTO later VALUES (1, 1, 1)")
	later := r.follow("later", intKinds)
	after := r.now()
	r.exec("TRUNCATE TABLE later")
	r.settle()
	later.wantsTable(after, true)
}

// replicaLags has the replica apply nothing: then nothing of the upstream is
// proven, nothing is dropped, and it goes on where it was.
func replicaLags(r *copied) {
	sh := r.follow("copied", intKinds).shape("id", "a")
	after, flushes := r.now(), r.store.flushed()
	r.applying(false)
	r.exec("UPDATE copied SET a = a + 1 WHERE id = 1")
	asked := Now()
	ticket := r.unproven("the replica does not apply")
	sh.wantsKey(after, false, "1")
	time.Sleep(3500 * time.Millisecond) // longer than a stream that brings nothing is trusted
	if r.feed.ProvenTicket() >= ticket || r.feed.ProvenAt() > asked {
		r.t.Error("proven, though the replica does not apply")
	}
	if r.store.flushed() != flushes {
		r.t.Error("a replica that lags costs what was kept")
	}
	r.applying(true)
	eventually(r.t, "the replica catches up", func() bool { return r.feed.ProvenTicket() >= ticket })
	sh.wantsKey(after, true, "1")
	sh.wantsKey(after, false, "2")
	if r.store.flushed() != flushes {
		r.t.Error("a replica that lagged cost what was kept")
	}
	r.settle()
	eventually(r.t, "what was applied is visible", func() bool { return r.store.Visible() == r.store.Applied() })
}

// replicaWaits delays a commit of the primary that the replica has already: it is
// marked, and not visible; nor is anything to a feed that begins then.
func replicaWaits(r *copied) {
	r.visibleWaits(func(cache.Dep) {
		if r.postgres() {
			return // a slot does not begin before the commit has ended
		}
		late := newRigFrom(r.t, r.server, r.from)
		for range 5 {
			late.settle()
			if at := late.store.Visible(); at != 0 {
				r.t.Errorf("visible is %d, and the commit that the replica had when the stream began cannot be read", at)
			}
		}
		r.t.Cleanup(func() {
			eventually(r.t, "visible is known once the commit can be read", func() bool { return late.store.Visible() != 0 })
		})
	})
}

// replicaRestarts stops the replica, and starts it again.
func replicaRestarts(r *copied) {
	r.follow("copied", intKinds)
	if err := r.replica.Shutdown(); err != nil {
		r.t.Fatal(err)
	}
	r.exec("UPDATE copied SET a = a + 1 WHERE id = 1")
	ticket := r.unproven("the replica is down")
	if err := r.replica.Restart(context.Background()); err != nil {
		r.t.Fatal(err)
	}
	if !r.postgres() {
		start := "START SLAVE"
		if r.server.Kind == upstream.MySQL {
			start = "START REPLICA"
		}
		r.copyExec(start)
	}
	eventually(r.t, "the feed is back", func() bool { return r.feed.ProvenTicket() >= ticket })
	r.restart(true) // the primary
	r.settle()
	sh := r.follow("copied", intKinds).shape("id", "a")
	after := r.now()
	r.exec("UPDATE copied SET a = a + 1 WHERE id = 2")
	r.settle()
	sh.wantsKey(after, true, "2")
	sh.wantsKey(after, false, "1")
}

func (r *copied) copyExec(statements ...string) {
	r.t.Helper()
	r.onCopy.SetMaxIdleConns(0)
	for _, s := range statements {
		if _, err := r.onCopy.Exec(s); err != nil {
			r.t.Fatalf("%s: %v", s, err)
		}
	}
}

// replicaPromoted has the replica go a way of its own, with as many
// transactions as the primary then makes: what was kept is dropped, and nothing
// that the replica says proves anything any more.
func replicaPromoted(r *copied) {
	w := r.follow("copied", intKinds)
	flushes := r.store.flushed()
	switch r.server.Kind {
	case upstream.Postgres18:
		r.copyExec("SELECT pg_promote(true, 60)")
	case upstream.MySQL:
		r.copyExec("STOP REPLICA", "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")
	default:
		r.copyExec("STOP SLAVE", "SET GLOBAL read_only = OFF")
	}
	for i := range 20 {
		r.copyExec(fmt.Sprintf("INSERT INTO copied VALUES (%d, 1, 1)", 100+i))
	}
	r.exec("UPDATE copied SET a = a + 1 WHERE id = 1")
	r.unproven("the replica has a history of its own")
	eventually(r.t, "what was kept is dropped", func() bool { return r.store.flushed() > flushes && w.Gone() })
	r.unproven("the replica has a history of its own")
	if r.feed.Status().Up {
		eventually(r.t, "the stream is given up", func() bool { return !r.feed.Status().Up })
	}
	if err := r.feed.Status().LastError; !strings.Contains(err, "the replica at "+r.replica.Address()) {
		r.t.Errorf("the feed does not say what is wrong with the replica: %q", err)
	}
}

// TestReplicaFilterLater gives a running replica a filter.
func TestReplicaFilterLater(t *testing.T) {
	t.Parallel()
	ownKinds(t, []upstream.Kind{upstream.MariaDB, upstream.MySQL}, func(t *testing.T, primary *upstream.Server) {
		r := newCopied(t, primary, upstream.OwnReplica(t, primary))
		w := r.follow("copied", intKinds)
		flushes := r.store.flushed()
		if r.server.Kind == upstream.MySQL {
			r.copyExec("STOP REPLICA SQL_THREAD", "CHANGE REPLICATION FILTER REPLICATE_IGNORE_TABLE = (freshet_test.copied)", "START REPLICA SQL_THREAD")
		} else {
			r.copyExec("STOP SLAVE", "SET GLOBAL replicate_ignore_table = 'freshet_test.copied'", "START SLAVE")
		}
		eventually(t, "the stream is given up", func() bool { return r.store.flushed() > flushes && w.Gone() && !r.feed.Status().Up })
		r.exec("UPDATE copied SET a = a + 1 WHERE id = 1")
		r.unproven("the replica leaves changes out")
	})
}

// TestReplicaSkips has the replica leave a transaction of the primary out, as is
// done with one that it cannot apply.
func TestReplicaSkips(t *testing.T) {
	t.Parallel()
	ownKinds(t, []upstream.Kind{upstream.MariaDB, upstream.MySQL}, func(t *testing.T, primary *upstream.Server) {
		r := newCopied(t, primary, upstream.OwnReplica(t, primary))
		w := r.follow("copied", intKinds)
		flushes := r.store.flushed()
		r.applying(false)
		r.exec("UPDATE copied SET a = a + 1 WHERE id = 1")
		ask := "SELECT @@GLOBAL.gtid_binlog_pos"
		if r.server.Kind == upstream.MySQL {
			ask = "SELECT @@GLOBAL.gtid_executed"
		}
		var last string
		if err := r.db.QueryRow(ask).Scan(&last); err != nil {
			t.Fatal(err)
		}
		if r.server.Kind == upstream.MySQL {
			source, numbers, _ := strings.Cut(last, ":")
			numbers = numbers[strings.LastIndexByte(numbers, '-')+1:]
			r.copyExec("SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")
			c, err := r.onCopy.Conn(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []string{"SET GTID_NEXT = '" + source + ":" + numbers + "'", "BEGIN", "COMMIT", "SET GTID_NEXT = 'AUTOMATIC'"} {
				if _, err := c.ExecContext(context.Background(), s); err != nil {
					t.Fatalf("%s: %v", s, err)
				}
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			r.applying(true)
		} else {
			r.copyExec("STOP SLAVE", "SET GLOBAL gtid_slave_pos = '"+last+"'", "START SLAVE")
		}
		r.exec("UPDATE copied SET a = a + 1 WHERE id = 2")
		eventually(t, "what was kept is dropped", func() bool { return r.store.flushed() > flushes && w.Gone() && !r.feed.Status().Up })
		r.unproven("the replica skipped a transaction")
		if err := r.feed.Status().LastError; !strings.Contains(err, "skipped") {
			t.Errorf("the feed does not say what is wrong with the replica: %q", err)
		}
	})
}

// TestReplicaRefused says what a replica lacks and how to mend it, when the feed
// is opened and when it is asked.
func TestReplicaRefused(t *testing.T) {
	t.Parallel()
	needsServers(t)
	wants := func(t *testing.T, primary *upstream.Server, from, words string) {
		t.Helper()
		f, err := Open(context.Background(), Config{DSN: primary.DSN(), From: from, Store: newStore(), Tracker: NewTracker(newStore())})
		if err == nil {
			f.Close()
			t.Fatal("it opened")
		}
		if !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), "mend:") || strings.Contains(err.Error(), "freshet:freshet") {
			t.Errorf("the error does not say %q and how to mend it: %v", words, err)
		}
		for _, finding := range CheckFrom(context.Background(), primary.DSN(), from) {
			if !finding.OK && strings.Contains(finding.What, words) && finding.Mend != "" && strings.HasPrefix(finding.What, "replica: ") {
				return
			}
		}
		t.Errorf("the check does not say %q: %+v", words, CheckFrom(context.Background(), primary.DSN(), from))
	}
	for _, c := range []struct {
		kind     upstream.Kind
		words    string
		settings []string
	}{
		{upstream.MySQL, "Replicate_Ignore_DB=elsewhere", []string{"replicate-ignore-db=elsewhere"}},
		{upstream.MySQL, "log_replica_updates", []string{"log-replica-updates=OFF"}},
		{upstream.MySQL, "replica_skip_errors is 1062", []string{"replica-skip-errors=1062"}},
		{upstream.MariaDB, "Replicate_Do_DB=freshet_test", []string{"replicate-do-db=freshet_test"}},
		{upstream.MariaDB, "log_slave_updates", []string{"log-slave-updates=OFF"}},
		{upstream.Postgres18, "hot_standby_feedback is off", []string{"hot_standby_feedback=off"}},
		{upstream.Postgres15, "only 16 and later can decode their log on a standby", nil},
	} {
		t.Run(string(c.kind)+" "+strings.Join(c.settings, " "), func(t *testing.T) {
			t.Parallel()
			primary := upstream.Own(t, c.kind)
			wants(t, primary, upstream.OwnReplica(t, primary, upstream.WithSettings(c.settings...)).DSN(), c.words)
		})
	}
	t.Run("no replica", func(t *testing.T) {
		t.Parallel()
		wants(t, upstream.Need(t, upstream.MariaDB), upstream.Need(t, upstream.MariaDB).DSN(), "it is the upstream itself")
		wants(t, upstream.Need(t, upstream.MariaDB), upstream.Own(t, upstream.MariaDB).DSN(), "it is no replica")
		wants(t, upstream.Need(t, upstream.Postgres18), upstream.Own(t, upstream.Postgres18).DSN(), "it is no standby")
		wants(t, upstream.Need(t, upstream.MariaDB), upstream.Need(t, upstream.MySQL).DSN(), "one is MariaDB and the other MySQL")
	})
}

// replicaCheck finds nothing wrong with a replica that has it all.
func replicaCheck(r *copied) {
	found := CheckFrom(context.Background(), r.server.DSN(), r.replica.DSN())
	replica := 0
	for _, f := range found {
		if !f.OK {
			r.t.Errorf("%s (mend: %s)", f.What, f.Mend)
		}
		if strings.HasPrefix(f.What, "replica: ") {
			replica++
		}
	}
	if replica < 5 {
		r.t.Errorf("the replica was hardly looked at: %+v", found)
	}
}
