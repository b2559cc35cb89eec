package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"freshet/bench/rig"
	"freshet/bench/upstream"
	"freshet/bench/wire"
)

// Config says what to record.
type Config struct {
	Server  *upstream.Server // started with ServerSettings; stays its owner's
	Program string           // freshet
	Level   Level            // what Freshet is served at
	// Claim is what clients at Level are checked for, if not for that.
	Claim Level
	// Staleness is the bound that Freshet is given; Bound the one that answers
	// are checked for, if not that.
	Staleness, Bound time.Duration
	For              time.Duration // 0: until there was one fault of each kind
	Longest          time.Duration // of a fault; 0: 1.5 s
	Seed             uint64
	Keys             int // 0: 10

	only []fault // nil: all
	crew []habit // nil: see habits
}

func (c *Config) faults() []fault {
	if c.only != nil {
		return c.only
	}
	return allFaults
}

// habits are the clients. The idle ones have statements on their way at every
// moment of a fault, not at its beginning alone.
func (c *Config) habits() []habit {
	if c.crew != nil {
		return c.crew
	}
	const busy, idle = 4 * time.Millisecond, 300 * time.Millisecond
	at := habit{name: "busy", level: c.Level, writes: 8, think: busy}
	slow := habit{name: "idle", level: c.Level, writes: 2, think: idle}
	prepared := at
	prepared.prepared = true
	out := []habit{at, at, prepared, slow, slow, slow, slow,
		{name: "writer past Freshet", level: Direct, writes: 100, think: 60 * time.Millisecond},
		{name: "writer past Freshet", level: Direct, writes: 100, think: 60 * time.Millisecond},
		{name: "reader past Freshet", level: Direct, writes: 5, think: 10 * time.Millisecond}}
	if c.Level == Linearizable {
		out = append(out, habit{name: "busy", level: Session, writes: 10, think: busy, prepared: true})
	}
	if c.Level != Bounded {
		out = append(out, habit{name: "busy", level: Bounded, writes: 5, think: busy})
	}
	return out
}

// stage is a run: a server, a relay before it, a Freshet before that.
type stage struct {
	shared
	cfg      Config
	server   *upstream.Server
	relay    *relay
	proxy    *rig.Proxy
	report   *Report
	happened []happened // by the goroutine that makes faults
}

// Run records a history and checks it. The error is about the run itself; what
// it found is in the report.
func Run(ctx context.Context, cfg Config) (Report, error) {
	cfg.Keys, cfg.Longest = cmp.Or(cfg.Keys, 10), cmp.Or(cfg.Longest, 1500*time.Millisecond)
	cfg.Staleness = cmp.Or(cfg.Staleness, time.Second)
	cfg.Bound = cmp.Or(cfg.Bound, cfg.Staleness)
	s := &stage{cfg: cfg, server: cfg.Server, report: &Report{Config: cfg, Faults: make(map[string]recovery), Hits: make(map[Level]int), Asked: make(map[Level]int)}}
	err := s.open(ctx)
	if err == nil {
		err = s.play(ctx)
	}
	return *s.report, errors.Join(err, s.close())
}

// ServerSettings make MySQL and MariaDB hold their commits, and give up after a
// second and a half, so that faults last longer than that.
func ServerSettings(kind upstream.Kind, level Level) (out []string) {
	switch {
	case level != Linearizable:
	case kind == upstream.MySQL:
		out = []string{"plugin-load-add=semisync_source.so", "rpl_semi_sync_source_enabled=ON", "rpl_semi_sync_source_timeout=1500"}
	case kind == upstream.MariaDB, kind == upstream.MariaDB11:
		out = []string{"rpl_semi_sync_master_enabled=ON", "rpl_semi_sync_master_wait_point=AFTER_SYNC", "rpl_semi_sync_master_timeout=1500"}
	}
	return out
}

func (s *stage) open(ctx context.Context) (err error) {
	if s.direct, err = wire.Parse(s.server.DSN()); err != nil {
		return err
	}
	if s.relay, err = newRelay(s.server.Address()); err != nil {
		return err
	}
	if err := s.once(ctx, s.tables()...); err != nil {
		return err
	}
	if err := s.openProxy(ctx); err != nil {
		return err
	}
	if s.cfg.Level == Linearizable && s.server.Dialect == upstream.DialectPostgres {
		// Not before: without a standby every commit would wait.
		return s.once(ctx, "ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (freshet)'", "SELECT pg_reload_conf()")
	}
	return nil
}

// openProxy starts a Freshet and tells the clients where it is.
func (s *stage) openProxy(ctx context.Context) (err error) {
	behind := s.direct.At("127.0.0.1", s.relay.address().Port).DSN()
	s.proxy, err = rig.StartProxy(ctx, s.cfg.Program, behind, -1,
		"--consistency", string(s.cfg.Level), "--max-staleness", s.cfg.Staleness.String(), "--memory", "64MiB", "--log-level", "warn")
	if err != nil {
		return err
	}
	dsn, err := s.proxy.DSN(s.server.DSN())
	if err != nil {
		return err
	}
	t, err := wire.Parse(dsn)
	s.through.Store(&t)
	return err
}

// tables are the registers, and the log of what was committed: see commits.
func (s *stage) tables() []string {
	out := []string{
		"CREATE TABLE registers (k BIGINT PRIMARY KEY, v BIGINT NOT NULL, n BIGINT NOT NULL)",
		"CREATE TABLE committed (k BIGINT, n BIGINT, v BIGINT NOT NULL, PRIMARY KEY (k, n))",
	}
	if s.server.Dialect == upstream.DialectMySQL {
		out = append(out, "CREATE TRIGGER logged AFTER UPDATE ON registers FOR EACH ROW INSERT INTO committed VALUES (NEW.k, NEW.n, NEW.v)")
	} else {
		out = append(out,
			"CREATE FUNCTION log_it() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO committed VALUES (NEW.k, NEW.n, NEW.v); RETURN NEW; END'",
			"CREATE TRIGGER logged AFTER UPDATE ON registers FOR EACH ROW EXECUTE FUNCTION log_it()")
	}
	var rows []string
	for k := range s.cfg.Keys {
		rows = append(rows, fmt.Sprintf("(%d, 0, 0)", k))
	}
	return append(out, "INSERT INTO registers VALUES "+strings.Join(rows, ", "))
}

// once runs statements on the server itself.
func (s *stage) once(ctx context.Context, sqls ...string) error {
	c, err := dial(ctx, s.direct)
	if err != nil {
		return err
	}
	for _, sql := range sqls {
		if _, err := c.ask(sql); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", sql, err), c.Close())
		}
	}
	return c.Close()
}

// play lets the clients live while faults happen, then checks.
func (s *stage) play(ctx context.Context) error {
	s.started, s.written = time.Now(), make(chan int64)
	var clients []*client
	for i, h := range s.cfg.habits() {
		clients = append(clients, &client{stage: s, habit: h, number: i, rng: rand.New(rand.NewPCG(s.cfg.Seed, uint64(i+1)))})
	}
	living, end := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	errs := make([]error, len(clients))
	for i, c := range clients {
		running.Go(func() {
			if errs[i] = c.live(living); errs[i] != nil {
				end(errs[i])
			}
		})
	}
	err := s.trouble(living, rand.New(rand.NewPCG(s.cfg.Seed, 0)))
	end(nil)
	running.Wait()
	s.report.Took = time.Since(s.started)
	// A run that ended early has a history all the same.
	return errors.Join(err, errors.Join(errs...), s.judge(ctx, clients))
}

// judge collects what the clients saw and checks it.
func (s *stage) judge(ctx context.Context, clients []*client) error {
	log, last, err := s.readLog(ctx)
	if err != nil {
		return err
	}
	var ops []Op
	for _, c := range clients {
		ops = append(ops, c.ops...)
		s.report.add(c)
	}
	ops = append(ops, last...)
	s.report.count(ops)
	begun := time.Now()
	found, err := Check(ops, log, s.cfg.Bound)
	s.report.Checking = time.Since(begun)
	slices.SortFunc(found, func(a, b Violation) int { return cmp.Compare(a.Key, b.Key) })
	s.report.Violations, s.report.happened = found, s.happened
	return err
}

// readLog reads the order of commits, and every register once more, past
// Freshet.
func (s *stage) readLog(ctx context.Context) (log commits, last []Op, err error) {
	c, err := dial(ctx, s.direct)
	if err != nil {
		return nil, nil, err
	}
	call := s.now()
	rows, err := c.numbers(false, "SELECT k, v, n FROM registers")
	for _, row := range rows {
		last = append(last, Op{Client: -1, Level: Direct, Key: int(row[0]), Value: row[1], Version: row[2], Call: call, Return: s.now()})
	}
	log = make(commits)
	if err == nil {
		rows, err = c.numbers(false, "SELECT k, v, n FROM committed")
	}
	for _, row := range rows {
		if log[int(row[0])] == nil {
			log[int(row[0])] = make(map[int64]int64)
		}
		log[int(row[0])][row[1]] = row[2]
	}
	return log, last, errors.Join(err, c.Close())
}

// status is what Freshet says of itself, for a report.
func (s *stage) status(ctx context.Context) string {
	c, err := dial(context.WithoutCancel(ctx), *s.through.Load())
	if err != nil {
		return err.Error()
	}
	rows, err := c.ask("SHOW FRESHET STATUS")
	if err = errors.Join(err, c.Close()); err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, row := range rows {
		for _, cell := range row {
			fmt.Fprintf(&b, "%s ", cell)
		}
		b.WriteString("; ")
	}
	return b.String()
}

func (s *stage) close() error {
	var errs []error
	if s.proxy != nil {
		errs = append(errs, s.proxy.Stop())
	}
	if s.relay != nil {
		errs = append(errs, s.relay.close())
	}
	return errors.Join(errs...)
}

var errNoRow = errors.New("a row that is always there was not found")
