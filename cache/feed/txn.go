package feed

import (
	"slices"
	"sync/atomic"

	"freshet/cache"
	"freshet/cache/feed/row"
)

// maxDeps bounds the keys kept of one transaction (8 bytes each). A larger one
// marks its tables whole.
const maxDeps = 1 << 19

// txn is one transaction being applied. It belongs to the stream's goroutine
// and is reused. Nothing is marked before its end: its position is not known
// earlier, and all its marks must be there before applied moves past it.
type txn struct {
	a    *applier
	view view

	deps    []cache.Dep
	recent  [recentDeps]cache.Dep // some of deps, to leave repetitions out
	crowded bool                  // recent is in use
	touched map[*followed]*touch
	last    *touch   // the one asked for last
	spare   []*touch // of earlier transactions
	all     bool     // everything changed
	schema  []nameKey

	state rowState
}

// recentDeps is how many keys are remembered to leave repetitions out;
// shortDeps is up to how many repetitions do not matter.
const (
	recentDeps = 1 << 10
	shortDeps  = 64
)

// touch is what a transaction does to one table.
type touch struct {
	of    *followed
	rows  bool // some row changed
	whole bool // its keys are not worth keeping
	gone  bool // its definition changed
	// marks says of each shape what is marked once for all rows.
	marks []shapeMarks
	seen  uint64 // rows looked at
	keys  uint64 // keys among txn.deps, blocks not among them
	block uint64 // blocks among txn.deps
}

// shapeMarks are marks that every row would repeat.
type shapeMarks uint8

const (
	markKey shapeMarks = 1 << iota // the key of a shape that compares nothing
	markAll                        // what every answer of the shape depends on
)

func newTxn(a *applier) *txn {
	return &txn{a: a, touched: make(map[*followed]*touch)}
}

// begin starts a transaction.
func (t *txn) begin() {
	t.view = t.a.tracker.begin()
	t.reset()
}

func (t *txn) reset() {
	t.forget()
	for _, tc := range t.touched {
		tc.of = nil
		t.spare = append(t.spare, tc)
	}
	clear(t.touched)
	t.last, t.all, t.schema = nil, false, t.schema[:0]
}

// forget drops the keys.
func (t *txn) forget() {
	t.deps = t.deps[:0]
	if t.crowded {
		t.crowded = false
		clear(t.recent[:])
	}
}

func (t *txn) touch(f *followed) *touch {
	if t.last != nil && t.last.of == f {
		return t.last
	}
	tc := t.touched[f]
	if tc == nil {
		if n := len(t.spare); n > 0 {
			tc, t.spare = t.spare[n-1], t.spare[:n-1]
		} else {
			tc = new(touch)
		}
		*tc = touch{of: f, marks: append(tc.marks[:0], make([]shapeMarks, len(f.shapes))...)}
		t.touched[f] = tc
	}
	t.last = tc
	return tc
}

// wantsRows notes that rows of the table changed and tells whether they must
// be looked at: for the table's shapes, or to see whether an update reaches
// other tables.
func (t *txn) wantsRows(f *followed, kind row.Kind) bool {
	tc := t.touch(f)
	tc.rows = true
	switch kind {
	case row.Delete:
		t.cascade(f, func(c *cascade) bool { return c.onDelete })
	case row.Update:
		for i := range f.children {
			if c := &f.children[i]; c.onUpdate && t.partly(c.child) {
				return true
			}
		}
	}
	return !tc.whole && f.table != nil && len(f.shapes) > 0
}

// partly tells whether a table is there that is not marked whole already.
func (t *txn) partly(key nameKey) bool {
	f := t.view.byName[key]
	tc := t.touched[f]
	return f != nil && (tc == nil || !tc.whole)
}

// unreadable notes that rows of the table changed in a way that cannot be read.
func (t *txn) unreadable(f *followed, kind row.Kind) {
	t.wholeTable(f)
	if kind != row.Insert {
		t.cascade(f, func(*cascade) bool { return true })
	}
}

// cascade marks the children that a change gets to whole: which of their rows
// it is that changed the log does not say.
func (t *txn) cascade(f *followed, reaches func(*cascade) bool) {
	for i := range f.children {
		if c := &f.children[i]; reaches(c) {
			t.wholeTable(t.view.byName[c.child])
		}
	}
}

// wholeTable marks all of a table at the transaction's end; nil is allowed.
func (t *txn) wholeTable(f *followed) {
	if f != nil {
		t.touch(f).whole = true
	}
}

// redefine marks the table whole and makes its definition gone.
func (t *txn) redefine(key nameKey) {
	if f := t.view.byName[key]; f != nil {
		t.drop(f)
		for _, child := range f.children {
			// Its chain of foreign keys may have changed with it.
			if c := t.view.byName[child.child]; c != nil {
				t.drop(c)
				t.schema = append(t.schema, child.child)
			}
		}
	}
	t.schema = append(t.schema, key)
}

func (t *txn) drop(f *followed) {
	tc := t.touch(f)
	tc.whole, tc.gone = true, true
}

// everything makes the transaction change everything there is.
func (t *txn) everything() { t.all = true }

// row applies one changed row of a table that wantsRows.
func (t *txn) row(f *followed, kind row.Kind, l *layout, images *row.Images) {
	tc := t.touch(f)
	tc.seen++
	if kind == row.Update && len(f.children) > 0 {
		t.cascade(f, func(c *cascade) bool { return c.onUpdate && c.acts(images) })
	}
	if len(t.deps) >= maxDeps {
		t.coarsen()
	}
	if tc.whole || f.table == nil {
		return
	}
	t.state.begin(f.plan, kind, l, images)
	for i := range f.plan.shapes {
		if sp := &f.plan.shapes[i]; t.state.touches(sp) {
			t.shape(tc, i, sp)
		}
	}
}

// coarsen gives the keys up for the tables they are of.
func (t *txn) coarsen() {
	for f, tc := range t.touched {
		if tc.rows && f.table != nil && len(f.shapes) > 0 {
			tc.whole = true
		}
	}
	t.forget()
}

// shape notes the keys that the row had and has.
func (t *txn) shape(tc *touch, i int, sp *shapePlan) {
	if sp.single() {
		tc.marks[i] |= markKey
		return
	}
	var was cache.Dep
	had := false
	if t.state.kind != row.Insert {
		dep, found, ok := t.state.key(sp, before)
		if !ok {
			tc.marks[i] |= markAll
		}
		if found {
			was, had = dep, true
			t.add(tc, sp, dep)
		}
	}
	if t.state.kind != row.Delete {
		dep, found, ok := t.state.key(sp, after)
		if !ok {
			tc.marks[i] |= markAll
		}
		if found && !(had && dep == was) {
			t.add(tc, sp, dep)
		}
	}
}

// add notes a key, unless it was noted lately.
func (t *txn) add(tc *touch, sp *shapePlan, dep cache.Dep) {
	if len(t.deps) >= shortDeps {
		t.crowded = true
		slot := &t.recent[dep%recentDeps]
		if *slot == dep {
			return
		}
		*slot = dep
	}
	t.deps = append(t.deps, dep)
	if sp.block < 0 {
		tc.keys++
	} else {
		tc.block++
	}
}

// end marks everything the transaction changed and then, and only then, moves
// applied to its position. Between the two it tells of changed definitions.
func (t *txn) end(c commit) error {
	a := t.a
	a.mu.Lock()
	c.at = a.place(c.raw)
	t.mark(c.at)
	a.mu.Unlock()
	if t.all {
		a.onSchema("", "")
	} else {
		for _, key := range t.schema {
			a.onSchema(key.schema, key.name)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts.transactions.Add(1)
	a.marks.SetApplied(c.at)
	a.tracker.ended(c.at)
	err := a.ledger.commit(c)
	a.settle()
	t.reset()
	return err
}

func (t *txn) mark(at cache.Position) {
	a := t.a
	if t.all {
		a.markEverything(at)
		a.marks.Flush()
		a.counts.all.Add(1)
		a.tracker.goneFor(a.tracker.all())
		return
	}
	for _, dep := range t.deps {
		a.marks.Mark(dep, at)
	}
	var gone map[nameKey]*Table
	lose := func(key nameKey, tb *Table) {
		if gone == nil {
			gone = make(map[nameKey]*Table)
		}
		gone[key] = tb
	}
	for f, tc := range t.touched {
		t.markTable(f, tc, at)
		if tc.gone && f.table != nil {
			lose(f.key, f.table)
		}
	}
	if len(t.schema) > 0 {
		// A table registered while the transaction was being applied is not in
		// its view; its definition may have been read before this change.
		for key, tb := range a.tracker.all() {
			if slices.Contains(t.schema, key) {
				lose(key, tb)
			}
		}
		// Nor is what was learnt meanwhile of its foreign keys.
		for key, tb := range a.tracker.childrenOf(t.schema) {
			lose(key, tb)
		}
	}
	if len(gone) > 0 {
		a.tracker.goneFor(gone)
	}
}

// markTable marks what the transaction did to one table, but for keys, and
// counts.
func (t *txn) markTable(f *followed, tc *touch, at cache.Position) {
	a := t.a
	switch {
	case tc.whole:
		a.markWhole(f, at)
		a.counts.table.Add(1)
		if f.table != nil {
			f.table.counts.rows.Add(tc.seen)
			f.table.counts.table.Add(1)
		}
		return
	case f.table != nil:
		a.marks.Mark(cache.DepOfTable(f.table.ID), at)
		shapes := uint64(0)
		for i, m := range tc.marks {
			if m&markKey != 0 {
				a.marks.Mark(f.plan.shapes[i].key, at)
				tc.keys++
			}
			if m&markAll != 0 {
				a.marks.Mark(f.plan.shapes[i].all, at)
				shapes++
			}
		}
		t.count(&f.table.counts, tc, shapes)
	}
	a.markOld(f, at)
}

func (t *txn) count(c *tableCounters, tc *touch, shapes uint64) {
	for _, n := range []struct {
		table, all *atomic.Uint64
		n          uint64
	}{{&c.rows, &t.a.counts.rows, tc.seen}, {&c.key, &t.a.counts.key, tc.keys}, {&c.block, &t.a.counts.block, tc.block},
		{&c.shape, &t.a.counts.shape, shapes}} {
		if n.n > 0 {
			n.table.Add(n.n)
			n.all.Add(n.n)
		}
	}
}
