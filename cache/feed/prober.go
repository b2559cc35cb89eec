package feed

import (
	"context"
	"time"
)

const (
	// probeSpacing is the least time between the beginnings of two probes.
	probeSpacing = 500 * time.Microsecond
	// probeRest is how often as long as a probe took the next must at least come
	// later: however often probes are kicked for, they leave the server's core
	// alone three quarters of the time.
	probeRest = 4
	// probeTimeout ends a probe that gets no answer, and its line.
	probeTimeout = 2 * time.Second
	// The times between nudges while a probe waits for the stream.
	nudgeLeast = time.Millisecond
	nudgeMost  = 50 * time.Millisecond
)

// turn is when the last probe of a kind began, how long it took, and whether
// somebody wants another.
type turn struct {
	began  time.Time
	took   time.Duration
	wanted bool
}

// due is when the next may begin.
func (t *turn) due() time.Time {
	return t.began.Add(max(probeSpacing, probeRest*t.took))
}

// prober asks one question after the other. It belongs to probeLoop.
type prober struct {
	feed  *Feed
	timer *time.Timer
	// whole are the probes that prove something, glances those that only tell
	// what can be read.
	whole, glance turn
	// behind says that a probe waits for the stream, which is nudged at nudgeAt,
	// and nudge later again.
	behind  bool
	nudgeAt time.Time
	nudge   time.Duration
}

// probeLoop asks at a kick, and when the last proof is as old as
// Config.ProbeEvery.
func (f *Feed) probeLoop(ctx context.Context) {
	defer f.running.Done()
	p := &prober{feed: f, timer: time.NewTimer(f.cfg.ProbeEvery)}
	defer p.timer.Stop()
	retry := time.Duration(0)
	for whole, ok := true, true; ok; {
		switch err := p.ask(ctx, whole); {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.journal.failed("a probe failed", err)
			retry = min(max(2*retry, 10*time.Millisecond), time.Second)
			whole, ok = true, sleep(ctx, retry)
		default:
			retry = 0
			whole, ok = p.await(ctx)
		}
	}
}

// ask asks one question, if the stream runs.
func (p *prober) ask(ctx context.Context, whole bool) error {
	began := time.Now()
	behind, isWhole, err := p.feed.probeOnce(ctx, whole)
	took := time.Since(began)
	p.behind, p.glance.wanted = behind, false
	if isWhole {
		p.whole.began, p.nudgeAt, p.nudge = began, began, nudgeLeast
	}
	if whole {
		p.whole.took, p.whole.wanted = took, false
	} else {
		p.glance.began, p.glance.took = began, took
	}
	return err
}

func (f *Feed) probeOnce(ctx context.Context, whole bool) (behind, isWhole bool, err error) {
	run, live := f.applier.current()
	if !live {
		return false, true, nil
	}
	// Counted before the time is taken and the question sent: see Ticket.
	p := probe{ticket: f.begun.Add(1)}
	p.begun = Now()
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	p.sighting, isWhole, err = f.source.probe(ctx, whole)
	if err != nil {
		return false, whole, err
	}
	p.glance = !isWhole
	return f.applier.sighted(run, p), isWhole, nil
}

// await waits until it is time for the next probe, and nudges the stream while
// it is behind the last one. It tells whether that must be a whole one, and
// false when ctx has ended.
func (p *prober) await(ctx context.Context) (whole, ok bool) {
	f := p.feed
	for {
		now := time.Now()
		at, whole := p.next()
		if !now.Before(at) {
			return whole, ctx.Err() == nil
		}
		if p.behind {
			if !now.Before(p.nudgeAt) {
				f.source.nudge(ctx, now.Sub(p.whole.began))
				p.nudgeAt, p.nudge = now.Add(p.nudge), min(2*p.nudge, nudgeMost)
			}
			at = earlier(at, p.nudgeAt)
		}
		p.timer.Reset(at.Sub(now))
		select {
		case <-ctx.Done():
			return false, false
		case <-f.kick:
			p.whole.wanted = true
		case <-f.look:
			p.glance.wanted = true
		case <-p.timer.C:
		}
		p.behind = p.behind && f.applier.behind()
	}
}

// next is when the next probe is due, and whether it must prove something: one
// that does tells what can be read, too.
func (p *prober) next() (at time.Time, whole bool) {
	at = p.whole.began.Add(p.feed.cfg.ProbeEvery)
	if p.whole.wanted {
		at = earlier(at, p.whole.due())
	}
	if !p.glance.wanted {
		return at, true
	}
	look := p.glance.due()
	if after := p.whole.began.Add(probeSpacing); look.Before(after) {
		look = after
	}
	if look.Before(at) {
		return look, false
	}
	return at, true
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// sleep waits; it returns false when ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
