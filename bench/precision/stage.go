package precision

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"freshet/bench/versus"
)

// stage is a proxy and the server behind it, with the sessions that play there.
type stage struct {
	directDSN, throughDSN string

	direct  *versus.Client // writes
	through *versus.Client // reads
	gate    *versus.Client // through the proxy: knows when the feed has passed
	extend  time.Time      // when the sessions' lives are next prolonged
}

const (
	// gateTable is what passing is told by.
	gateTable = "freshet_bench_gate"
	// patience bounds a wait for the feed.
	patience = 30 * time.Second
	// extendEvery is well within the life that versus gives a session.
	extendEvery = 20 * time.Second
)

func openStage(ctx context.Context, direct, through string) (s *stage, err error) {
	s = &stage{directDSN: direct, throughDSN: through}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := versus.Exec(ctx, direct, "DROP TABLE IF EXISTS "+gateTable,
		"CREATE TABLE "+gateTable+" (id INT PRIMARY KEY, v BIGINT NOT NULL)", "INSERT INTO "+gateTable+" VALUES (0, 0), (1, 0)"); err != nil {
		return s, err
	}
	for _, c := range []struct {
		to  **versus.Client
		dsn string
	}{{&s.direct, direct}, {&s.through, through}, {&s.gate, through}} {
		if *c.to, err = versus.Dial(ctx, c.dsn); err != nil {
			return s, err
		}
	}
	// What is counted is which answers changes cost. At session level, answers
	// wait for the feed after each that came from the server, and not for ever.
	_, err = s.through.Query("SET freshet.consistency = bounded")
	return s, err
}

func (s *stage) close() error {
	var errs []error
	for _, c := range []*versus.Client{s.direct, s.through, s.gate} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	errs = append(errs, versus.Exec(ctx, s.directDSN, "DROP TABLE IF EXISTS "+gateTable))
	return errors.Join(errs...)
}

// live prolongs the sessions' lives now and then.
func (s *stage) live() error {
	now := time.Now()
	if now.Before(s.extend) {
		return nil
	}
	s.extend = now.Add(extendEvery)
	return errors.Join(s.direct.Extend(), s.through.Extend(), s.gate.Extend())
}

// pass waits until the feed has applied everything that was readable when it
// was called. It writes through the proxy, which raises its session's barrier:
// from then on the session is answered from memory only when a probe that began
// after the write has been applied, or with the very answer that it was given
// last. So it asks for two in turn.
func (s *stage) pass(ctx context.Context) error {
	if err := s.live(); err != nil {
		return err
	}
	if _, err := s.gate.Query("UPDATE " + gateTable + " SET v = v + 1 WHERE id = 1"); err != nil {
		return err
	}
	deadline := time.Now().Add(patience)
	for turn := 0; ; turn++ {
		_, o, err := ask(s.gate, fmt.Sprintf("SELECT v FROM %s WHERE id = %d", gateTable, -(turn%2)))
		if err != nil {
			return err
		}
		if o == hit {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the feed has not passed a write within %s", patience)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// outcome is where an answer came from.
type outcome uint8

const (
	hit       outcome = iota
	cold              // there was no answer in memory
	stale             // there was one, out of date
	forwarded         // the answer is not kept
	outcomes
)

// The words of EXPLAIN LAST STATEMENT.
const (
	saysCache = "cache"
	saysFill  = "fill"
	saysStale = "the entry was out of date"
)

// ask runs a statement and finds out where its answer came from. Two answers
// are equal exactly when their texts are.
func ask(c *versus.Client, sql string) (answer string, o outcome, err error) {
	rows, err := c.Query(sql)
	if err != nil {
		return "", 0, fmt.Errorf("%.200s: %w", sql, err)
	}
	said, err := c.Query("EXPLAIN LAST STATEMENT")
	if err != nil {
		return "", 0, err
	}
	if len(said) != 1 || len(said[0]) != 2 {
		return "", 0, errors.New("EXPLAIN LAST STATEMENT: want one row of destination and reason; is this Freshet?")
	}
	switch destination, reason := string(said[0][0]), string(said[0][1]); {
	case strings.HasPrefix(destination, saysCache):
		o = hit
	case destination != saysFill:
		o = forwarded
	case reason == saysStale:
		o = stale
	default:
		o = cold
	}
	return text(rows), o, nil
}

// text writes rows in one way only: each value after its length, NULL with none.
func text(rows [][][]byte) string {
	var b strings.Builder
	for _, row := range rows {
		for _, v := range row {
			if v == nil {
				b.WriteString("- ")
				continue
			}
			fmt.Fprintf(&b, "%d:%s ", len(v), v)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
