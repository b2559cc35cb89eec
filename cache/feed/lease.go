package feed

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"freshet/cache"
)

// A lease is a promise about the time to come: until it ends, no commit can be
// seen by anybody upstream without having been marked here. It rests on the
// upstream holding every commit back until this feed acknowledges it (a
// semi-synchronous replica; a synchronous standby), which the feed does only
// after its marks are set and applied has moved.
//
// The upstream is asked every leaseEvery how its commits wait (source.promise).
// Let a question be asked at t, and its answer say that commits wait for us,
// and where the log ended after that had been looked at: P. Then
//
//   - a commit that passed the waiting place without waiting (because it was
//     switched off, or not set up, when the commit came by) was logged before
//     the answer, so it lies before P;
//   - every other commit waits for our acknowledgement, or until the upstream
//     gives up. Where it never gives up (PostgreSQL), nothing more is needed:
//     once P is applied, a lease runs from t.
//
// MySQL and MariaDB give up when one commit has waited for its timeout T, which
// counts from when that commit began to wait; then waiting is switched off and
// all commits that wait, however short, go through at once. A commit that
// began to wait after t cannot do that before t+T. One that waited at t
// already can: at any time. So the lease of t is not granted before all of
// those are known to have gone through, that is, until probes have seen
// everything up to P; that we acknowledged it is not enough, the
// acknowledgement may be lost. And they must have gone through by being
// acknowledged, not because waiting was switched off: a later answer must tell
// the same number of switches, counted by the upstream, as the answer of t and
// the one before it. The one before, because the upstream reads its state and
// its counter one after the other. The group commit changes nothing: a group
// waits as one, for its last member's place in the log.
//
// So with S the shortest of leaseMost and half of T, the lease ends at t+S.
// Half is left for clocks that do not run alike; the upstream's must not be set
// forward by more than that at one stroke.
//
// t is taken before the question is sent, and the end is compared with the
// clock at the moment of the hit: a Freshet that was stopped for longer finds
// its lease over when it goes on, whatever it was about to do. (A machine whose
// monotonic clock stops with it, asleep or moved, must not be woken to a lease:
// see the docs.)
//
// What a lease does not cover is what the upstream is told to do within it,
// leaseMost at most: somebody switches waiting off or shortens it; another
// replica joins and acknowledges in our place; the upstream crashes, and within
// the same second recovers what it had logged while our line is cut without our
// noticing. And single commits whose wait is cancelled, or that never wait
// (MariaDB: KILL; PostgreSQL: a cancel request, synchronous_commit = off) are
// seen when they are seen; the feed then marks them as soon as the stream
// brings them.
type lease struct {
	until atomic.Int64 // as Now gives it; 0: none

	mu     sync.Mutex
	epoch  uint64 // counts the times the lease was ended early
	reason string // why there is none
}

const (
	// leaseEvery is how often the upstream is asked for its promise.
	leaseEvery = 100 * time.Millisecond
	// leaseMost bounds every lease, and so how long a change of the upstream's
	// settings can go unnoticed. Some answers may come late or not at all
	// before a lease runs out.
	leaseMost = time.Second
	// maxCandidates bounds the leases that wait to be proven.
	maxCandidates = 32
)

// promise is what the upstream said of how its commits wait for us.
type promise struct {
	// refusal says why they cannot be relied on to; "" when they can.
	refusal string
	// patience is how long a commit waits before the upstream gives up, if it
	// does.
	patience time.Duration
	endless  bool // it does not
	// switches changes whenever waiting was switched off.
	switches uint64
	// end is where the log ended after all of this was looked at.
	end interface{ covered(l *ledger) bool }
}

// span is how long a lease may run from the moment of the question.
func (p *promise) span() time.Duration {
	if p.endless {
		return leaseMost
	}
	return min(leaseMost, p.patience/2)
}

// candidate is a promise that may become a lease.
type candidate struct {
	asked int64
	promise
	past cache.Position // what was applied when its end was; 0 before
}

// lessor makes leases of promises. It belongs to leaseLoop.
type lessor struct {
	run      uint64
	known    bool // switches was told in this run
	switches uint64
	waiting  []candidate // oldest first
}

func (l *lessor) forget() { *l = lessor{} }

// ripest returns the newest candidate whose end is applied and whose waiting
// commits have gone through, and drops those before it.
func (l *lessor) ripest(a *applier) (ripe candidate, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.run != l.run || !a.live || a.doubted {
		return candidate{}, false
	}
	newest := -1
	for i := range l.waiting {
		c := &l.waiting[i]
		if c.past == 0 && c.end.covered(&a.ledger) {
			c.past = a.ledger.applied
		}
		if c.past != 0 && (c.endless || a.ledger.open && a.ledger.visible >= c.past) {
			newest = i
		}
	}
	if newest < 0 {
		return candidate{}, false
	}
	ripe = l.waiting[newest]
	l.waiting = slices.Delete(l.waiting, 0, newest+1)
	return ripe, true
}

// answer takes an answer in. ripe is what was ripe before its question was
// asked. It returns the lease's new end, 0 for none, and why there is none;
// same says that nothing changes.
func (l *lessor) answer(asked int64, p promise, ripe candidate, ok bool) (until int64, reason string, same bool) {
	switch {
	case p.refusal != "":
		l.known, l.waiting = false, nil
		return 0, p.refusal, false
	case !l.known || l.switches != p.switches:
		l.known, l.switches, l.waiting = true, p.switches, nil
		return 0, "the upstream has only just begun to wait for Freshet", false
	}
	if len(l.waiting) == maxCandidates {
		l.waiting = slices.Delete(l.waiting, 0, 1)
	}
	l.waiting = append(l.waiting, candidate{asked: asked, promise: p})
	if !ok {
		return 0, "", true
	}
	return ripe.asked + int64(min(ripe.span(), p.span())), "", false
}

// set changes the lease, unless it was ended since epoch was read.
func (l *lease) set(epoch uint64, until int64, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.epoch == epoch {
		l.until.Store(until)
		l.reason = reason
	}
}

// end ends the lease at once. No answer to a question asked before counts.
func (l *lease) end(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch++
	l.until.Store(0)
	l.reason = reason
}

// state returns the epoch, and in words why there is no lease at a moment.
func (l *lease) state(now int64) (epoch uint64, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := l.until.Load(); now < until {
		return l.epoch, ""
	} else if l.reason == "" && until != 0 {
		return l.epoch, "the upstream's last promise has run out"
	}
	return l.epoch, l.reason
}

// leaseLoop renews the lease until ctx ends.
func (f *Feed) leaseLoop(ctx context.Context) {
	defer f.running.Done()
	var l lessor
	for sleep(ctx, leaseEvery) {
		f.leaseOnce(ctx, &l)
	}
}

func (f *Feed) leaseOnce(ctx context.Context, l *lessor) {
	// The epoch first: a stream that ends later than this makes it old.
	epoch, _ := f.lease.state(Now())
	run, live := f.applier.current()
	if !live {
		l.forget()
		return
	}
	if l.run != run {
		l.forget()
		l.run = run
	}
	ripe, ok := l.ripest(f.applier)
	asked := Now()
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	p, err := f.source.promise(ctx)
	if err != nil {
		// The lease that there is holds: it was made for lines that are cut.
		if ctx.Err() == nil {
			f.journal.failed("the upstream was not heard on its commits", err)
		}
		return
	}
	until, reason, same := l.answer(asked, p, ripe, ok)
	if !same {
		f.lease.set(epoch, until, reason)
	}
}

// LeaseUntil is the time, as Now gives it, until which no commit becomes
// visible upstream without having been marked in the store; 0 when there is no
// such time. A hit is as good as the upstream's own answer if a clock that was
// read after its request came shows less, and the cells are read after that.
// It is 0 unless Config.Synchronous.
func (f *Feed) LeaseUntil() int64 { return f.lease.until.Load() }
