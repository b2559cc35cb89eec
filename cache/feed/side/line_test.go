package side

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// patience bounds every wait of the tests.
const patience = 10 * time.Second

// conn is a connection whose state nobody guards, as the libraries' is: the
// race detector sees whoever touches it out of turn. Only cut is safe.
type conn struct {
	server string
	calls  int
	closed bool
	cut    chan struct{}
	once   sync.Once
}

// hang waits until the connection is interrupted.
func (c *conn) hang() error {
	c.calls++
	select {
	case <-c.cut:
		return errCut
	case <-time.After(patience):
		return errors.New("nobody interrupted the line")
	}
}

var (
	errCut    = errors.New("use of closed connection")
	errBroken = errors.New("connection reset")
	errAnswer = errors.New("no such table")
	errFatal  = errors.New("transaction left open")
)

// rig is a line and the server that it reaches.
type rig struct {
	t      *testing.T
	line   *Line[*conn]
	mu     sync.Mutex
	server string // that a dial reaches
	want   string
	conns  []*conn
	told   []string
	dial   func(context.Context) error // before a dial succeeds
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, server: "a", dial: func(context.Context) error { return nil }}
	r.line = New(Kind[*conn]{
		Dial: func(ctx context.Context) (*conn, string, error) {
			if err := r.dial(ctx); err != nil {
				return nil, "", err
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			c := &conn{server: r.server, cut: make(chan struct{})}
			r.conns = append(r.conns, c)
			return c, c.server, nil
		},
		Server: func() string { r.mu.Lock(); defer r.mu.Unlock(); return r.want },
		Elsewhere: func(server string) error {
			r.told = append(r.told, server)
			return errors.New("another server: " + server)
		},
		Judge: func(c *conn, err error) Fate {
			c.calls++
			switch err {
			case errAnswer:
				return Keep
			case errFatal:
				return Drop
			}
			return Broken
		},
		Interrupt: func(c *conn) {
			c.once.Do(func() { close(c.cut) })
			runtime.Gosched() // the user runs on, and must not be able to close
			if c.closed {
				t.Error("a closed connection was interrupted")
			}
		},
		Close: func(c *conn) {
			if c.closed {
				t.Error("a connection was closed twice")
			}
			c.closed = true
		},
	})
	t.Cleanup(func() {
		r.line.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		for i, c := range r.conns {
			if !c.closed {
				t.Errorf("connection %d was left open", i)
			}
		}
	})
	return r
}

// use runs do and wants an error.
func (r *rig) use(want error, do func(*conn) error) {
	r.t.Helper()
	err := r.line.Use(r.t.Context(), func(_ context.Context, c *conn) error { c.calls++; return do(c) })
	if !errors.Is(err, want) {
		r.t.Fatalf("got %v, want %v", err, want)
	}
}

func (r *rig) dialled(want int) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.conns) != want {
		r.t.Fatalf("%d connections were opened, want %d", len(r.conns), want)
	}
}

// fine does nothing, well.
func fine(*conn) error { return nil }

// TestFates says what becomes of a connection after each kind of error.
func TestFates(t *testing.T) {
	for _, test := range []struct {
		name        string
		first, rest error // what do returns, and what when it is run again
		again       bool
		opened      int // connections in all, with one use before and one after
	}{
		{"no error", nil, nil, false, 1},
		{"an answer", errAnswer, nil, false, 1},
		{"an answer after which the line is no good", errFatal, nil, false, 2},
		{"broken at rest", errBroken, nil, true, 2},
		{"broken twice", errBroken, errBroken, true, 3},
		{"broken, then an answer", errBroken, errAnswer, true, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t)
			r.use(nil, fine)
			runs, want := 0, test.first
			if test.again {
				want = test.rest
			}
			r.use(want, func(*conn) error {
				if runs++; runs > 1 {
					return test.rest
				}
				return test.first
			})
			if (runs == 2) != test.again {
				t.Errorf("it ran %d times", runs)
			}
			r.use(nil, fine)
			r.dialled(test.opened)
		})
	}
}

// TestNewConnectionIsTriedOnce breaks the first one: the question itself may be
// what breaks it.
func TestNewConnectionIsTriedOnce(t *testing.T) {
	r := newRig(t)
	runs := 0
	r.use(errBroken, func(*conn) error { runs++; return errBroken })
	if runs != 1 {
		t.Errorf("it ran %d times", runs)
	}
	r.use(nil, fine)
	r.dialled(2)
}

// TestDialFails keeps nothing of a dial that failed.
func TestDialFails(t *testing.T) {
	r := newRig(t)
	r.dial = func(context.Context) error { return errBroken }
	r.use(errBroken, func(*conn) error { t.Error("used without a connection"); return nil })
	r.dial = func(context.Context) error { return nil }
	r.use(nil, fine)
	r.dialled(1)
}

// TestAnotherServer follows the stream from one server to another, and refuses
// one that the stream does not come from.
func TestAnotherServer(t *testing.T) {
	r := newRig(t)
	r.want = "a"
	r.use(nil, fine)
	r.server, r.want = "b", "b"
	r.use(nil, func(c *conn) error {
		if c.server != "b" {
			t.Errorf("asked %s", c.server)
		}
		return nil
	})
	if !r.conns[0].closed || len(r.told) != 0 {
		t.Error("the old connection stays, or somebody was told")
	}
	r.want = "c"
	err := r.line.Use(t.Context(), func(context.Context, *conn) error { t.Error("used"); return nil })
	if err == nil || len(r.told) != 1 || r.told[0] != "b" {
		t.Errorf("%v, told %q", err, r.told)
	}
}

// TestContextEnds interrupts a user; the line is opened anew after that, even
// for one who had an answer just then.
func TestContextEnds(t *testing.T) {
	r := newRig(t)
	cause := errors.New("no answer in time")
	for range 2 {
		ctx, cancel := context.WithCancelCause(t.Context())
		err := r.line.Use(ctx, func(_ context.Context, c *conn) error { cancel(cause); return c.hang() })
		if !errors.Is(err, cause) {
			t.Fatalf("got %v, want the context's cause", err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	err := r.line.Use(ctx, func(_ context.Context, c *conn) error { cancel(cause); <-c.cut; return nil })
	if !errors.Is(err, cause) {
		t.Fatalf("got %v, want the context's cause", err)
	}
	r.use(nil, fine)
	r.dialled(4)
}

// TestWaitingEnds gives up waiting for the turn.
func TestWaitingEnds(t *testing.T) {
	r := newRig(t)
	r.use(nil, func(*conn) error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := r.line.Use(ctx, func(context.Context, *conn) error { t.Error("two at once"); return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		return nil
	})
}

// TestClose closes under a user, under a dial and before anything: the user is
// interrupted, and done, before the connection ends.
func TestClose(t *testing.T) {
	t.Run("in use", func(t *testing.T) {
		r := newRig(t)
		inside, returned := make(chan struct{}), make(chan error, 1)
		var done atomic.Bool
		go func() {
			returned <- r.line.Use(context.Background(), func(ctx context.Context, c *conn) error {
				close(inside)
				err := c.hang()
				if !errors.Is(context.Cause(ctx), ErrClosed) {
					t.Errorf("the user's context ended with %v", context.Cause(ctx))
				}
				c.calls++
				done.Store(true)
				return err
			})
		}()
		<-inside
		r.line.Close()
		if !done.Load() {
			t.Error("closed before the user was done")
		}
		if err := <-returned; !errors.Is(err, ErrClosed) {
			t.Errorf("the user was told %v", err)
		}
	})
	t.Run("dialling", func(t *testing.T) {
		r := newRig(t)
		inside, returned := make(chan struct{}), make(chan error, 1)
		r.dial = func(ctx context.Context) error { close(inside); <-ctx.Done(); return ctx.Err() }
		go func() {
			returned <- r.line.Use(context.Background(), func(context.Context, *conn) error { return nil })
		}()
		<-inside
		r.line.Close()
		if err := <-returned; !errors.Is(err, ErrClosed) {
			t.Errorf("the user was told %v", err)
		}
	})
	t.Run("unused", func(t *testing.T) {
		r := newRig(t)
		r.line.Close()
		r.line.Close()
		r.use(ErrClosed, fine)
		r.dialled(0)
	})
}

// TestManyUsers has users that succeed, fail, break the connection and are
// interrupted, while the line is closed among them. The connections' state is
// not guarded, so any two at once are a race.
func TestManyUsers(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for round := range uint64(20) {
		r := newRig(t)
		var users sync.WaitGroup
		var inside atomic.Int32
		for user := range uint64(8) {
			rng := rand.New(rand.NewPCG(seed, round<<8|user))
			users.Go(func() {
				for range 50 {
					outcome := []error{nil, errAnswer, errFatal, errBroken, errCut}[rng.IntN(5)]
					ctx, cancel := context.WithCancel(context.Background())
					err := r.line.Use(ctx, func(_ context.Context, c *conn) error {
						if inside.Add(1) != 1 {
							t.Error("two at once")
						}
						defer inside.Add(-1)
						c.calls++
						if c.closed {
							t.Error("the connection is closed")
						}
						if outcome == errCut {
							cancel()
							return c.hang()
						}
						return outcome
					})
					cancel()
					if errors.Is(err, ErrClosed) {
						return
					}
					if outcome == errCut && !errors.Is(err, context.Canceled) || outcome != errCut && !errors.Is(err, outcome) {
						t.Errorf("got %v, want %v", err, outcome)
					}
				}
			})
		}
		if round%2 == 0 {
			r.line.Close()
		}
		users.Wait()
		r.line.Close()
	}
}
