package oracle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"freshet/bench/wire"
)

// stage is an empty database or schema with a round's tables in it, and the
// sessions that play there.
type stage struct {
	r      *runner
	writer session // writes to the server itself
	admin  session // changes the server's settings; also direct
	gate   session // through Freshet: knows when the feed has passed a write
	lanes  []*lane
	noise  session // through Freshet: reads while a write is under way
	turn   int     // of the noise in the working set
	raced  []*read // what the noise read for the first time beside the newest write
	slow   []*read // statements that take long
}

// enter makes the stage, with lanes of these numbers.
func (r *runner) enter(ctx context.Context, setup []step, lanes []int) (s *stage, err error) {
	s = &stage{r: r}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := r.clear(ctx); err != nil {
		return nil, err
	}
	for _, c := range []struct {
		to *session
		at wire.Target
	}{{&s.writer, r.direct}, {&s.admin, r.direct}, {&s.gate, r.through}, {&s.noise, r.through}} {
		path := lookPath
		if c.to == &s.writer {
			path = makePath
		}
		if *c.to, err = r.open(ctx, c.at, path); err != nil {
			return s, err
		}
	}
	if r.cfg.Linearizable { // the gate's barrier is the other level's
		if err := s.must(s.gate, "SET freshet.consistency = session"); err != nil {
			return s, err
		}
	}
	if err := s.must(s.writer, "CREATE TABLE gate (id INT PRIMARY KEY, v BIGINT)", "INSERT INTO gate VALUES (0, 0), (1, 0)"); err != nil {
		return s, err
	}
	for _, st := range setup {
		if refusal, err := s.writer.run(st); err != nil {
			return s, err
		} else if refusal != "" && !strings.HasPrefix(st.sql, "INSERT") {
			r.report.refused("set-up", st.sql, refusal)
		}
	}
	for _, n := range lanes {
		l := &lane{stage: s, n: n}
		s.lanes = append(s.lanes, l)
		if err := l.open(ctx); err != nil {
			return s, err
		}
	}
	return s, nil
}

// clear makes the database or schema empty.
func (r *runner) clear(ctx context.Context) error {
	if r.direct.Dialect == wire.Postgres {
		return r.once(ctx, dropSchemas, "CREATE SCHEMA "+frontName, "CREATE SCHEMA "+schemaName)
	}
	return r.once(ctx, dropDatabase, "CREATE DATABASE "+schemaName)
}

const (
	dropDatabase = "DROP DATABASE IF EXISTS " + schemaName
	dropSchemas  = "DROP SCHEMA IF EXISTS " + frontName + ", " + schemaName + " CASCADE"
)

// leave takes away what clear made.
func (r *runner) leave(ctx context.Context) error {
	// The caller's context may be the reason why we stop; the tables go anyway.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), opTimeout)
	defer cancel()
	if r.direct.Dialect == wire.Postgres {
		return r.once(ctx, dropSchemas, "DROP ROLE IF EXISTS "+readerName)
	}
	return r.once(ctx, dropDatabase)
}

// once runs statements on a connection of their own.
func (r *runner) once(ctx context.Context, sqls ...string) error {
	t := r.direct
	c, err := dial(ctx, t)
	if err != nil {
		return err
	}
	for _, sql := range sqls {
		refusal, err := c.run(step{sql: sql})
		if err == nil && refusal != "" {
			err = fmt.Errorf("%s: %s", sql, refusal)
		}
		if err != nil {
			return errors.Join(err, c.close())
		}
	}
	return c.close()
}

// PostgreSQL's search paths: of those who look, and of the one who makes tables.
const (
	lookPath = frontName + ", " + schemaName + ", public"
	makePath = schemaName + ", public"
)

// open opens a session in the run's database, or with a search path.
func (r *runner) open(ctx context.Context, t wire.Target, path string) (session, error) {
	if t.Dialect == wire.MySQL {
		return dial(ctx, t.In(schemaName))
	}
	s, err := dial(ctx, t)
	if err != nil {
		return nil, err
	}
	refusal, err := s.run(step{sql: "SET search_path TO " + path})
	if err == nil && refusal != "" {
		err = errors.New(refusal)
	}
	return s, err
}

// must runs statements that are not to be refused.
func (s *stage) must(on session, sqls ...string) error {
	for _, sql := range sqls {
		refusal, err := on.run(step{sql: sql})
		if err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
		if refusal != "" {
			return fmt.Errorf("%s: %s", sql, refusal)
		}
	}
	return nil
}

func (s *stage) close() error {
	var errs []error
	all := []session{s.writer, s.admin, s.gate, s.noise}
	for _, l := range s.lanes {
		all = append(all, l.direct, l.through)
	}
	for _, c := range all {
		if c != nil {
			errs = append(errs, c.close())
		}
	}
	return errors.Join(errs...)
}

// patience is how long the feed may take to pass a write.
const patience = 30 * time.Second

// pass waits until Freshet has proven that it applied everything that was
// readable when pass was called. It writes through Freshet, which raises the
// session's barrier; from then on the session is answered from memory only
// when a probe that began after the write has been applied, or with the very
// answer that it was given last. So it asks for two in turn.
func (s *stage) pass(ctx context.Context) error {
	if err := s.must(s.gate, "UPDATE gate SET v = v + 1 WHERE id = 1"); err != nil {
		return err
	}
	deadline := time.Now().Add(patience)
	for turn := 0; ; turn++ {
		q := &read{sql: fmt.Sprintf("SELECT v FROM gate WHERE id = %d", -(turn % 2))}
		a, where, err := s.gate.ask(q, true)
		if err != nil {
			return err
		}
		if where.fromCache() {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the feed has not passed a write within %s: %s (%s), %s", patience, where.place, where.reason, a.show())
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		time.Sleep(200 * time.Microsecond) // between looks, not instead of one
	}
}

// play warms the working set and then checks it after every write. It returns
// the differences after the first write that made any.
func (s *stage) play(ctx context.Context, sc *script) ([]finding, error) {
	s.slow = sc.slow
	s.deal(sc.reads)
	found, err := s.warm(ctx)
	for i := 0; i < len(sc.writes) && err == nil && len(found) == 0 && !s.r.done(); i++ {
		w := &sc.writes[i]
		noisy := i*37%100 < s.r.cfg.Noise
		if err = s.write(ctx, w, noisy); err == nil {
			found, err = s.check(ctx, i, noisy || len(w.late) > 0)
		}
		if err != nil {
			return found, fmt.Errorf("write %d (%s: %s): %w", i, w.kind, w, err)
		}
		s.r.report.wrote(w)
		if len(found) > 0 || s.r.done() || i == len(sc.writes)-1 {
			err = s.undo(w.undo)
		}
	}
	s.r.report.Rounds++
	return found, err
}

// undo ends what a write left open, which would lock the tables for ever.
func (s *stage) undo(sql string) error {
	if sql == "" {
		return nil
	}
	_, err := s.writer.run(step{sql: sql})
	return err
}

// deal gives each lane its part of the working set. Statements on views are the
// last one's: where Freshet cannot look into a view, the session that read it
// is not answered from memory any more.
func (s *stage) deal(reads []*read) {
	last := len(s.lanes) - 1
	for i, q := range reads {
		l := s.lanes[i%max(1, last)]
		if q.views {
			l = s.lanes[last]
		}
		l.set = append(l.set, &checked{read: q})
	}
}

// warmings bounds the passes over a new working set: the first makes plans,
// the next fill once the feed has taken up the tables.
const warmings = 4

func (s *stage) warm(ctx context.Context) ([]finding, error) {
	for range warmings {
		if err := s.pass(ctx); err != nil {
			return nil, err
		}
		if err := s.each(func(l *lane) error { return l.warm() }); err != nil {
			return nil, err
		}
		if !s.unsettled() {
			break
		}
	}
	return s.check(ctx, -1, true)
}

// each runs f on all lanes side by side.
func (s *stage) each(f func(l *lane) error) error {
	errs := make(chan error, len(s.lanes))
	for _, l := range s.lanes {
		go func() { errs <- f(l) }()
	}
	var all []error
	for range s.lanes {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

func (s *stage) unsettled() bool {
	for _, l := range s.lanes {
		for _, q := range l.set {
			if !q.where.fromCache() && strings.Contains(q.where.reason, "taken up") {
				return true
			}
		}
	}
	return false
}
