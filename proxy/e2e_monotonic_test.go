package proxy_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"freshet/bench/seed"
)

// Whatever a session reads, and however, it never goes back in time behind what
// it was told before. One writer, unknown to Freshet, counts up a number that
// stands in two tables, in one transaction; whichever statement tells it, from
// whichever of them, it must never fall. The server itself keeps to that.
func TestSessionsNeverGoBack(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		from := seed.Of(t, "FRESHET_BACK_SEED", 7)
		t.Log("seed", from)
		a, b := r.table(t, "id INT PRIMARY KEY, n BIGINT", "1,0", "2,0"), r.table(t, "id INT PRIMARY KEY, n BIGINT", "1,0", "2,0")
		reads := []string{
			"SELECT n FROM " + a + " WHERE id = 1",
			"SELECT n FROM " + b + " WHERE id = 1",
			"SELECT n, id FROM " + a + " WHERE id IN (1, 7)",
			"SELECT MAX(n) FROM " + b,
			"SELECT SUM(n) FROM " + a,
			fmt.Sprintf("SELECT x.n FROM %s x, %s y WHERE x.id = y.id AND x.id = 1", a, b),
		}
		for _, q := range reads {
			hits(t, conn(t, r.through), q)
		}
		ctx, stop := context.WithCancel(t.Context())
		var readers, writer sync.WaitGroup
		writer.Go(func() { countUp(ctx, t, r.direct, rand.New(rand.NewPCG(from, 0)), a, b) })
		hit := make([]int, 4)
		for i := range hit {
			db := r.through
			if i == 0 {
				db = r.direct
			}
			c := conn(t, db)
			readers.Go(func() { hit[i] = neverBack(t, c, rand.New(rand.NewPCG(from, uint64(i))), reads, i > 0) })
		}
		readers.Wait()
		stop()
		writer.Wait()
		if hit[1]+hit[2]+hit[3] < 60 {
			t.Errorf("only %v reads came from memory: that proves little", hit[1:])
		}
	})
}

// countUp commits one number after the other, at uneven times.
func countUp(ctx context.Context, t *testing.T, db *sql.DB, random *rand.Rand, tables ...string) {
	for n := 1; ctx.Err() == nil; n++ {
		tx, err := db.Begin()
		if err != nil {
			t.Error(err)
			return
		}
		for _, table := range tables {
			if _, err := tx.Exec(fmt.Sprintf("UPDATE %s SET n = %d WHERE id = 1", table, n)); err != nil {
				t.Error(err)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Duration(random.IntN(10_000)) * time.Microsecond)
	}
}

// neverBack reads a thousand times, and tells how many answers came from memory.
func neverBack(t *testing.T, c *sql.Conn, random *rand.Rand, reads []string, through bool) (hits int) {
	last, before := int64(0), ""
	for range 1000 {
		q := reads[random.IntN(len(reads))]
		var n int64
		dest := []any{&n}
		if q == reads[2] {
			dest = append(dest, new(int))
		}
		if err := c.QueryRowContext(context.Background(), q).Scan(dest...); err != nil {
			t.Errorf("%s: %v", q, err)
			return hits
		}
		if n < last {
			t.Errorf("%s says %d after %s said %d", q, n, before, last)
			return hits
		}
		last, before = n, q
		if through && random.IntN(4) == 0 {
			if from, _ := where(t, c); strings.HasPrefix(from, "cache") {
				hits++
			}
		}
	}
	return hits
}

// A session that keeps reading what is not kept still hits what is: each such
// read raises its barrier, and the hit after it waits for the feed, instead of
// going upstream and raising it again.
func TestHitsAfterMisses(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		tb := r.table(t, "id INT PRIMARY KEY, n INT", "1,1")
		kept := "SELECT n FROM " + tb + " WHERE id = 1"
		c := conn(t, r.through)
		hits(t, c, kept)
		const rounds = 100
		fromMemory := 0
		for i := range rounds {
			ask(c, fmt.Sprintf("SELECT n FROM %s WHERE id = %d", tb, 1000+i))
			ask(c, kept)
			if from, _ := where(t, c); strings.HasPrefix(from, "cache") {
				fromMemory++
			}
		}
		if fromMemory < rounds*8/10 {
			t.Errorf("%d of %d reads came from memory", fromMemory, rounds)
		}
	})
}
