package oracle

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"freshet/bench/upstream"
	"freshet/bench/wire"
)

// write runs a write on the server itself and waits until the feed has passed
// it. With noise, the working set is read through Freshet all the while: fills
// then begin before, between and after the write's commit and its application.
func (s *stage) write(ctx context.Context, w *write, noisy bool) error {
	work := func() error {
		if err := s.perform(ctx, w); err != nil || s.r.atOnce(w) {
			return err
		}
		return s.pass(ctx)
	}
	if w.renames() {
		return errors.Join(work(), s.each((*lane).prepareAgain))
	}
	if len(w.late) > 0 {
		s.addLate(w.late)
		return work()
	}
	if noisy {
		return s.during(s.noisySet(), work)
	}
	return work()
}

// atOnce tells whether a write must be seen as soon as it has returned.
// PostgreSQL says nothing of definitions in the stream that it waits for.
func (r *runner) atOnce(w *write) bool {
	return r.cfg.Linearizable && (r.d.mysql || w.kind != "ddl")
}

// noisySet are the statements that are read beside a write. On MySQL and MariaDB
// reading a view would spoil the session.
func (s *stage) noisySet() []*read {
	var set []*read
	for _, l := range s.lanes {
		for _, q := range l.set {
			if !q.views {
				set = append(set, q.read)
			}
		}
	}
	return set
}

// addLate puts statements into the working set.
func (s *stage) addLate(late []*read) {
	for _, q := range late {
		l := s.lanes[0]
		l.set = append(l.set, &checked{read: q})
	}
}

func (s *stage) perform(ctx context.Context, w *write) error {
	if len(w.late) > 0 {
		release, err := s.hold(ctx)
		if err != nil {
			return err
		}
		return s.held(w, release)
	}
	for _, st := range w.steps {
		if err := s.step(w, st); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) step(w *write, st step) error {
	s.r.report.Statements++
	refusal, err := s.writer.run(st)
	if err != nil {
		return fmt.Errorf("%s: %w", st.sql, err)
	}
	if refusal != "" {
		s.r.report.refused(w.kind, st.sql, refusal)
	}
	return nil
}

// maxRaced bounds the statements that were first read beside one write and are
// checked after it.
const maxRaced = 24

// during reads through Freshet, one statement after the other, while work runs.
// Statements in text are mostly read as if they were new: what fills while rows
// change must not be kept with the old ones in it. Those are checked once, with
// the others. The first is one that takes long, begun before work is.
func (s *stage) during(set []*read, work func() error) error {
	if len(s.slow) > 0 {
		s.turn++
		set = append([]*read{s.slow[s.turn%len(s.slow)]}, set...)
	}
	var stop atomic.Bool
	begun, done := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		close(begun)
		for i := 0; err == nil && !stop.Load(); i++ {
			at := 0
			if i > 0 {
				s.turn++
				at = s.turn % len(set)
			}
			err = s.disturb(set[at])
		}
		done <- err
	}()
	<-begun
	err := work()
	stop.Store(true)
	return errors.Join(err, <-done)
}

// disturb makes one read of the noise.
func (s *stage) disturb(q *read) error {
	if q.kind == "slow" || q.how == asText && s.turn%4 < 3 {
		fresh := *q
		fresh.kind = "raced"
		s.r.fresh++
		fresh.sql += fmt.Sprintf(" /* %d */", s.r.fresh)
		q = &fresh
		if s.raced = append(s.raced, q); len(s.raced) > maxRaced {
			s.raced = s.raced[1:]
		}
	}
	a, _, err := s.noise.ask(q, false)
	if err == nil && a.refusal != "" {
		err = s.noise.forget(q)
	}
	if err != nil {
		return fmt.Errorf("noise: %s: %w", q, err)
	}
	return nil
}

// A commit is held for gapLength between the log and its being readable. Whoever
// follows the log has it after settleLength, as a rule; only then are the late
// statements read, so that nobody depended on their rows when the change came.
const (
	settleLength = 20 * time.Millisecond
	gapLength    = 50 * time.Millisecond
)

// held commits the write while commits are held back, reads the late statements
// meanwhile, and lets go after a while.
func (s *stage) held(w *write, release func() error) error {
	done := make(chan error, 1)
	go func() {
		for _, st := range w.steps {
			if err := s.step(w, st); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	begun := time.Now()
	time.Sleep(settleLength) // the gap is a span of time; nothing is waited for
	var err error
	for i := 0; err == nil && (i < len(w.late) || time.Since(begun) < gapLength); i++ {
		s.turn++
		err = s.disturb(w.late[i%len(w.late)])
	}
	return errors.Join(err, release(), <-done)
}

// prepareGaps makes the server ready to hold commits back; where it cannot,
// there are no gaps.
func (r *runner) prepareGaps(ctx context.Context) error {
	if r.cfg.Gaps == 0 || r.cfg.Kind != upstream.MySQL {
		return nil
	}
	c, err := dial(ctx, r.direct)
	if err != nil {
		return err
	}
	refusal, err := c.run(step{sql: "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'"})
	if refusal != "" && refusal[:4] != "1125" && refusal[:4] != "1968" { // it is there already
		r.cfg.Gaps = 0
	}
	return errors.Join(err, c.close())
}

// hold makes commits wait for an acknowledgement that nobody gives: they are in
// the log and cannot be read. release lets them go.
func (s *stage) hold(ctx context.Context) (release func() error, err error) {
	var on []string
	var off []string
	switch {
	case s.r.direct.Dialect == wire.Postgres:
		on = []string{"ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()"}
		off = []string{"ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()"}
	case s.r.d.maria:
		on = []string{"SET GLOBAL rpl_semi_sync_master_timeout = 60000", "SET GLOBAL rpl_semi_sync_master_wait_no_slave = ON",
			"SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC'", "SET GLOBAL rpl_semi_sync_master_enabled = ON"}
		off = []string{"SET GLOBAL rpl_semi_sync_master_enabled = OFF"}
	default:
		on = []string{"SET GLOBAL rpl_semi_sync_source_timeout = 60000", "SET GLOBAL rpl_semi_sync_source_wait_no_replica = ON",
			"SET GLOBAL rpl_semi_sync_source_enabled = ON"}
		off = []string{"SET GLOBAL rpl_semi_sync_source_enabled = OFF"}
	}
	release = func() error { return s.must(s.admin, off...) }
	if err := s.must(s.admin, on...); err != nil {
		return release, errors.Join(err, release())
	}
	if s.r.direct.Dialect == wire.Postgres {
		err = s.awaitSetting(ctx)
	}
	return release, err
}

// awaitSetting waits until the writer's session has taken the new settings.
func (s *stage) awaitSetting(ctx context.Context) error {
	deadline := time.Now().Add(patience)
	for {
		a, _, err := s.writer.ask(&read{sql: "SHOW synchronous_standby_names"}, false)
		if err != nil {
			return err
		}
		if len(a.rows) == 1 && len(a.rows[0]) > 6 {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("the server does not take synchronous_standby_names")
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		time.Sleep(time.Millisecond) // between looks
	}
}

// gap draws a write whose commit is held back, with statements on its row that
// nobody read before.
func (g *gen) gap() {
	t := g.anyBase()
	if t.parted || t.inherits != nil {
		return
	}
	c := g.assignable(t)
	n, value := g.someN(t), g.value(c)
	w := write{kind: "gap", steps: one("UPDATE %s SET %s = %s WHERE n = %s", t.name, c.name, value, n)}
	for _, where := range []string{"n = " + n, "n = " + n + " AND u IS NOT NULL", "n IN (" + n + ", -5)"} {
		w.late = append(w.late, &read{kind: "late", sql: fmt.Sprintf("SELECT n, %s FROM %s WHERE %s", c.name, t.name, where)})
	}
	g.out.writes = append(g.out.writes, w)
}
