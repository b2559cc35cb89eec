package fresh

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"freshet/bench/wire"
)

// stream is a bare client of a server's change stream: it reads what comes,
// decodes nothing, and notes when the transaction came that writes an expected
// value. One goroutine reads, another expects.
type stream struct {
	expected atomic.Int64   // 0: none
	seen     chan time.Time // when the transaction with it had come
	ended    chan error     // one error, when the stream is over
	hangUp   func() error
	found    bool // the reader's: the expected value is in the transaction being read
}

// streamPatience bounds the wait for a transaction.
const streamPatience = 30 * time.Second

// openStream follows everything that is committed from now on. tables is what
// a publication must name.
func openStream(ctx context.Context, dsn string, tables ...string) (*stream, error) {
	t, err := wire.Parse(dsn)
	if err != nil {
		return nil, err
	}
	s := &stream{seen: make(chan time.Time, 1), ended: make(chan error, 1)}
	if t.Dialect == wire.MySQL {
		err = s.openMySQL(ctx, t)
	} else {
		err = s.openPostgres(ctx, t, tables)
	}
	return s, err
}

// expect says what value the next commit writes.
func (s *stream) expect(value int64) {
	select {
	case <-s.seen:
	default:
	}
	s.expected.Store(value)
}

// changed takes the change of a row: holds tells whether a value is in it.
func (s *stream) changed(holds func(value int64) bool) {
	if v := s.expected.Load(); v != 0 && !s.found && holds(v) {
		s.found = true
	}
}

// committed takes the end of a transaction.
func (s *stream) committed() {
	if !s.found {
		return
	}
	s.found = false
	s.expected.Store(0)
	select {
	case s.seen <- time.Now():
	default: // nobody looked at the last one
	}
}

// await returns when the expected value's transaction had come.
func (s *stream) await(ctx context.Context) (time.Time, error) {
	select {
	case at := <-s.seen:
		return at, nil
	case err := <-s.ended:
		return time.Time{}, fmt.Errorf("the bare stream has ended: %w", err)
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	case <-time.After(streamPatience):
		return time.Time{}, fmt.Errorf("the bare stream has not shown a commit within %s", streamPatience)
	}
}

// close ends the stream.
func (s *stream) close() error { return s.hangUp() }
