package proxy_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
	"freshet/proxy"
)

// replicated is a Freshet whose change stream comes from a replica.
type replicated struct {
	*rig
	replica *upstream.Server
}

func fromReplica(t *testing.T, body func(t *testing.T, r *replicated)) {
	t.Helper()
	for _, kind := range []upstream.Kind{upstream.MariaDB, upstream.MySQL, upstream.Postgres18} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			primary := upstream.Own(t, kind)
			replica := upstream.OwnReplica(t, primary)
			from := proxy.Config{Upstreams: []proxy.UpstreamConfig{{FeedFrom: replica.DSN()}}}
			body(t, &replicated{newRig(t, primary, from), replica})
		})
	}
}

func (r *replicated) applying(t *testing.T, on bool) {
	t.Helper()
	do := r.replica.StopApplying
	if on {
		do = r.replica.StartApplying
	}
	if err := do(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// What others write is seen, by the key; every place that tells of the feed
// tells where it comes from.
func TestFeedFromReplica(t *testing.T) {
	t.Parallel()
	fromReplica(t, func(t *testing.T, r *replicated) {
		tb := r.table(t, "id INT PRIMARY KEY, v VARCHAR(20)", "1,'a'", "2,'b'")
		// What a session read from the upstream, its hits must not go back behind:
		// the one that watches row 2 reads nothing else.
		c, watch := conn(t, r.through), conn(t, r.through)
		q, other := "SELECT v FROM "+tb+" WHERE id = 1", "SELECT v FROM "+tb+" WHERE id = 2"
		// The session's own write must be applied before it hits, and with it the
		// rows that were made before.
		mustExec(t, watch, "UPDATE "+tb+" SET v = 'B' WHERE id = 2")
		hits(t, watch, other)
		for i := range 50 {
			hits(t, c, q)
			mustExec(t, r.direct, fmt.Sprintf("UPDATE %s SET v = 'x%d' WHERE id = 1", tb, i))
			r.agrees(t, c, q)
		}
		ask(watch, other)
		if d, reason := where(t, watch); !strings.HasPrefix(d, "cache") {
			t.Errorf("changes of row 1 cost the answer for row 2: %s (%s)", d, reason)
		}
		address := r.replica.Address()
		if status := ask(c, "SHOW FRESHET STATUS"); !strings.Contains(status, "feed_from|replica at "+address+"|") {
			t.Errorf("the status does not say where the feed comes from:\n%s", status)
		}
		for path, want := range map[string]string{"/health": `"feed_from":"` + address + `"`, "/metrics": `freshet_feed_from_info{address="` + address + `"`} {
			if body := get(t, r.rig, path); !strings.Contains(body, want) {
				t.Errorf("%s does not say %s:\n%s", path, want, body)
			}
		}
	})
}

// While the replica applies nothing, a session reads what it wrote, from the
// upstream, and nobody reads what is older than the bound; then hits resume.
func TestReplicaStops(t *testing.T) {
	t.Parallel()
	fromReplica(t, func(t *testing.T, r *replicated) {
		tb := r.table(t, "id INT PRIMARY KEY, n INT", "1,0", "2,0")
		own := func(i int) string { return fmt.Sprintf("SELECT n FROM %s WHERE id = 1 LIMIT %d", tb, i) }
		others := "SELECT n FROM " + tb + " WHERE id = 2"
		writer, reader := conn(t, r.through), conn(t, r.through)
		const writes = 5
		for i := range writes + 1 {
			hits(t, writer, own(i+1))
		}
		hits(t, reader, others)
		r.applying(t, false)
		for i := range writes {
			mustExec(t, writer, fmt.Sprintf("UPDATE %s SET n = %d WHERE id = 1", tb, i+1))
			time.Sleep(300 * time.Millisecond) // a probe that proves too much has this long to come
			if got := number(t, writer, own(i+1)); got != i+1 {
				t.Fatalf("the session wrote %d and read %d", i+1, got)
			}
			if d, reason := where(t, writer); strings.HasPrefix(d, "cache") {
				t.Fatalf("its own write is not proven to be applied, and it read from %s (%s)", d, reason)
			}
		}
		r.bounded(t, reader, tb, others)
		r.applying(t, true)
		for i := range writes + 1 { // one of them was not read since
			hits(t, writer, own(i+1))
			if got := number(t, writer, own(i+1)); got != writes {
				t.Errorf("read %d after the replica caught up, want %d", got, writes)
			}
		}
		hits(t, reader, others)
		r.agrees(t, reader, others)
	})
}

func number(t *testing.T, c *sql.Conn, q string) (n int) {
	t.Helper()
	if err := c.QueryRowContext(context.Background(), q).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// bounded writes on and on, past Freshet, and reads: no number that is read was
// overwritten longer ago than the bound, and in the end none comes from memory.
func (r *replicated) bounded(t *testing.T, reader *sql.Conn, tb, q string) {
	t.Helper()
	const bound = time.Second
	over := map[int]time.Time{} // when the number had been overwritten
	hit := true
	for n, end := 1, time.Now().Add(2*bound); time.Now().Before(end); n++ {
		mustExec(t, r.direct, fmt.Sprintf("UPDATE %s SET n = %d WHERE id = 2", tb, n))
		over[n-1] = time.Now()
		asked := time.Now()
		got := number(t, reader, q)
		if gone, was := over[got]; was && asked.Sub(gone) > bound {
			t.Fatalf("read %d, %v after it was overwritten", got, asked.Sub(gone))
		}
		d, _ := where(t, reader)
		hit = strings.HasPrefix(d, "cache")
	}
	if hit {
		t.Error("answers still come from memory, though nothing is proven")
	}
}

// A replica that is not there when Freshet starts may come: statements are
// forwarded until then.
func TestReplicaComesLater(t *testing.T) {
	t.Parallel()
	primary := upstream.Own(t, upstream.MariaDB)
	replica := upstream.OwnReplica(t, primary)
	if err := replica.Shutdown(); err != nil {
		t.Fatal(err)
	}
	r := &replicated{newRig(t, primary, proxy.Config{Upstreams: []proxy.UpstreamConfig{{FeedFrom: replica.DSN()}}}), replica}
	tb := r.table(t, "id INT PRIMARY KEY, n INT", "1,5")
	c := conn(t, r.through)
	q := "SELECT n FROM " + tb + " WHERE id = 1"
	if got := number(t, c, q); got != 5 {
		t.Fatalf("read %d without a feed, want 5", got)
	}
	if status := ask(c, "SHOW FRESHET STATUS"); !strings.Contains(status, "feed|down: ") || !strings.Contains(status, "the replica cannot be reached") &&
		!strings.Contains(status, replica.Address()) {
		t.Errorf("the status does not say that the feed is down:\n%s", status)
	}
	if err := replica.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	mustExec(t, replica.DB(t), "START SLAVE")
	hits(t, c, q)
	mustExec(t, r.direct, "UPDATE "+tb+" SET n = 6")
	r.agrees(t, c, q)
}
