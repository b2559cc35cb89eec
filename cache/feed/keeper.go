package feed

import (
	"context"
	"time"
)

// ripening are tables whose definition is the catalog's; they are taken up
// when a probe that began after the catalog was read is proven. Only then has
// everything that the catalog showed passed through the stream.
type ripening struct {
	tables []*Table
	ticket uint64
	run    uint64
}

// keepEvery is how often the keeper looks around unasked; keepRetry how soon
// it asks again for tables that were not ready.
const (
	keepEvery = time.Second
	keepRetry = 20 * time.Millisecond
)

// keepLoop takes tables up and drops old definitions.
func (f *Feed) keepLoop(ctx context.Context) {
	defer f.running.Done()
	var ripe []ripening
	timer := time.NewTimer(keepEvery)
	defer timer.Stop()
	for {
		wait := keepEvery
		if run, live := f.applier.current(); live {
			f.source.tend(ctx)
			ripe = f.takeUp(ripe, run)
			if again := f.inspect(ctx, run, &ripe); again {
				wait = keepRetry
			}
		} else {
			for _, r := range ripe {
				f.cfg.Tracker.again(r.tables)
			}
			ripe = nil
		}
		if old := f.cfg.Tracker.expired(time.Now()); len(old) > 0 {
			f.applier.expire(old)
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-f.woken:
		case <-timer.C:
		}
	}
}

// takeUp hands over what is ripe and returns the rest.
func (f *Feed) takeUp(ripe []ripening, run uint64) []ripening {
	left := ripe[:0]
	for _, r := range ripe {
		switch {
		case r.run != run:
			f.cfg.Tracker.again(r.tables)
		case r.ticket <= f.ProvenTicket():
			f.cfg.Tracker.takeUp(r.tables)
			f.Kick() // visible comes to where they begin
		default:
			left = append(left, r)
		}
	}
	return left
}

// inspect compares waiting tables with the catalog. It tells whether some must
// be asked for again.
func (f *Feed) inspect(ctx context.Context, run uint64, ripe *[]ripening) (again bool) {
	tables := f.cfg.Tracker.waiting(f.applier.visible())
	if len(tables) == 0 {
		return f.cfg.Tracker.anyWaiting()
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	v, err := f.source.inspect(ctx, tables)
	if err != nil {
		if ctx.Err() == nil {
			f.journal.failed("a table could not be looked up", err)
		}
		f.cfg.Tracker.again(tables)
		return true
	}
	if len(v.good) > 0 {
		*ripe = append(*ripe, ripening{tables: v.good, ticket: f.Ticket(), run: run})
		f.Kick()
	}
	if len(v.bad) > 0 {
		keys := make([]nameKey, len(v.bad))
		for i, tb := range v.bad {
			keys[i] = keyOf(f.source, &tb.Spec)
		}
		f.applier.redefined(keys)
	}
	f.cfg.Tracker.again(v.later)
	return len(v.later) > 0
}

// verdict is what the catalog says of tables that wait. A table in none of the
// lists is not asked for again: it is never taken up.
type verdict struct {
	good  []*Table // the definition fits
	bad   []*Table // it does not: whoever asked has old knowledge
	later []*Table // not ready yet
}
