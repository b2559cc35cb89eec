package precision

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"freshet/bench/versus"
	"freshet/bench/wire"
)

// Workload is an application: its tables, what it reads and what it writes.
// Each belongs to one run.
type workload struct {
	name   string
	tables []string
	// setUp makes its tables on the server itself; tearDown ends what else it
	// began, nil: nothing.
	setUp, tearDown func(ctx context.Context, s *stage) error
	// reads are the statements of one turn.
	reads func() []read
	// writes makes the changes of one turn, on the server itself.
	writes func(ctx context.Context, s *stage) error
	// targets are the shares of the possible hits that statements, summed up
	// under a name, have to reach.
	targets []target
}

// read is one statement and what it is counted under.
type read struct{ label, sql string }

// target is a promise: the statements of these labels, taken together, keep at
// least so much of the hits that they could have.
type target struct {
	name   string
	labels []string
	least  float64
}

// Outcome is what a workload came to.
type Outcome struct {
	Workload   string
	Turns      int
	Statements []*Tally
	Total      *Tally
	Targets    []Target
}

// Target is a promise and what became of it.
type Target struct {
	Tally
	Least float64
}

// Failed says whether a promise was broken.
func (t Target) Failed() bool { return t.HitShare() < t.Least }

// Failed says whether some promise was broken.
func (o *Outcome) Failed() bool {
	for _, t := range o.Targets {
		if t.Failed() {
			return true
		}
	}
	return false
}

// Print writes a table with a line for each statement.
func (o *Outcome) Print(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s: %d turns; stale answers that were lost needlessly: %.1f %%\n", o.Workload, o.Turns, 100*o.Total.NeedlessShare()); err != nil {
		return err
	}
	if err := printTallies(w, append(append([]*Tally(nil), o.Statements...), o.Total)); err != nil {
		return err
	}
	for _, t := range o.Targets {
		word := "kept"
		if t.Failed() {
			word = "MISSED"
		}
		if _, err := fmt.Fprintf(w, "%s: %d hits of %d possible, %.1f %%, promised %.0f %%: %s\n", t.Name, t.Hits, t.Ideal, 100*t.HitShare(), 100*t.Least, word); err != nil {
			return err
		}
	}
	return nil
}

// Config says what is counted, and where.
type Config struct {
	Direct, Through string // DSNs
	HTTP            string // the proxy's metrics
	Turns           int    // of each workload
	Rows            int    // of each workload's largest table
	Seed            uint64
	GoTPC           string // the go-tpc program, for Workload "tpcc"
	// DefaultIdentity leaves PostgreSQL's tables with the replica identity they
	// are made with. Its log then has neither what a row was nor which of its
	// columns an update changed; otherwise they are made REPLICA IDENTITY FULL.
	DefaultIdentity bool
}

// Workloads are the names that Run knows.
var Workloads = []string{"sysbench", "sysbench-spread", "blog", "tpcc"}

func (cfg *Config) workload(name string) (*workload, error) {
	t, err := wire.Parse(cfg.Direct)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(cfg.Seed, 11))
	switch name {
	case "sysbench":
		return newSysbench(name, rng, cfg.Rows, special), nil
	case "sysbench-spread":
		return newSysbench(name, rng, cfg.Rows, spread), nil
	case "blog":
		return newBlog(rng, cfg.Rows), nil
	case "tpcc":
		return newTPCC(rng, cfg.GoTPC, t)
	}
	return nil, fmt.Errorf("precision: no workload %q", name)
}

// Run plays one workload: in each turn what it reads, then what it writes, then
// a wait until the feed has passed that.
func Run(ctx context.Context, cfg Config, name string) (out *Outcome, err error) {
	w, err := cfg.workload(name)
	if err != nil {
		return nil, err
	}
	s, err := openStage(ctx, cfg.Direct, cfg.Through)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	defer func() { err = errors.Join(err, w.leave(context.WithoutCancel(ctx), s)) }()
	if err := w.enter(ctx, cfg, s); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c := &counter{tallies: map[string]*Tally{}, last: map[string]string{}}
	if err := c.settle(ctx, s, w); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for turn := range cfg.Turns {
		if err := w.turn(ctx, s, c); err != nil {
			return nil, fmt.Errorf("%s, turn %d: %w", name, turn, err)
		}
	}
	return c.outcome(w, cfg.Turns), nil
}

// enter makes the tables anew.
func (w *workload) enter(ctx context.Context, cfg Config, s *stage) error {
	if err := dropTables(ctx, s, w.tables); err != nil {
		return err
	}
	if err := w.setUp(ctx, s); err != nil {
		return err
	}
	t, err := wire.Parse(cfg.Direct)
	if err != nil || t.Dialect != wire.Postgres || cfg.DefaultIdentity {
		return err
	}
	var script []string
	for _, table := range w.tables {
		script = append(script, "ALTER TABLE "+table+" REPLICA IDENTITY FULL")
	}
	return versus.Exec(ctx, cfg.Direct, script...)
}

// leave drops them.
func (w *workload) leave(ctx context.Context, s *stage) error {
	if w.tearDown != nil {
		if err := w.tearDown(ctx, s); err != nil {
			return err
		}
	}
	return dropTables(ctx, s, w.tables)
}

// dropTables drops tables, the last first.
func dropTables(ctx context.Context, s *stage, names []string) error {
	var script []string
	for i := len(names) - 1; i >= 0; i-- {
		script = append(script, "DROP TABLE IF EXISTS "+names[i])
	}
	return versus.Exec(ctx, s.directDSN, script...)
}

func (w *workload) turn(ctx context.Context, s *stage, c *counter) error {
	for _, q := range w.reads() {
		if err := c.read(s, q); err != nil {
			return err
		}
	}
	if err := w.writes(ctx, s); err != nil {
		return err
	}
	return s.pass(ctx)
}

// counter keeps the last answer to each text and counts.
type counter struct {
	order   []string
	tallies map[string]*Tally
	last    map[string]string
}

func (c *counter) read(s *stage, q read) error {
	answer, o, err := ask(s.through, q.sql)
	if err != nil {
		return err
	}
	before, known := c.last[q.sql]
	c.last[q.sql] = answer
	c.of(q.label).count(o, known, before == answer)
	return nil
}

func (c *counter) of(label string) *Tally {
	t := c.tallies[label]
	if t == nil {
		t = &Tally{Name: label}
		c.tallies[label] = t
		c.order = append(c.order, label)
	}
	return t
}

// settle reads until the feed has taken the tables up: every statement of a
// turn is answered from memory. Nothing of it is counted.
func (c *counter) settle(ctx context.Context, s *stage, w *workload) error {
	reads := w.reads()
	for deadline := time.Now().Add(patience); ; {
		if err := s.pass(ctx); err != nil {
			return err
		}
		var missing string
		for _, q := range reads {
			answer, o, err := ask(s.through, q.sql)
			if err != nil {
				return err
			}
			if c.last[q.sql] = answer; o != hit {
				missing = q.sql
			}
		}
		if missing == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not answered from memory within %s: %s", patience, missing)
		}
	}
}

func (c *counter) outcome(w *workload, turns int) *Outcome {
	out := &Outcome{Workload: w.name, Turns: turns}
	for _, label := range c.order {
		out.Statements = append(out.Statements, c.tallies[label])
	}
	out.Total = sum("all", out.Statements)
	for _, t := range w.targets {
		var of []*Tally
		for _, label := range t.labels {
			of = append(of, c.of(label))
		}
		out.Targets = append(out.Targets, Target{*sum(t.name, of), t.least})
	}
	return out
}

// write runs statements on the server itself, in one transaction if there are
// several.
func write(c *versus.Client, statements ...string) error {
	if len(statements) > 1 {
		statements = append(append([]string{"BEGIN"}, statements...), "COMMIT")
	}
	for _, sql := range statements {
		if _, err := c.Query(sql); err != nil {
			return fmt.Errorf("%.200s: %w", sql, err)
		}
	}
	return nil
}
