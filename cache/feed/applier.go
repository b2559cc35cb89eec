package feed

import (
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"

	"freshet/cache"
	"freshet/cache/feed/binlog"
)

// applier turns what the streams say into marks. Both dialects share it.
//
// mu serialises everything that is done to the store and to the ledger: the
// stream's goroutine takes it once or twice a transaction, the prober's and
// the keeper's now and then. Tracker.mu may be taken under it, never the other
// way round.
type applier struct {
	marks    Marks
	tracker  *Tracker
	log      *slog.Logger
	onSchema func(schema, table string)
	onProven func(ticket uint64, begun int64)

	mu     sync.Mutex
	ledger ledger

	// base is added to the upstream's own numbers, last is the newest position
	// given out; see place. Both belong to mu.
	base, last uint64

	// run numbers the times the stream was begun or resumed; live says that
	// it runs. Under mu.
	run  uint64
	live bool
	// doubted says that the run is about to end, its place lost: it proves
	// nothing any more. Under mu.
	doubted bool
	// placed says that the stream began and its place was not lost since: what
	// is marked is all that changed. Under mu.
	placed bool

	counts counters
}

// counters count what was marked, by kind, and what was seen.
type counters struct {
	key, block, shape, table, database, all atomic.Uint64
	rows, transactions                      atomic.Uint64
}

// place makes a position of the upstream's own number. Positions always rise:
// when the upstream's numbering starts again (a log reset, a failover, another
// timeline) base grows by what is missing. Called with mu held, with numbers
// that rise within one history.
func (a *applier) place(raw uint64) cache.Position {
	p := a.base + raw
	if p <= a.last {
		a.base += a.last - p + 1
		p = a.last + 1
	}
	a.last = p
	return cache.Position(p)
}

// start makes the stream's beginning the applied position. received are the
// transactions before it (MySQL). Whatever was read from the catalog may be
// older than the stream, so nothing that was registered before stays.
func (a *applier) start(raw uint64, received *binlog.GTIDSet) {
	a.startAt(raw, received, nil)
}

// startAt is start of a MariaDB replica's log, before which it had received
// these domains.
func (a *applier) startAt(raw uint64, received *binlog.GTIDSet, domains map[uint32]uint64) {
	a.begin(raw, received, maps.Clone(domains))
	a.everything()
}

func (a *applier) begin(raw uint64, received *binlog.GTIDSet, domains map[uint32]uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.run++
	a.live, a.placed, a.doubted = true, true, false
	a.ledger.received, a.ledger.domains = received, domains
	p := a.place(raw)
	a.marks.SetApplied(p)
	a.tracker.ended(p)
	a.ledger.raw = raw
	a.ledger.reach(raw, p)
	a.settle()
}

// resume continues a stream whose place was kept.
func (a *applier) resume() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.run++
	a.live, a.doubted = true, false
	a.tracker.ended(a.ledger.applied)
}

// cut says that the stream is interrupted: nothing is proven or taken up until
// it runs again.
func (a *applier) cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.live = false
	a.tracker.pause()
	a.ledger.cut()
}

// doubt ignores probes until the stream is begun anew. Those that wait for the
// stream are forgotten.
func (a *applier) doubt() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.doubted = true
	a.ledger.cut()
}

// sighted takes a probe's answer in and tells whether the stream has still to
// catch up with it. A probe that was asked of another run of the stream is
// ignored, and so is one of a run whose place is lost.
func (a *applier) sighted(run uint64, p probe) (behind bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if run != a.run || !a.live || a.doubted {
		return false
	}
	a.ledger.sighted(p)
	a.settle()
	return len(a.ledger.pending) > 0
}

// current returns the number of the stream's run, and whether it runs.
func (a *applier) current() (run uint64, live bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.run, a.live
}

// visible returns the visible position, 0 while it is not known.
func (a *applier) visible() cache.Position {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ledger.open {
		return 0
	}
	return a.ledger.visible
}

// behind tells whether some probe waits for the stream.
func (a *applier) behind() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.ledger.pending) > 0
}

// oldestPending returns when the oldest probe that waits for the stream began.
func (a *applier) oldestPending() (begun int64, waiting bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.ledger.pending) == 0 {
		return 0, false
	}
	return a.ledger.pending[0].begun, true
}

// receivedSet returns a copy of the transactions received; nil when unknown.
func (a *applier) receivedSet() *binlog.GTIDSet {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ledger.received == nil {
		return nil
	}
	return a.ledger.received.Clone()
}

// vouch notes that a standby has replayed the primary's own log up to here.
func (a *applier) vouch(raw uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if raw > a.ledger.vouched {
		a.ledger.vouched = raw
		a.settle()
	}
}

// settle publishes what the ledger came to; mu is held.
func (a *applier) settle() {
	if l := &a.ledger; l.open && l.visible != l.published {
		l.published = l.visible
		a.marks.SetVisible(l.visible)
	}
	if p, ok := a.ledger.proven(); ok {
		a.onProven(p.ticket, p.begun)
	}
}

// advance moves applied without a transaction: everything before raw has been
// sent. It does nothing when raw is not news.
func (a *applier) advance(raw uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if raw <= a.ledger.raw {
		return
	}
	p := a.place(raw)
	a.marks.SetApplied(p)
	a.tracker.ended(p)
	a.ledger.reach(raw, p)
	a.settle()
}

// lost says that changes may have been missed: everything goes, and no fill is
// kept until a probe has told what is visible now.
//
// Order matters. A fill that read the old visible position just before it was
// taken back, and claims after the flush, meets the marks: they are past
// every position that was ever visible.
func (a *applier) lost() {
	a.mu.Lock()
	a.placed = false
	a.marks.SetVisible(0)
	a.ledger.clear()
	a.last++
	tables := a.tracker.all()
	a.markEverything(cache.Position(a.last))
	a.marks.Flush()
	a.counts.all.Add(1)
	a.tracker.goneFor(tables)
	a.mu.Unlock()
	a.onSchema("", "")
}

// lostPlace is lost, unless nothing came since it was lost before.
func (a *applier) lostPlace() {
	a.mu.Lock()
	placed := a.placed
	a.mu.Unlock()
	if placed {
		a.lost()
	}
}

// markEverything marks all that any answer may depend on; mu is held.
func (a *applier) markEverything(at cache.Position) {
	a.tracker.mu.Lock()
	view := a.tracker.view
	a.tracker.mu.Unlock()
	for _, f := range view.byName {
		a.markWhole(f, at)
	}
}

// markWhole marks a table, all its shapes, and its old definitions.
func (a *applier) markWhole(f *followed, at cache.Position) {
	if f.table != nil {
		a.markDefinition(f.table, f.shapes, at)
	}
	a.markOld(f, at)
}

func (a *applier) markOld(f *followed, at cache.Position) {
	for _, r := range f.old {
		a.markDefinition(r.table, r.shapes, at)
	}
}

func (a *applier) markDefinition(tb *Table, shapes []*Shape, at cache.Position) {
	a.marks.Mark(cache.DepOfTable(tb.ID), at)
	for _, sh := range shapes {
		a.marks.Mark(cache.DepOfShape(sh.ID), at)
	}
}

// redefined marks tables whose definition was seen to have changed outside the
// stream (PostgreSQL's catalog), makes them gone and says so. Their marks are
// past everything visible: a fill that started before the new definition could
// be read has an earlier position, whatever it read.
func (a *applier) redefined(keys []nameKey) {
	a.mu.Lock()
	tables := a.tracker.all()
	hit := make(map[nameKey]*Table)
	at := cache.Position(a.last + 1)
	a.tracker.mu.Lock()
	view := a.tracker.view
	a.tracker.mu.Unlock()
	for _, key := range keys {
		if f := view.byName[key]; f != nil {
			a.markWhole(f, at)
			a.counts.table.Add(1)
		}
		if tb := tables[key]; tb != nil {
			hit[key] = tb
		}
	}
	a.tracker.goneFor(hit)
	a.mu.Unlock()
	for _, key := range keys {
		a.onSchema(key.schema, key.name)
	}
}

// everything is redefined for all tables, and drops what depends on no table.
func (a *applier) everything() {
	a.mu.Lock()
	a.markEverything(cache.Position(a.last + 1))
	a.marks.Flush()
	a.counts.all.Add(1)
	a.tracker.goneFor(a.tracker.all())
	a.mu.Unlock()
	a.onSchema("", "")
}

// expire drops old definitions whose time is over. They are marked once more,
// past everything visible, for whoever claimed one of them meanwhile.
func (a *applier) expire(old []retired) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range old {
		a.markDefinition(r.table, r.shapes, cache.Position(a.last+1))
	}
}
