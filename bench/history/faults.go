package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// fault is something that goes wrong for a while.
type fault struct {
	name   string
	strike func(ctx context.Context, s *stage, f *drawn) error
}

// drawn is a fault with what the seed says of it.
type drawn struct {
	fault
	length time.Duration // how long it lasts
	quiet  time.Duration // how long nothing happens after it
	delay  time.Duration
}

// happened is a fault's beginning or end, on the run's clock.
type happened struct {
	at   int64
	what string
}

// outage is how long a killed server stays down at least. A lease lasts a second at
// most; a server that is back before, on lines that broke without a sign, may
// show commits that no Freshet acknowledged (docs/linearizable.md, "What remains").
const outage = 1200 * time.Millisecond

// allFaults is one of each.
var allFaults = []fault{
	holding(streamOnly), holding(feedAll), holding(everything),
	slowing(feedAll), slowing(everything),
	cutting(feedAll), cutting(everything),
	losing(feedAll), losing(everything),
	{"Freshet stopped", func(ctx context.Context, s *stage, f *drawn) error {
		err := s.proxy.Pause()
		sleep(ctx, f.length)
		return errors.Join(err, s.proxy.Resume())
	}},
	{"Freshet killed", func(ctx context.Context, s *stage, _ *drawn) error {
		if err := s.proxy.Kill(); err != nil {
			return err
		}
		return s.openProxy(context.WithoutCancel(ctx))
	}},
	{"the upstream stopped", func(ctx context.Context, s *stage, f *drawn) error {
		err := s.server.Pause()
		sleep(ctx, f.length)
		return errors.Join(err, s.server.Resume())
	}},
	{"the upstream killed", func(ctx context.Context, s *stage, f *drawn) error {
		return s.loseServer(ctx, f)
	}},
	{"Freshet stopped, its feed held past that", func(ctx context.Context, s *stage, f *drawn) error {
		s.relay.hold(feedAll)
		defer s.relay.hold(nothing)
		err := s.proxy.Pause()
		sleep(ctx, f.length/2)
		err = errors.Join(err, s.proxy.Resume())
		sleep(ctx, f.length/2)
		return err
	}},
	{"the upstream killed, the feed's lines silent", func(ctx context.Context, s *stage, f *drawn) error {
		s.relay.hold(feedAll)
		defer s.relay.hold(nothing)
		sleep(ctx, f.delay)
		if err := s.loseServer(ctx, f); err != nil {
			return err
		}
		sleep(ctx, f.delay)
		s.relay.cut(feedAll)
		return nil
	}},
}

// loseServer kills the upstream, and starts it again after an outage.
func (s *stage) loseServer(ctx context.Context, f *drawn) error {
	ctx = context.WithoutCancel(ctx)
	if err := s.server.Kill(); err != nil {
		return err
	}
	sleep(ctx, outage+f.delay)
	return s.server.Restart(ctx)
}

func holding(sc scope) fault {
	return fault{sc.String() + " held", func(ctx context.Context, s *stage, f *drawn) error {
		s.relay.hold(sc)
		defer s.relay.hold(nothing)
		sleep(ctx, f.length)
		return nil
	}}
}

func slowing(sc scope) fault {
	return fault{sc.String() + " slow", func(ctx context.Context, s *stage, f *drawn) error {
		s.relay.slow(sc, f.delay/10)
		defer s.relay.slow(nothing, 0)
		sleep(ctx, f.length)
		return nil
	}}
}

func cutting(sc scope) fault {
	return fault{sc.String() + " cut", func(_ context.Context, s *stage, _ *drawn) error {
		s.relay.cut(sc)
		return nil
	}}
}

// losing is a line that goes dead and is found to be so only later: what was
// under way on it is lost.
func losing(sc scope) fault {
	return fault{sc.String() + " dead, then cut", func(ctx context.Context, s *stage, f *drawn) error {
		s.relay.hold(sc)
		defer s.relay.hold(nothing)
		sleep(ctx, f.length)
		s.relay.cut(sc)
		return nil
	}}
}

// draw shuffles the faults and gives each its times. longest is for how long one
// may last.
func draw(rng *rand.Rand, from []fault, longest time.Duration) (out []drawn) {
	const shortest = 150 * time.Millisecond
	for _, at := range rng.Perm(len(from)) {
		out = append(out, drawn{fault: from[at],
			length: shortest + time.Duration(rng.Int64N(int64(longest-shortest))),
			quiet:  time.Duration(rng.Int64N(int64(400 * time.Millisecond))),
			delay:  time.Duration(20+rng.IntN(480)) * time.Millisecond})
	}
	return out
}

// Hits that have to be seen before the next fault, and how long that may take: a
// fault that meets an empty store shows little.
const (
	hitsBetween  = 30
	backPatience = 30 * time.Second
)

// trouble plays faults, one deck after the other, until the run is over: by
// time, or after the first deck. Between two it waits until Freshet answers
// from memory again.
func (s *stage) trouble(ctx context.Context, rng *rand.Rand) error {
	if err := s.settle(ctx, "the start"); err != nil {
		return err
	}
	if s.relay.count(streamOnly) == 0 || s.relay.count(feedAll) == 0 || s.relay.count(everything) == 0 {
		return errors.New("the relay does not tell the stream, the lines beside it and the links apart")
	}
	for ctx.Err() == nil {
		for _, f := range draw(rng, s.cfg.faults(), s.cfg.Longest) {
			begun := s.now()
			s.happened = append(s.happened, happened{begun, f.name})
			err := f.strike(ctx, s, &f)
			s.happened = append(s.happened, happened{s.now(), "over: " + f.name})
			if err != nil {
				return fmt.Errorf("fault %q: %w", f.name, err)
			}
			over := time.Now()
			if err := s.settle(ctx, f.name); err != nil {
				return err
			}
			s.report.fault(f.name, time.Since(over))
			if s.over() {
				return nil
			}
			sleep(ctx, f.quiet)
		}
		if s.cfg.For == 0 {
			return nil
		}
	}
	return context.Cause(ctx)
}

func (s *stage) over() bool { return s.cfg.For > 0 && time.Since(s.started) > s.cfg.For }

// settle waits for hits.
func (s *stage) settle(ctx context.Context, after string) error {
	want := s.hits.Load() + hitsBetween
	for begun := time.Now(); s.hits.Load() < want; {
		if time.Since(begun) > backPatience {
			return fmt.Errorf("no %d hits within %s after %s: %s", hitsBetween, backPatience, after, s.status(ctx))
		}
		if !sleep(ctx, 5*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}
