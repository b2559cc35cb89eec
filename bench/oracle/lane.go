package oracle

import (
	"context"
	"fmt"
	"hash/maphash"
)

// lane is a pair of sessions with the same settings, one direct and one
// through Freshet, and its part of the working set.
type lane struct {
	stage           *stage
	n               int
	direct, through session
	set             []*checked
	found           []finding
	tally           tally
}

// checked is a statement of the working set with what the last check saw.
type checked struct {
	*read
	sum   uint64 // of the server's last answer
	kept  bool   // the last answer came from memory or was stored
	where source
}

// finding is a difference.
type finding struct {
	q           *checked
	write       int // -1: before the first
	where       source
	what        string
	direct      answer
	through     answer
	again       string // the difference when both were asked once more; "" for none
	lane        int
	laneSetting string
}

// open connects both sessions.
func (l *lane) open(ctx context.Context) (err error) {
	r := l.stage.r
	if l.direct, err = r.open(ctx, r.direct, lookPath); err != nil {
		return err
	}
	if l.through, err = r.open(ctx, r.through, lookPath); err != nil {
		return err
	}
	return l.settings()
}

// settings makes lanes differ: their answers may not be mixed up. Only direct
// answers of the same lane are compared with.
func (l *lane) settings() error {
	sql := l.setting()
	if sql == "" {
		return nil
	}
	if err := l.stage.must(l.direct, sql); err != nil {
		return err
	}
	return l.stage.must(l.through, sql)
}

func (l *lane) setting() string {
	mysql := l.stage.r.d.mysql
	if l.n > 0 && l.stage.r.cfg.Focus == "policies" {
		return "SET ROLE " + readerName
	}
	switch l.n % 4 {
	case 1:
		if mysql {
			return "SET time_zone = '+05:30'"
		}
		return "SET TimeZone = 'Asia/Kolkata'"
	case 2:
		if mysql {
			return "SET sql_mode = ''"
		}
		return "SET DateStyle = 'German, DMY'"
	case 3:
		if !mysql {
			return "SET ROLE " + readerName
		}
	}
	return ""
}

// warm reads the set through Freshet only.
func (l *lane) warm() error {
	for _, q := range l.set {
		a, where, err := l.through.ask(q.read, true)
		if err == nil && a.refusal != "" {
			err = l.through.forget(q.read) // as check does
		}
		if err != nil {
			return fmt.Errorf("through: %s: %w", q, err)
		}
		q.where = where
	}
	return nil
}

var hashSeed = maphash.MakeSeed()

// sum tells answers apart, whatever the order of rows.
func (a *answer) sum(ordered bool) uint64 {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	write := func(b []byte) {
		if _, err := h.Write(b); err != nil {
			panic(err) // maphash never fails
		}
		if err := h.WriteByte(0); err != nil {
			panic(err)
		}
	}
	write([]byte(a.refusal))
	write(a.head)
	rows := a.rows
	if !ordered {
		rows = sorted(rows)
	}
	for _, row := range rows {
		write(row)
	}
	return h.Sum64()
}

// check compares the whole set, and what else there is to check once.
func (l *lane) check(ctx context.Context, write int, once []*checked) error {
	for _, q := range append(once, l.set...) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.one(q, write); err != nil {
			return err
		}
	}
	return nil
}

// both asks one statement on both sides at the same time: they share nothing.
func (l *lane) both(q *read) (direct, through answer, where source, err error) {
	type reply struct {
		a   answer
		err error
	}
	done := make(chan reply, 1)
	go func() {
		a, _, err := l.direct.ask(q, false)
		done <- reply{a, err}
	}()
	through, where, err = l.through.ask(q, true)
	d := <-done
	if d.err != nil {
		return d.a, through, where, fmt.Errorf("direct: %s: %w", q, d.err)
	}
	if err != nil {
		err = fmt.Errorf("through: %s: %w", q, err)
	}
	return d.a, through, where, err
}

func (l *lane) one(q *checked, write int) error {
	direct, through, where, err := l.both(q.read)
	if err != nil {
		return err
	}
	if (direct.refusal != "" || through.refusal != "") && q.how != asText {
		// What a session prepared before a definition changed is its own affair:
		// a refusal on either side ends that statement on both.
		if err := l.forget(q.read); err != nil {
			return err
		}
		if direct.refusal == staleDescription || through.refusal == staleDescription {
			if direct, through, where, err = l.both(q.read); err != nil {
				return err
			}
		}
	}
	sum := direct.sum(q.ordered)
	l.tally.count(q, where, sum)
	q.sum, q.where = sum, where
	q.kept = where.fromCache() || where.place == "fill"
	what := difference(&direct, &through, q.ordered)
	if what == "" {
		return nil
	}
	if where.twoWays() {
		l.tally.fickle++
		return nil
	}
	if fickle, err := l.fickle(q.read, &through); err != nil || fickle {
		l.tally.fickle++
		return err
	}
	f := finding{q: q, write: write, where: where, what: what, direct: direct, through: through, lane: l.n, laneSetting: l.setting()}
	if direct, through, _, err = l.both(q.read); err != nil {
		return err
	}
	f.again = difference(&direct, &through, q.ordered)
	l.found = append(l.found, f)
	return nil
}

// prepareAgain lets go of all prepared statements.
func (l *lane) prepareAgain() error {
	for _, q := range l.set {
		if q.how == asText {
			continue
		}
		if err := l.forget(q.read); err != nil {
			return err
		}
	}
	return nil
}

// fickle tells whether the server itself gives the answer that came through once
// it prepares the statement anew. MariaDB's answers to a statement with
// subqueries can change with how often it was run since it was prepared; which
// of them is right is not for Freshet to say.
func (l *lane) fickle(q *read, through *answer) (bool, error) {
	if q.how == asText || !l.stage.r.d.maria {
		return false, nil
	}
	if err := l.direct.forget(q); err != nil {
		return false, err
	}
	direct, _, err := l.direct.ask(q, false)
	return err == nil && difference(&direct, through, q.ordered) == "", err
}

func (l *lane) forget(q *read) error {
	if err := l.direct.forget(q); err != nil {
		return err
	}
	return l.through.forget(q)
}

// check compares the working set on all lanes and adds up what they saw.
// After noise, what was lost may have been filled again: that says nothing of
// needless losses.
func (s *stage) check(ctx context.Context, write int, noisy bool) ([]finding, error) {
	if noisy {
		for _, l := range s.lanes {
			for _, q := range l.set {
				q.kept = false
			}
		}
	}
	once := make(map[*lane][]*checked)
	for i, q := range s.raced {
		l := s.lanes[i%len(s.lanes)]
		once[l] = append(once[l], &checked{read: q})
	}
	s.raced = nil
	err := s.each(func(l *lane) error { return l.check(ctx, write, once[l]) })
	var found []finding
	for _, l := range s.lanes {
		found = append(found, l.found...)
		s.r.report.add(&l.tally)
		l.found, l.tally = nil, tally{}
	}
	return found, err
}
