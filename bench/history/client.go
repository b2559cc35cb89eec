package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"freshet/bench/wire"
)

// habit is how a client behaves.
type habit struct {
	name   string
	level  Level
	claim  Level // what its reads are checked for, if not the level
	writes int   // in a hundred operations
	// prepared says that its statements are.
	prepared bool
	think    time.Duration // between operations, at most
}

// client makes operations, one after the other, on one connection after the
// other. Its fields are its goroutine's.
type client struct {
	*stage
	habit
	number  int
	rng     *rand.Rand
	conn    *conn
	session int
	ops     []Op
	tally   tally
}

// tally counts what is not in the operations.
type tally struct {
	refused, broken int
	asked, hits     int // reads whose source was asked for, and of those from memory
}

// pause is how long a client waits after an error.
const pause = 20 * time.Millisecond

// live makes operations until ctx ends; the last one is waited for.
func (c *client) live(ctx context.Context) error {
	defer c.hangUp()
	for ctx.Err() == nil {
		if c.conn == nil && !c.connect(ctx) {
			sleep(ctx, pause)
			continue
		}
		key, woken := c.rest(ctx)
		if err := c.act(key, woken); err != nil {
			if !c.failed(err) {
				return fmt.Errorf("client %d (%s): %w", c.number, c.name, err)
			}
			sleep(ctx, pause)
		}
	}
	return nil
}

// failed takes an error in; false says that it is the run's own.
func (c *client) failed(err error) bool {
	if refused(err) {
		c.tally.refused++
		return c.tally.refused <= mostRefused
	}
	c.tally.broken++
	c.hangUp()
	return !errors.Is(err, errNoRow)
}

// mostRefused ends a run in which nothing but refusals comes.
const mostRefused = 20_000

// connect opens a connection. To Freshet it is a session of its own: what was
// promised to the one before ended with it.
func (c *client) connect(ctx context.Context) bool {
	target := c.direct
	if c.level != Direct {
		target = *c.through.Load()
	}
	opened, err := dial(ctx, target)
	if err != nil {
		return false
	}
	c.conn, c.session = opened, int(c.sessions.Add(1))
	if c.level == Direct || c.level == c.cfg.Level {
		return true
	}
	if _, err := opened.ask("SET freshet.consistency = " + string(c.level)); err != nil {
		c.hangUp()
		return false
	}
	return true
}

func (c *client) hangUp() {
	if c.conn == nil {
		return
	}
	if err := c.conn.net.Close(); err != nil {
		c.tally.broken++
	}
	c.conn = nil
}

// act makes an operation on the key, or only reads it; after every other write
// of its own it reads at once.
func (c *client) act(key int64, onlyRead bool) error {
	if onlyRead || c.rng.IntN(100) >= c.writes {
		return c.read(key)
	}
	if err := c.write(key); err != nil || c.rng.IntN(2) == 0 {
		return err
	}
	return c.read(key)
}

// rest lets time pass and says what key is next. Every other time it is ended by
// somebody's write, once that has returned: its key is to be read then, which is
// when an answer from before would be wrong.
func (c *client) rest(ctx context.Context) (key int64, woken bool) {
	next := c.written
	if c.rng.IntN(2) == 0 {
		next = nil // for ever
	}
	t := time.NewTimer(time.Duration(c.rng.Int64N(int64(c.think))))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case key := <-next:
		return key, true
	}
	return int64(c.rng.IntN(c.cfg.Keys)), false
}

// write writes a value that nobody wrote before, sometimes in a transaction of
// its own. Whatever error there is, the write may have happened, or happen yet.
func (c *client) write(key int64) error {
	op := c.op()
	op.Write, op.Open, op.Key, op.Value = true, true, int(key), c.values.Add(1)
	const update = "UPDATE registers SET v = ?, n = n + 1 WHERE k = ?"
	block := c.rng.IntN(5) == 0
	op.Call = c.now()
	var err error
	if block {
		_, err = c.conn.ask("BEGIN")
	}
	if err == nil {
		_, err = c.conn.numbers(c.prepared, update, op.Value, key)
	}
	if err == nil && block {
		_, err = c.conn.ask("COMMIT")
	}
	op.Return, op.Open = c.now(), err != nil
	c.ops = append(c.ops, op)
	if err != nil && block {
		c.hangUp() // and with it, the transaction
	}
	for range 2 {
		select {
		case c.written <- key:
		default: // nobody waits for it
		}
	}
	return err
}

// read reads one key, or two.
func (c *client) read(key int64) error {
	where, args := "k = ?", []int64{key}
	switch c.rng.IntN(10) {
	case 0:
		where, args = "k BETWEEN ? AND ?", []int64{key, key + 1}
	case 1:
		where, args = "k IN (?, ?)", []int64{key, int64(c.rng.IntN(c.cfg.Keys))}
	}
	sql := "SELECT k, v, n FROM registers WHERE " + where
	op := c.op()
	op.How = filled(where, args)
	if c.prepared {
		op.How += ", prepared"
	}
	op.Call = c.now()
	rows, err := c.conn.numbers(c.prepared, sql, args...)
	op.Return = c.now()
	if err != nil {
		return err // nothing was told, so nothing has to be right
	}
	if len(rows) == 0 {
		return fmt.Errorf("%s %v: %w", sql, args, errNoRow)
	}
	if c.level != Direct && c.rng.IntN(2) == 0 {
		if op.Hit, err = c.conn.fromMemory(); err == nil {
			c.asked(op.Hit)
		}
	}
	for _, row := range rows {
		op.Key, op.Value, op.Version = int(row[0]), row[1], row[2]
		c.ops = append(c.ops, op)
	}
	return err
}

func (c *client) asked(hit bool) {
	c.tally.asked++
	if !hit {
		return
	}
	c.tally.hits++
	if c.level == c.cfg.Level {
		c.hits.Add(1)
	}
}

func (c *client) op() Op {
	level := c.level
	if c.claim != "" {
		level = c.claim
	}
	return Op{Client: c.number, Session: c.session, Level: level}
}

// shared is what clients have in common.
type shared struct {
	direct   wire.Target
	through  atomic.Pointer[wire.Target] // another one after each restart of Freshet
	started  time.Time
	values   atomic.Int64
	written  chan int64 // keys whose write has just returned, for those who wait
	sessions atomic.Int64
	hits     atomic.Int64 // seen so far by those at the run's level
}

// now is the run's clock.
func (s *shared) now() int64 { return int64(time.Since(s.started)) }

// sleep waits, and tells whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
	return ctx.Err() == nil
}
