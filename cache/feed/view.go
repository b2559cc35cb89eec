package feed

import (
	"slices"
	"time"

	"freshet/cache"
)

// view is what one transaction is applied with. A view is never changed once
// a transaction may see it, only replaced, between two transactions.
type view struct {
	byName map[nameKey]*followed
	byOID  map[uint32]*followed // PostgreSQL
	// heads are, by OID, the tables with heirs whose rows are stored there.
	heads map[uint32][]*followed
}

// followed is one table of a view.
type followed struct {
	key    nameKey
	table  *Table   // nil when only old definitions or children are left
	shapes []*Shape // the table's, as of the view
	plan   *rowPlan // of the shapes; nil without a table
	vetted bool     // the table was when the plan was made
	// old are definitions that are gone but that a session may still be about
	// to use: it may have computed its dependencies just before. Any change
	// marks all of them, until they are dropped (see expire).
	old []retired
	// children are the ways in which rows of other tables change with this
	// one's, and the upstream does not log it.
	children []cascade
}

type retired struct {
	table  *Table
	shapes []*Shape
	until  time.Time
}

// retireFor is how long a definition that is gone is still marked. A session
// that holds a dependency for longer between computing and claiming it would
// have been stopped for as long.
const retireFor = time.Minute

// attach makes f the tracker's feed.
func (t *Tracker) attach(f follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.follower = f
}

// detach ends it: nothing can be followed, everything is gone.
func (t *Tracker) detach() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.follower = nil
	t.running = false
	for _, tb := range t.tables {
		tb.gone.Store(true)
	}
	clear(t.tables)
}

// begin returns the view for a transaction that is about to be applied.
func (t *Tracker) begin() view {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy = true
	return t.view
}

// ended says that everything up to applied has been marked and no transaction
// is being applied.
func (t *Tracker) ended(applied cache.Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy, t.running, t.applied = false, true, applied
	if t.stale {
		t.adopt()
	}
}

// adopt brings the view up to date and gives everything that is new its Since:
// the position applied now, for whatever comes later is marked. Called with mu
// held; it waits for the end of a running transaction.
func (t *Tracker) adopt() {
	if t.busy || !t.running || !t.stale || t.follower == nil {
		return
	}
	t.stale = false
	old := t.view
	t.view = view{byName: make(map[nameKey]*followed), byOID: make(map[uint32]*followed), heads: make(map[uint32][]*followed)}
	for key, f := range old.byName {
		if len(f.old) > 0 || len(f.children) > 0 {
			t.view.byName[key] = &followed{key: key, old: f.old, children: f.children}
		}
	}
	for key, tb := range t.tables {
		f := t.view.entry(key)
		f.table, f.vetted = tb, tb.vetted
		// Shapes are only ever added, so as many are the same.
		if was := old.byName[key]; was != nil && was.table == tb && len(was.shapes) == len(tb.shapes) && was.vetted == tb.vetted {
			f.shapes, f.plan = was.shapes, was.plan
		} else {
			f.shapes = slices.Clone(tb.shapes)
			f.plan = newRowPlan(tb, f.shapes)
		}
		t.advance(tb)
	}
	for _, f := range t.view.byName {
		t.index(f)
	}
}

// advance moves a table that the view now has one stage on.
func (t *Tracker) advance(tb *Table) {
	if tb.stage == stageNew {
		tb.stage, tb.watched = stageWatched, t.applied
	}
	if tb.vetted && tb.stage != stageUp {
		tb.stage, tb.up = stageUp, time.Now()
		tb.since.Store(uint64(t.applied))
	}
	if tb.stage != stageUp {
		return
	}
	for _, sh := range tb.shapes {
		if sh.since.Load() == 0 {
			sh.since.Store(uint64(t.applied))
		}
	}
}

// copied is a view to be changed and put in place of v.
func (v *view) copied() view {
	next := view{byName: make(map[nameKey]*followed, len(v.byName)+1), byOID: v.byOID, heads: v.heads}
	for key, e := range v.byName {
		next.byName[key] = e
	}
	return next
}

// replace puts another view in place and has it brought up to date when no
// transaction is being applied; called with mu held.
func (t *Tracker) replace(next view) {
	t.view = next
	t.stale = true
	t.adopt()
}

func (v *view) entry(key nameKey) *followed {
	f := v.byName[key]
	if f == nil {
		f = &followed{key: key}
		v.byName[key] = f
	}
	return f
}

func (t *Tracker) index(f *followed) {
	if f.table != nil && f.table.Spec.OID != 0 {
		t.indexAs(f, &f.table.Spec, true)
	}
	for _, r := range f.old {
		if r.table.Spec.OID != 0 {
			t.indexAs(f, &r.table.Spec, false)
		}
	}
}

// indexAs finds f by where the rows of one of its definitions are stored.
func (t *Tracker) indexAs(f *followed, spec *TableSpec, current bool) {
	if len(spec.Heirs) == 0 {
		if current || t.view.byOID[spec.OID] == nil {
			t.view.byOID[spec.OID] = f
		}
		return
	}
	for _, oid := range append([]uint32{spec.OID}, spec.Heirs...) {
		if !slices.Contains(t.view.heads[oid], f) {
			t.view.heads[oid] = append(t.view.heads[oid], f)
		}
	}
}

// retire makes a table gone; called with mu held, after everything under it
// has been marked, or before anything could depend on it.
func (t *Tracker) retire(key nameKey, tb *Table) {
	tb.gone.Store(true)
	if t.tables[key] == tb {
		delete(t.tables, key)
	}
	old := t.view.byName[key]
	if old == nil {
		old = &followed{key: key}
	}
	// The view may be in use: replace the entry in a new map, not in place.
	f := &followed{key: key, children: old.children, old: append(slices.Clone(old.old),
		retired{table: tb, shapes: slices.Clone(tb.shapes), until: time.Now().Add(retireFor)})}
	next := t.view.copied()
	next.byOID, next.heads = make(map[uint32]*followed), make(map[uint32][]*followed)
	next.byName[key] = f
	next.bluntTo(key)
	t.view = next
	for _, e := range next.byName {
		t.index(e)
	}
	t.stale = true
}

// goneFor retires the tables and has the view rebuilt.
func (t *Tracker) goneFor(tables map[nameKey]*Table) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, tb := range tables {
		if !tb.gone.Load() {
			t.retire(key, tb)
		}
	}
	t.adopt()
}

// all returns every table that is not gone.
func (t *Tracker) all() map[nameKey]*Table {
	t.mu.Lock()
	defer t.mu.Unlock()
	tables := make(map[nameKey]*Table, len(t.tables))
	for key, tb := range t.tables {
		tables[key] = tb
	}
	return tables
}

// pause says that the stream is cut: nothing is taken up until it runs again.
func (t *Tracker) pause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running, t.busy = false, false
}

// waiting returns the tables whose definition is to be compared with the
// catalog, and counts them as asked for. A change of definition that was
// logged before the table was watched must be readable by then, or the catalog
// would show what the stream has already left behind.
func (t *Tracker) waiting(visible cache.Position) []*Table {
	t.mu.Lock()
	defer t.mu.Unlock()
	var tables []*Table
	for _, tb := range t.tables {
		if tb.stage == stageWatched && tb.watched <= visible {
			tb.stage = stageAsked
			tables = append(tables, tb)
		}
	}
	return tables
}

// again puts tables back that could not be compared yet.
func (t *Tracker) again(tables []*Table) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tb := range tables {
		if tb.stage == stageAsked {
			tb.stage = stageWatched
		}
	}
}

// learn notes what the catalog says of a table, before it is taken up.
func (t *Tracker) learn(tb *Table, facts tableFacts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tb.facts = facts
}

// takeUp says that the table's definition is the catalog's, and that every
// change of it that the catalog showed has been applied.
func (t *Tracker) takeUp(tables []*Table) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tb := range tables {
		tb.vetted = true
	}
	t.stale = true
	t.adopt()
}

// expired removes and returns the definitions whose time is over. The caller
// marks them a last time, past everything visible.
func (t *Tracker) expired(now time.Time) []retired {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []retired
	next := view{byName: make(map[nameKey]*followed, len(t.view.byName)), byOID: t.view.byOID, heads: t.view.heads}
	for key, f := range t.view.byName {
		keep := f.old[:0:0]
		for _, r := range f.old {
			if now.After(r.until) {
				out = append(out, r)
			} else {
				keep = append(keep, r)
			}
		}
		copied := *f
		copied.old = keep
		next.byName[key] = &copied
	}
	if len(out) > 0 {
		t.view = next
		t.stale = true
		t.adopt()
	}
	return out
}

// anyWaiting tells whether some table has not been asked for yet.
func (t *Tracker) anyWaiting() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tb := range t.tables {
		if tb.stage < stageAsked {
			return true
		}
	}
	return false
}
