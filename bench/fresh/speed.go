package fresh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"freshet/bench/cpu"
	"freshet/bench/load"
	"freshet/bench/versus"
	"freshet/bench/wire"
)

// SpeedConfig says how the feed is compared with a bare client of the same
// stream, and with the server that writes.
type SpeedConfig struct {
	Direct, Through       string // DSNs
	DirectPid, ThroughPid int    // 0: no CPU time is told
	Commits               int    // awaited on an idle server, a third of them in each way
	Seconds               float64
	Rounds                int // of writing as fast as the server can, each over both tables
	Writers               int // connections
	Core                  int // the writers'
}

// Speed is what was seen. Latencies are in nanoseconds and count from the moment
// at which the commit was sent: a stream may show it before its client is told.
type Speed struct {
	Idle     Race
	Loaded   []Race    // beside ever more writers
	Writing  []Written // by the number of shapes
	CaughtUp time.Duration
}

// Written is what writing rows of one table took, as fast as the server could.
type Written struct {
	Shapes         int
	Rows           int64
	Elapsed        time.Duration
	Server, Proxy  time.Duration // CPU; 0: not seen
	serverTo, from time.Duration // at the end and the beginning of a round
	proxyTo        time.Duration
	proxyFrom      time.Duration
}

// PerSecond is rows a second.
func (w *Written) PerSecond() float64 { return float64(w.Rows) / max(1e-9, w.Elapsed.Seconds()) }

// ProxyMicros is the proxy's CPU time a row.
func (w *Written) ProxyMicros() float64 {
	return float64(w.Proxy.Microseconds()) / float64(max(1, w.Rows))
}

// ServerMicros is the server's CPU time a row.
func (w *Written) ServerMicros() float64 {
	return float64(w.Server.Microseconds()) / float64(max(1, w.Rows))
}

// What is aimed at.
const (
	mostRatio = 1.5 // of latencies, and of 20 shapes to one
	mostShare = 0.2 // of the server's CPU
)

// Print writes the report.
func (s *Speed) Print(w io.Writer) error {
	at := func(h *hdrhistogram.Histogram, p float64) time.Duration {
		return time.Duration(h.ValueAtPercentile(p)).Round(time.Microsecond)
	}
	for _, r := range append([]Race{s.Idle}, s.Loaded...) {
		if r.Bare == nil || r.Bare.TotalCount() == 0 || r.Fresh.TotalCount() == 0 {
			continue
		}
		name := "idle"
		if r.Writers > 0 {
			name = fmt.Sprintf("while %d connections write %.0f rows/s", r.Writers, r.PerSecond)
		}
		_, err := fmt.Fprintf(w, "speed, %s, from sending a commit (p50, p99 of %d each):\n"+
			"  a bare client of the stream has seen it after %s, %s, and has the row, which it asks the server for then, after %s, %s;\n"+
			"  the first fresh answer through Freshet comes after %s, %s, of which %.0f %% had an older answer served meanwhile\n"+
			"  that is %.2f, %.2f times until the bare client has the row (aim: %.1f), and %.2f, %.2f times until it has seen the commit\n", name, r.Fresh.TotalCount(),
			at(r.Bare, 50), at(r.Bare, 99), at(r.Own, 50), at(r.Own, 99), at(r.Fresh, 50), at(r.Fresh, 99), 100*float64(r.Older)/float64(r.Fresh.TotalCount()),
			r.Ratio(r.Own, 50), r.Ratio(r.Own, 99), mostRatio, r.Ratio(r.Bare, 50), r.Ratio(r.Bare, 99))
		if err != nil {
			return err
		}
	}
	for _, one := range s.Writing {
		_, err := fmt.Fprintf(w, "speed, %d shapes: %.0f rows/s written; CPU a row: server %.1f µs, Freshet %.2f µs, a share of %.2f (aim: %.1f)\n",
			one.Shapes, one.PerSecond(), one.ServerMicros(), one.ProxyMicros(), one.ProxyMicros()/max(1e-9, one.ServerMicros()), mostShare)
		if err != nil {
			return err
		}
	}
	if len(s.Writing) == 2 && s.Writing[0].Proxy > 0 {
		if _, err := fmt.Fprintf(w, "speed: %d shapes cost %.2f times one (aim: %.1f)\n", s.Writing[1].Shapes, s.Writing[1].ProxyMicros()/s.Writing[0].ProxyMicros(), mostRatio); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "speed: at most %s after the last write the feed had applied it\n", s.CaughtUp.Round(time.Millisecond))
	return err
}

// The tables that are written as fast as the server can: the answers that
// depend on one are of one shape, those on the other of twenty.
const (
	oneTable  = "freshet_bench_one"
	manyTable = "freshet_bench_many"
	speedRows = 2000
	// speedAnswers is how many answers are kept of each shape.
	speedAnswers = 200
)

type speedRun struct {
	cfg    SpeedConfig
	report Speed
	values int64 // the last value written to an awaited row
	older  bool  // an older value was read after the last commit
	direct *versus.Client
	reader *versus.Client
	bare   *stream
	full   bool // PostgreSQL
}

// valueBase is above everything that is written otherwise.
const valueBase = 0x5EED << 40

// Compare makes tables, and races.
func Compare(ctx context.Context, cfg SpeedConfig) (report Speed, err error) {
	r := &speedRun{cfg: cfg, values: valueBase}
	t, err := wire.Parse(cfg.Direct)
	if err != nil {
		return report, err
	}
	r.full = t.Dialect == wire.Postgres
	if err := r.makeTables(ctx); err != nil {
		return report, err
	}
	defer func() {
		err = errors.Join(err, versus.Exec(context.WithoutCancel(ctx), cfg.Direct, "DROP TABLE "+table, "DROP TABLE "+oneTable, "DROP TABLE "+manyTable))
	}()
	if r.direct, err = versus.Dial(ctx, cfg.Direct); err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, r.direct.Close()) }()
	if r.reader, err = versus.Dial(ctx, cfg.Through); err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, r.reader.Close()) }()
	if err := r.keepAnswers(); err != nil {
		return report, err
	}
	// Alone first: the bare stream costs the server CPU time, too.
	if err := r.write(ctx); err != nil {
		return report, err
	}
	if r.bare, err = openStream(ctx, cfg.Direct, table, oneTable, manyTable); err != nil {
		return report, err
	}
	err = r.races(ctx)
	return r.report, errors.Join(err, r.bare.close())
}

func (r *speedRun) makeTables(ctx context.Context) error {
	script := []string{"DROP TABLE IF EXISTS " + table, "DROP TABLE IF EXISTS " + oneTable, "DROP TABLE IF EXISTS " + manyTable,
		"CREATE TABLE " + table + " (id INT PRIMARY KEY, v BIGINT NOT NULL)", "INSERT INTO " + table + " VALUES (0, 0), (1, 0), (2, 0), (3, 0)"}
	for _, name := range []string{oneTable, manyTable} {
		script = append(script, "CREATE TABLE "+name+" (id INT PRIMARY KEY, k INT NOT NULL, v BIGINT NOT NULL, c VARCHAR(60) NOT NULL, pad VARCHAR(60) NOT NULL)")
		var rows []string
		for id := range speedRows {
			rows = append(rows, fmt.Sprintf("(%d, %d, 0, 'c%d', '%s')", id, id/4, id, strings.Repeat("p", 50)))
		}
		script = append(script, "INSERT INTO "+name+" VALUES "+strings.Join(rows, ","))
		if r.full {
			script = append(script, "ALTER TABLE "+name+" REPLICA IDENTITY FULL")
		}
	}
	return versus.Exec(ctx, r.cfg.Direct, script...)
}

// shapes are statements of twenty shapes of a table, each with one parameter.
func shapes() []string {
	var out []string
	for _, where := range []string{"id = %[2]d", "k = %[2]d", "id = %[2]d AND k = %[2]d", "id BETWEEN %[2]d AND %[2]d + 0", "id = %[2]d AND c = 'c%[2]d'"} {
		for _, reads := range []string{"v", "c", "pad", "v, c"} {
			out = append(out, "SELECT "+reads+" FROM %[1]s WHERE "+where)
		}
	}
	return out
}

// keepAnswers has answers of every shape kept, and waits until they are hits.
func (r *speedRun) keepAnswers() error {
	for at, sql := range shapes() {
		for _, name := range []string{oneTable, manyTable} {
			if name == oneTable && at > 0 {
				continue
			}
			for n := range speedAnswers {
				if _, err := r.reader.Query(fmt.Sprintf(sql, name, n*(speedRows/speedAnswers))); err != nil {
					return err
				}
			}
		}
		if err := r.reader.Extend(); err != nil {
			return err
		}
	}
	return nil
}

// writer updates one row of a table by its key.
func writer(name string) load.Workload {
	return load.Workload{Mode: load.Prepared, Depth: 1, Statements: []load.Statement{{
		SQL:  "UPDATE " + name + " SET v = v + 1 WHERE id = ?",
		Args: func(n int64) []int64 { return []int64{n * 7919 % speedRows} },
	}}}
}

// write lets the server write as fast as it can, each table in turn.
func (r *speedRun) write(ctx context.Context) error {
	one, many := Written{Shapes: 1}, Written{Shapes: len(shapes())}
	for round := range max(1, r.cfg.Rounds) {
		for _, w := range []struct {
			*Written
			table string
		}{{&one, oneTable}, {&many, manyTable}} {
			// What the feed is said to know, it takes up only once it is asked.
			if err := r.keepAnswers(); err != nil {
				return err
			}
			if err := r.round(ctx, w.Written, w.table, round); err != nil {
				return err
			}
		}
	}
	r.report.Writing = []Written{one, many}
	return nil
}

func (r *speedRun) round(ctx context.Context, w *Written, name string, round int) error {
	workload := writer(name)
	workload.Round = int64(round)
	usage := func(server, proxy *time.Duration) func() error {
		return func() error {
			var err error
			for _, p := range []struct {
				pid int
				to  *time.Duration
			}{{r.cfg.DirectPid, server}, {r.cfg.ThroughPid, proxy}} {
				if p.pid == 0 {
					continue
				}
				t, e := cpu.Time(p.pid)
				*p.to, err = t, errors.Join(err, e)
			}
			return err
		}
	}
	result, err := load.Run(ctx, load.Config{Workload: workload, DSN: r.cfg.Direct, Connections: r.cfg.Writers, Seconds: r.cfg.Seconds, Warmup: 0.2,
		Core: r.cfg.Core, Begin: usage(&w.from, &w.proxyFrom), End: usage(&w.serverTo, &w.proxyTo)})
	if err != nil {
		return err
	}
	ended := time.Now()
	w.Rows, w.Elapsed = w.Rows+result.Calls, w.Elapsed+result.Elapsed
	w.Server, w.Proxy = w.Server+w.serverTo-w.from, w.Proxy+w.proxyTo-w.proxyFrom
	if err := r.caughtUp(ctx); err != nil {
		return err
	}
	r.report.CaughtUp = max(r.report.CaughtUp, time.Since(ended))
	return nil
}

// caughtUp waits until the feed has applied everything that is committed: a
// change made now shows.
func (r *speedRun) caughtUp(ctx context.Context) error {
	_, err := r.fresh(ctx)
	return err
}
