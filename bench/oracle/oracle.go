package oracle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"freshet/bench/upstream"
	"freshet/bench/wire"
)

// Config says what to check. Out gets differences as they are found.
type Config struct {
	Kind            upstream.Kind // what the server is
	Direct, Through string        // DSNs
	Checks          int           // answers to check; 0: until For is over
	For             time.Duration // how long at most; 0: until Checks are made
	Seed            uint64
	Round           int // play this round only; negative: all, from the first
	Reads           int // statements of a working set; 0: 200
	Writes          int // writes of a round; 0: 30
	Lanes           int // pairs of sessions that check side by side; 0: 5
	// Gaps is of how many writes in a hundred the commit is held between the
	// log and its being readable, by changing the server's settings for a
	// moment. For servers of one's own.
	Gaps int
	// Linearizable checks as soon as a write has returned, without waiting for
	// the feed: at that level nothing older may be answered from then on.
	Linearizable bool
	// Noise is beside how many writes in a hundred others read; 0: 50.
	Noise int
	// Most differences before the run ends; 0: 10.
	Most int
	// Focus puts one thing into every round and its writes: families (PostgreSQL's
	// partitions and heirs), policies, extension (citext's operators) or frozen
	// (materialized views); "": all by chance.
	Focus string
	// Brief leaves out the search for a small reproduction.
	Brief bool
	Out   io.Writer
}

const (
	defaultReads  = 200
	defaultWrites = 30
	defaultLanes  = 5
	defaultMost   = 10
	defaultGaps   = 5
	defaultNoise  = 50
)

// schemaName is the database, or PostgreSQL's schema, that the run makes and drops.
const schemaName = "freshet_oracle"

// frontName is a schema that PostgreSQL's search path has before it, mostly empty.
const frontName = "freshet_oracle_front"

// Run checks round after round. Its error is about the run itself (a server
// that cannot be reached, a feed that does not come through); differences are
// in the report.
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
	orDefault(&cfg.Reads, defaultReads)
	orDefault(&cfg.Writes, defaultWrites)
	orDefault(&cfg.Lanes, defaultLanes)
	orDefault(&cfg.Most, defaultMost)
	orDefault(&cfg.Noise, defaultNoise)
	r := &runner{cfg: cfg, direct: direct, through: through, d: dialectOf(cfg.Kind), report: newReport(cfg)}
	started := time.Now()
	if cfg.For > 0 {
		r.until = started.Add(cfg.For)
	}
	err = errors.Join(r.run(ctx), r.leave(ctx))
	r.report.Took = time.Since(started)
	return r.report, err
}

func orDefault(n *int, value int) {
	if *n <= 0 {
		*n = value
	}
}

// runner plays rounds. One goroutine at a time uses it.
type runner struct {
	cfg             Config
	direct, through wire.Target
	d               *dialect
	until           time.Time // zero: no end by time
	report          Report
	round           int
	fresh           int // statements made new by a comment
	minimised       int // differences for which a small reproduction was looked for
}

func (r *runner) run(ctx context.Context) error {
	if err := r.prepareGaps(ctx); err != nil {
		return err
	}
	if r.cfg.Round >= 0 {
		return r.play(ctx, r.cfg.Round)
	}
	for round := 0; !r.done(); round++ {
		if err := r.play(ctx, round); err != nil {
			return fmt.Errorf("seed %d, round %d: %w", r.cfg.Seed, round, err)
		}
	}
	return nil
}

// done tells whether enough was checked, or found.
func (r *runner) done() bool {
	enough := r.cfg.Checks > 0 && r.report.Checks >= r.cfg.Checks
	late := !r.until.IsZero() && time.Now().After(r.until)
	return enough || late || r.report.Differences >= r.cfg.Most
}

// draw makes the round's script; the same seed, round and dialect give the
// same one.
func (r *runner) draw(round int) *script {
	g := &gen{rng: rand.New(rand.NewPCG(r.cfg.Seed, uint64(round))), d: r.d, focus: r.cfg.Focus}
	g.schema()
	for range 4 {
		g.out.slow = append(g.out.slow, g.slow())
	}
	for len(g.out.reads) < r.cfg.Reads {
		g.out.reads = append(g.out.reads, g.read())
	}
	for len(g.out.writes) < r.cfg.Writes {
		if g.chance(r.cfg.Gaps) {
			g.gap()
			continue
		}
		g.write()
	}
	return &g.out
}

// play plays one round in an empty database or schema and tells what it found.
func (r *runner) play(ctx context.Context, round int) error {
	r.round = round
	sc := r.draw(round)
	var lanes []int
	for n := range r.cfg.Lanes {
		lanes = append(lanes, n)
	}
	s, err := r.enter(ctx, sc.setup, lanes)
	if err != nil {
		return err
	}
	found, err := s.play(ctx, sc)
	if err = errors.Join(err, s.close()); err != nil {
		return err
	}
	for i := range found {
		if err := r.tell(ctx, sc, &found[i], i == 0 && !r.cfg.Brief); err != nil {
			return err
		}
	}
	return nil
}
