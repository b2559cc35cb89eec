// Package gate is the differential test of a proxy: it sends the same
// statements to the server and through the proxy and compares every byte that
// means something to a client, while rows are changed through the proxy, by
// the session itself and by others, and behind the proxy's back.
//
// The server is the oracle: no expected value is written down anywhere. A pair
// of sessions, one direct and one through, runs each call; whatever changes
// rows either runs on both against tables of their own (the lane tables, alike
// but for their name) or runs once against the shared tables that both read.
//
// What a read through may show, after a write to the shared tables:
//   - after the session's own write, at once what the direct session shows;
//   - after anyone else's, that or an older answer until MaxStaleness has
//     passed since the write; but once a session has seen the new answer to a
//     call, never an older one again.
package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"freshet/bench/metrics"
	"freshet/bench/wire"
)

// Config says what to compare. Out gets the differences as they are found.
type Config struct {
	Direct, Through string // DSNs
	Calls           int
	Seed            uint64
	MaxStaleness    time.Duration
	HTTP            string // Freshet's HTTP address, to count hits; may be empty
	Sessions        int    // pairs of sessions; 0: 4
	Enough          int    // differences at which the run ends; 0, and at most: 20
	Out             io.Writer
}

// Report is what a run found.
type Report struct {
	Calls       int
	Reads       int
	Writes      int // calls that changed shared tables
	Differences int
	Retried     int           // reads that were behind at first, within the bound
	Longest     time.Duration // the longest such read was behind
	Hits        int64         // by the proxy's own count; -1 when it was not asked
	Seed        uint64
}

// maxShown bounds the differences that are printed.
const maxShown = 20

// opTimeout ends a call that a server never answers.
const opTimeout = 20 * time.Second

// Run compares until cfg.Calls calls were made. Its error is about the gate
// itself (a server that cannot be reached); differences are in the Report.
func Run(ctx context.Context, cfg Config) (Report, error) {
	direct, err := wire.Parse(cfg.Direct)
	if err != nil {
		return Report{}, fmt.Errorf("--direct: %w", err)
	}
	through, err := wire.Parse(cfg.Through)
	if err != nil {
		return Report{}, fmt.Errorf("--through: %w", err)
	}
	if direct.Dialect != through.Dialect {
		return Report{}, errors.New("--direct and --through are not of one dialect")
	}
	if cfg.Sessions == 0 {
		cfg.Sessions = 4
	}
	if cfg.Enough <= 0 || cfg.Enough > maxShown {
		cfg.Enough = maxShown
	}
	r := &runner{
		cfg:    cfg,
		rng:    rand.New(rand.NewPCG(cfg.Seed, 0x9e3779b97f4a7c15)),
		report: Report{Seed: cfg.Seed, Hits: -1},
	}
	if direct.Dialect == wire.MySQL {
		r.d = mysqlDialect(direct, through)
	} else {
		r.d = postgresDialect(direct, through)
	}
	return r.run(ctx)
}

func (r *runner) run(ctx context.Context) (report Report, err error) {
	if err := r.d.setup(ctx, r.cfg.Sessions); err != nil {
		return r.report, fmt.Errorf("making the gate's tables: %w", err)
	}
	defer func() {
		r.closeAll()
		// The caller's context may be the reason why we stop; the tables go anyway.
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), opTimeout)
		defer cancel()
		err = errors.Join(err, r.d.teardown(clean))
	}()
	before, err := r.hits(ctx)
	if err != nil {
		return r.report, err
	}
	if err := r.connectAll(ctx); err != nil {
		return r.report, err
	}
	for r.report.Calls < r.cfg.Calls && r.report.Differences < r.cfg.Enough {
		if err := ctx.Err(); err != nil {
			return r.report, err
		}
		p := r.pairs[r.rng.IntN(len(r.pairs))]
		if err := r.play(ctx, p, r.pick(p)); err != nil {
			return r.report, err
		}
	}
	after, err := r.hits(ctx)
	if err == nil && before >= 0 {
		r.report.Hits = after - before
	}
	return r.report, err
}

// hits asks the proxy how many answers it gave from memory; -1 when nobody
// said where to ask.
func (r *runner) hits(ctx context.Context) (int64, error) {
	if r.cfg.HTTP == "" {
		return -1, nil
	}
	sample, err := metrics.Read(ctx, r.cfg.HTTP)
	if err != nil {
		return -1, fmt.Errorf("--http: %w", err)
	}
	return sample.Hits(), nil
}

// String is the summary, its first line as scripts look for it.
func (r Report) String() string {
	s := fmt.Sprintf("gate: %d calls, %d differences\n", r.Calls, r.Differences)
	s += fmt.Sprintf("gate: seed %d, %d reads, %d shared writes, %d reads behind at first (longest %s)\n",
		r.Seed, r.Reads, r.Writes, r.Retried, r.Longest.Round(10*time.Microsecond))
	if r.Hits >= 0 {
		s += fmt.Sprintf("gate: %d hits by the proxy's own count\n", r.Hits)
	}
	return s
}
