// Package fresh measures how soon a change made on the server itself shows
// through the proxy, and checks the promise behind it: once the proxy's feed
// has applied the change, the very next read returns the new row.
package fresh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"freshet/bench/metrics"
	"freshet/bench/versus"
	"freshet/bench/wire"
)

// Config says how many rows are changed, on which server.
type Config struct {
	Direct, Through string // DSNs
	HTTP            string // the proxy's metrics; empty: no check against the feed's position
	Updates         int
	Rows            int // how many different rows are read and changed
	Seed            uint64
}

// Report is what was seen. Times count from the moment at which the commit was
// acknowledged to its client.
type Report struct {
	Updates  int
	Latency  *hdrhistogram.Histogram // nanoseconds to the first read that shows the change
	Slow     int                     // changes that did not show within Patience
	Back     int                     // reads that showed an older value after a newer one
	Checked  int                     // reads made once the feed had applied the change
	Stale    int                     // of those, the ones that did not show it
	Untold   int                     // changes whose position the feed did not come to tell in time
	Reads    int                     // all reads through
	HitRatio float64                 // of the reads; negative when not asked
}

// Patience is how long a change may stay unseen before it counts as slow.
const Patience = 5 * time.Second

// tellPatience is how long the feed's position is waited for.
const tellPatience = 500 * time.Millisecond

// Failed says whether a promise was broken.
func (r Report) Failed() bool { return r.Slow+r.Back+r.Stale > 0 }

// Print writes the report.
func (r Report) Print(w io.Writer) error {
	at := func(p float64) time.Duration {
		return time.Duration(r.Latency.ValueAtPercentile(p)).Round(time.Microsecond)
	}
	_, err := fmt.Fprintf(w, "fresh: %d updates made directly upstream, each awaited through the proxy\n"+
		"  commit to the first fresh answer: p50 %s, p99 %s, longest %s\n"+
		"  not seen within %s: %d; older answers after newer ones: %d\n"+
		"  first reads after the feed had applied the change: %d, of which stale: %d (position not told in time: %d)\n",
		r.Updates, at(50), at(99), at(100), Patience, r.Slow, r.Back, r.Checked, r.Stale, r.Untold)
	if err == nil && r.HitRatio >= 0 {
		_, err = fmt.Fprintf(w, "  %d reads, %.1f %% answered from memory\n", r.Reads, r.HitRatio*100)
	}
	return err
}

const table = "freshet_bench_fresh"

type run struct {
	cfg     Config
	direct  *versus.Client
	through *versus.Client
	lsn     string  // what tells the upstream's position; empty: nobody asked
	values  []int64 // each row's newest value
	report  Report
	rng     *rand.Rand
}

// Run makes a table, changes its rows one at a time and watches.
func Run(ctx context.Context, cfg Config) (report Report, err error) {
	r := &run{cfg: cfg, values: make([]int64, cfg.Rows), rng: rand.New(rand.NewPCG(cfg.Seed, 7))}
	r.report = Report{Latency: hdrhistogram.New(1000, int64(time.Minute), 3), HitRatio: -1}
	if err := r.open(ctx); err != nil {
		return r.report, err
	}
	defer func() {
		err = errors.Join(err, r.direct.Close(), r.through.Close(), versus.Exec(context.WithoutCancel(ctx), cfg.Direct, "DROP TABLE "+table))
	}()
	before, err := r.sample(ctx)
	if err != nil {
		return r.report, err
	}
	for i := 1; i <= cfg.Updates; i++ {
		if err := ctx.Err(); err != nil {
			return r.report, err
		}
		if i%64 == 0 {
			if err := errors.Join(r.direct.Extend(), r.through.Extend()); err != nil {
				return r.report, err
			}
		}
		if err := r.one(ctx, int64(i)); err != nil {
			return r.report, fmt.Errorf("update %d: %w", i, err)
		}
		r.report.Updates++
	}
	after, err := r.sample(ctx)
	if err == nil && before != nil {
		r.report.HitRatio = float64(after.Hits()-before.Hits()) / float64(r.report.Reads)
	}
	return r.report, err
}

func (r *run) open(ctx context.Context) error {
	script := []string{"DROP TABLE IF EXISTS " + table, "CREATE TABLE " + table + " (id INT PRIMARY KEY, v BIGINT NOT NULL)"}
	for id := range r.cfg.Rows {
		script = append(script, fmt.Sprintf("INSERT INTO %s VALUES (%d, 0)", table, id))
	}
	if err := versus.Exec(ctx, r.cfg.Direct, script...); err != nil {
		return err
	}
	t, err := wire.Parse(r.cfg.Direct)
	if err != nil {
		return err
	}
	if r.direct, err = versus.Dial(ctx, r.cfg.Direct); err != nil {
		return err
	}
	if r.through, err = versus.Dial(ctx, r.cfg.Through); err != nil {
		return errors.Join(err, r.direct.Close())
	}
	if r.cfg.HTTP == "" {
		return nil
	}
	r.lsn = "SELECT pg_current_wal_flush_lsn()"
	if t.Dialect == wire.MySQL {
		r.lsn = newStatus
		if _, err := r.direct.Query(r.lsn); err != nil {
			r.lsn = oldStatus
		}
	}
	return nil
}

func (r *run) sample(ctx context.Context) (metrics.Sample, error) {
	if r.cfg.HTTP == "" {
		return nil, nil
	}
	return metrics.Read(ctx, r.cfg.HTTP)
}

// one changes a row that is in the cache and awaits it; then, if the feed can
// be asked, changes another and reads it once, when the feed says it is done.
func (r *run) one(ctx context.Context, value int64) error {
	id := r.rng.IntN(r.cfg.Rows)
	committed, err := r.change(id, value)
	if err != nil {
		return err
	}
	if err := r.await(id, value, committed); err != nil || r.lsn == "" {
		return err
	}
	id = r.rng.IntN(r.cfg.Rows)
	if _, err := r.change(id, value); err != nil {
		return err
	}
	told, err := r.awaitFeed(ctx)
	if err != nil {
		return err
	}
	if !told {
		r.report.Untold++
		return r.await(id, value, time.Now())
	}
	seen, err := r.read(id)
	if err != nil {
		return err
	}
	r.report.Checked++
	if seen != value {
		r.report.Stale++
	}
	return nil
}

// change warms a row and updates it on the server itself.
func (r *run) change(id int, value int64) (committed time.Time, err error) {
	for range 2 {
		seen, err := r.read(id)
		if err != nil {
			return committed, err
		}
		if seen != r.values[id] {
			r.report.Back++
		}
	}
	_, err = r.direct.Query(fmt.Sprintf("UPDATE %s SET v = %d WHERE id = %d", table, value, id))
	r.values[id] = value
	return time.Now(), err
}

// await reads until the new value shows.
func (r *run) await(id int, value int64, committed time.Time) error {
	for {
		seen, err := r.read(id)
		if err != nil {
			return err
		}
		waited := time.Since(committed)
		if seen == value {
			return r.report.Latency.RecordValue(max(1000, waited.Nanoseconds()))
		}
		if waited > Patience {
			r.report.Slow++
			return nil
		}
	}
}

func (r *run) read(id int) (int64, error) {
	r.report.Reads++
	rows, err := r.through.Query(fmt.Sprintf("SELECT v FROM %s WHERE id = %d", table, id))
	if err != nil {
		return 0, err
	}
	if len(rows) != 1 || len(rows[0]) != 1 {
		return 0, fmt.Errorf("row %d came as %d rows", id, len(rows))
	}
	return strconv.ParseInt(string(rows[0][0]), 10, 64)
}

// awaitFeed waits until the feed has applied everything committed so far;
// false when its position does not come to say so (the log's end can be past
// the last commit, in what the feed does not count).
func (r *run) awaitFeed(ctx context.Context) (bool, error) {
	rows, err := r.direct.Query(r.lsn)
	if err != nil {
		return false, err
	}
	if len(rows) != 1 {
		return false, fmt.Errorf("%s: %d rows", r.lsn, len(rows))
	}
	end, err := position(rows[0])
	if err != nil {
		return false, err
	}
	for deadline := time.Now().Add(tellPatience); time.Now().Before(deadline); {
		sample, err := r.sample(ctx)
		if err != nil {
			return false, err
		}
		at := uint64(sample.Sum("freshet_feed_position"))
		if at >= end {
			return at-end < oneNumbering, nil
		}
	}
	return false, nil
}

// oneNumbering is how far ahead of the server's end of log the feed can be: a
// commit by somebody else. Further, and the feed has begun to count anew
// (another file numbering, a reset log): then the two cannot be compared.
const oneNumbering = 1 << 24

// Bits of a position that the offset in a binary log's file takes, as the
// feed counts; an LSN's lower half has 32.
const (
	binlogOffsetBits = 40
	lsnOffsetBits    = 32
)

// position makes one number of an LSN (X/Y, hexadecimal) or of a binary log's
// file and offset, as the feed does.
func position(row [][]byte) (uint64, error) {
	high, low, base, bits := "", "", 16, lsnOffsetBits
	if len(row) >= 2 {
		name := string(row[0])
		high, low, base, bits = name[strings.LastIndexByte(name, '.')+1:], string(row[1]), 10, binlogOffsetBits
	} else if at := strings.Split(string(row[0]), "/"); len(at) == 2 {
		high, low = at[0], at[1]
	}
	h, err := strconv.ParseUint(high, base, 64-bits)
	if err != nil {
		return 0, fmt.Errorf("position %q: %w", row, err)
	}
	l, err := strconv.ParseUint(low, base, bits)
	if err != nil {
		return 0, fmt.Errorf("position %q: %w", row, err)
	}
	return h<<bits | l, nil
}
