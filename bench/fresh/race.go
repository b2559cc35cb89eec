package fresh

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"freshet/bench/load"
)

// Race is how long a commit took to be seen by a bare client of the stream; to
// be read by one that asks the server for the row as soon as it has seen that;
// and to the first answer through the proxy that showed it. Each commit was
// awaited in one of these ways.
type Race struct {
	Writers          int     // which wrote meanwhile
	PerSecond        float64 // rows, by them
	Bare, Own, Fresh *hdrhistogram.Histogram
	// Older counts the commits after which an older answer was served, once the
	// client knew of the commit. There can be one only where it was kept.
	Older int64
}

func newRace() Race {
	h := func() *hdrhistogram.Histogram { return hdrhistogram.New(1000, int64(time.Minute), 3) }
	return Race{Bare: h(), Own: h(), Fresh: h()}
}

// Ratio is the proxy's latency in terms of another.
func (r *Race) Ratio(to *hdrhistogram.Histogram, percentile float64) float64 {
	return float64(r.Fresh.ValueAtPercentile(percentile)) / float64(max(1, to.ValueAtPercentile(percentile)))
}

// Summary are the numbers of a race, by name; nil when there was none.
func (r *Race) Summary() map[string]float64 {
	if r.Bare == nil {
		return nil
	}
	out := map[string]float64{"writers": float64(r.Writers), "per_second": r.PerSecond, "older_answers_first": float64(r.Older)}
	for _, p := range []float64{50, 99} {
		for name, h := range map[string]*hdrhistogram.Histogram{"bare": r.Bare, "own": r.Own, "fresh": r.Fresh} {
			out[fmt.Sprintf("%s_p%.0f_ns", name, p)] = float64(h.ValueAtPercentile(p))
		}
	}
	return out
}

// fewWriters keep the server's core busy, but leave those that send its streams
// their part of it. Beside many, PostgreSQL's senders get too little to send all
// that is written to two, and fall behind: then the wait for the stream is all
// that is measured.
const fewWriters = 2

// races awaits commits on the idle server, then while it writes as fast as it
// can for few connections and for many.
func (r *speedRun) races(ctx context.Context) error {
	err := r.race(ctx, &r.report.Idle, func(n int) bool { return n < r.cfg.Commits })
	if r.cfg.Seconds <= 0 {
		return err
	}
	for _, writers := range []int{min(fewWriters, r.cfg.Writers), r.cfg.Writers} {
		if err == nil {
			err = r.raceWriters(ctx, writers)
		}
	}
	return err
}

// raceWriters awaits commits while connections write as fast as the server can.
func (r *speedRun) raceWriters(ctx context.Context, writers int) error {
	type written struct {
		load.Result
		err error
	}
	done := make(chan written, 1)
	go func() {
		result, err := load.Run(ctx, load.Config{Workload: writer(oneTable), DSN: r.cfg.Direct, Connections: writers,
			Seconds: r.cfg.Seconds * float64(max(1, r.cfg.Rounds)), Core: r.cfg.Core})
		done <- written{result, err}
	}()
	var w written
	over := false
	var race Race
	err := r.race(ctx, &race, func(int) bool {
		select {
		case w = <-done:
			over = true
		default:
		}
		return !over
	})
	if !over {
		w = <-done
	}
	race.Writers, race.PerSecond = writers, w.PerSecond()
	r.report.Loaded = append(r.report.Loaded, race)
	return errors.Join(err, w.err)
}

// race lets commits be awaited in each way in turn.
func (r *speedRun) race(ctx context.Context, into *Race, more func(n int) bool) error {
	*into = newRace()
	ways := []struct {
		h     *hdrhistogram.Histogram
		await func(context.Context) (time.Duration, error)
	}{{into.Bare, r.bareCommit}, {into.Own, r.ownRead}, {into.Fresh, r.fresh}}
	for n := 0; more(n); n++ {
		if n%64 == 0 {
			if err := errors.Join(ctx.Err(), r.direct.Extend(), r.reader.Extend()); err != nil {
				return err
			}
		}
		way := ways[n%len(ways)]
		r.older = false
		if err := r.settle(); err != nil {
			return err
		}
		took, err := way.await(ctx)
		if err != nil {
			return err
		}
		if r.older {
			into.Older++
		}
		if err := way.h.RecordValue(max(1000, took.Nanoseconds())); err != nil {
			return err
		}
	}
	return nil
}

// settle has an old answer kept of the row that the next commit changes,
// whichever way that one is awaited, and lets what the last one set going come
// to its end: the first read has the proxy look what can be read by now, the
// second is kept.
func (r *speedRun) settle() error {
	for range 2 {
		if _, err := r.reader.Query(reading(r.values + 1)); err != nil {
			return err
		}
		time.Sleep(settleFor)
	}
	return nil
}

// settleFor is longer than it takes the proxy to look.
const settleFor = 2 * time.Millisecond

// bareCommit is the time from sending a commit to the bare client's seeing it.
func (r *speedRun) bareCommit(ctx context.Context) (time.Duration, error) {
	var took time.Duration
	err := r.afterCommit(ctx, func(sent, seen time.Time) error {
		took = seen.Sub(sent)
		return nil
	})
	return took, err
}

// ownRead is the time to the answer that the bare client gets from the server
// itself when it asks as soon as it has seen the commit.
func (r *speedRun) ownRead(ctx context.Context) (time.Duration, error) {
	var took time.Duration
	err := r.afterCommit(ctx, func(sent, _ time.Time) error {
		_, err := r.direct.Query(reading(r.values))
		took = time.Since(sent)
		return err
	})
	return took, err
}

// afterCommit commits, and runs then as soon as the bare client has seen it.
// Until then a client asks the proxy without pause, for another row, as it does
// while it awaits a fresh answer: whoever hears of the commit has to come by the
// same core.
func (r *speedRun) afterCommit(ctx context.Context, then func(sent, seen time.Time) error) error {
	r.values++
	r.bare.expect(r.values)
	sent := time.Now()
	if err := r.commit(); err != nil {
		return err
	}
	var over atomic.Bool
	asked := make(chan error, 1)
	go func() {
		var err error
		for sql := reading(r.values + 2); err == nil && !over.Load(); {
			_, err = r.reader.Query(sql)
		}
		asked <- err
	}()
	seen, err := r.bare.await(ctx)
	over.Store(true)
	if err == nil {
		err = then(sent, seen)
	}
	return errors.Join(err, <-asked)
}

// reading reads the row to which a commit writes the value.
func reading(value int64) string {
	return fmt.Sprintf("SELECT v FROM %s WHERE id = %d", table, value%4)
}

func (r *speedRun) commit() error {
	_, err := r.direct.Query(fmt.Sprintf("UPDATE %s SET v = %d WHERE id = %d", table, r.values, r.values%4))
	return err
}

// fresh is the time from sending a commit to the first answer that shows it.
func (r *speedRun) fresh(ctx context.Context) (time.Duration, error) {
	r.values++
	sql, want := reading(r.values), fmt.Sprint(r.values)
	sent := time.Now()
	if err := r.commit(); err != nil {
		return 0, err
	}
	for {
		rows, err := r.reader.Query(sql)
		took := time.Since(sent)
		switch {
		case err != nil:
			return 0, err
		case len(rows) == 1 && string(rows[0][0]) == want:
			return took, nil
		case took > Patience:
			return 0, fmt.Errorf("a change was not seen within %s", Patience)
		case ctx.Err() != nil:
			return 0, ctx.Err()
		}
		r.older = true
	}
}
