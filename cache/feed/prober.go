package feed

import (
	"context"
	"time"
)

const (
	// probeSpacing is the least time between the beginnings of two probes.
	probeSpacing = 500 * time.Microsecond
	// probeTimeout ends a probe that gets no answer, and its line.
	probeTimeout = 2 * time.Second
	// The times between nudges while a probe waits for the stream.
	nudgeLeast = time.Millisecond
	nudgeMost  = 50 * time.Millisecond
)

// probeLoop asks one question after the other: at a kick, or when the last one
// is as old as Config.ProbeEvery.
func (f *Feed) probeLoop(ctx context.Context) {
	defer f.running.Done()
	timer := time.NewTimer(f.cfg.ProbeEvery)
	defer timer.Stop()
	retry := time.Duration(0)
	for {
		began := time.Now()
		behind, err := f.probeOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.journal.failed("a probe failed", err)
			retry = min(max(2*retry, 10*time.Millisecond), time.Second)
			if !sleep(ctx, retry) {
				return
			}
			continue
		}
		retry = 0
		if !f.awaitProbe(ctx, timer, began, time.Since(began), behind) {
			return
		}
	}
}

// probeOnce asks one question, if the stream runs.
func (f *Feed) probeOnce(ctx context.Context) (behind bool, err error) {
	run, live := f.applier.current()
	if !live {
		return false, nil
	}
	// Counted before the time is taken and the question sent: see Ticket.
	p := probe{ticket: f.begun.Add(1)}
	p.begun = Now()
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	p.sighting, err = f.source.probe(ctx)
	if err != nil {
		return false, err
	}
	return f.applier.sighted(run, p), nil
}

// awaitProbe waits until it is time for the next probe, and nudges the stream
// while it is behind the last one. However often probes are kicked for, they
// leave the server's core alone half of the time. It returns false when ctx has
// ended.
func (f *Feed) awaitProbe(ctx context.Context, timer *time.Timer, began time.Time, took time.Duration, behind bool) bool {
	nudge := nudgeLeast
	for {
		left := f.cfg.ProbeEvery - time.Since(began)
		if left <= 0 {
			return ctx.Err() == nil
		}
		if behind {
			f.source.nudge(ctx, time.Since(began))
			left = min(left, nudge)
			nudge = min(2*nudge, nudgeMost)
		}
		timer.Reset(left)
		select {
		case <-ctx.Done():
			return false
		case <-f.kick:
			return sleep(ctx, max(probeSpacing, 2*took)-time.Since(began))
		case <-timer.C:
		}
		behind = behind && f.applier.behind()
	}
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
