package feed

import (
	"encoding/binary"
	"slices"

	"freshet/cache"
	"freshet/cache/canon"
	"freshet/cache/feed/row"
)

// maxDeps bounds the keys kept of one transaction (8 bytes each). A larger one
// marks its tables whole.
const maxDeps = 1 << 19

// layout maps a table's columns to those of a row image and makes values
// canonical. It belongs to one pair of table map and definition.
type layout struct {
	// at[i] is the place in the image of the table's column i, -1 if it is not
	// there.
	at []int
	// canonical appends the canonical form of column i, from a value as the
	// stream has it; ok is false when its equality is not proven.
	canonical func(dst []byte, i int, raw []byte) ([]byte, bool)
	spec      *TableSpec
}

// txn is one transaction being applied. It belongs to the stream's goroutine
// and is reused. Nothing is marked before its end: its position is not known
// earlier, and all its marks must be there before applied moves past it.
type txn struct {
	a    *applier
	view view

	deps    []cache.Dep
	touched map[*followed]*touch
	all     bool // everything changed
	schema  []nameKey

	hash  cache.KeyHasher
	value []byte
}

// touch is what a transaction does to one table.
type touch struct {
	rows  bool // some row changed
	whole bool // its keys are not worth keeping
	gone  bool // its definition changed
}

func newTxn(a *applier) *txn {
	return &txn{a: a, touched: make(map[*followed]*touch)}
}

// begin starts a transaction.
func (t *txn) begin() {
	t.view = t.a.tracker.begin()
	t.reset()
}

func (t *txn) reset() {
	t.deps = t.deps[:0]
	clear(t.touched)
	t.all, t.schema = false, t.schema[:0]
}

func (t *txn) touch(f *followed) *touch {
	tc := t.touched[f]
	if tc == nil {
		tc = new(touch)
		t.touched[f] = tc
	}
	return tc
}

// wantsRows notes that rows of the table changed and tells whether they must
// be looked at. Children change with their parent, whole.
func (t *txn) wantsRows(f *followed, kind row.Kind) bool {
	tc := t.touch(f)
	tc.rows = true
	if kind != row.Insert {
		t.cascade(f)
	}
	return !tc.whole && f.table != nil && len(f.shapes) > 0
}

func (t *txn) cascade(f *followed) {
	for _, child := range f.children {
		t.wholeTable(t.view.byName[child])
	}
	for _, child := range f.cascades {
		t.wholeTable(t.view.byName[child])
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
			if c := t.view.byName[child]; c != nil {
				t.drop(c)
				t.schema = append(t.schema, child)
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
	t.a.counts.rows.Add(1)
	if len(t.deps) >= maxDeps {
		t.coarsen()
	}
	if t.touched[f].whole {
		return
	}
	for _, sh := range f.shapes {
		t.shape(sh, kind, l, images)
	}
}

// coarsen gives the keys up for the tables they are of.
func (t *txn) coarsen() {
	for f, tc := range t.touched {
		if tc.rows && f.table != nil && len(f.shapes) > 0 {
			tc.whole = true
		}
	}
	t.deps = t.deps[:0]
}

func (t *txn) shape(sh *Shape, kind row.Kind, l *layout, images *row.Images) {
	if kind == row.Update && sh.spec.Reads != nil && t.unread(sh, l, images) {
		return
	}
	var before, after cache.Dep
	known, none := true, true
	if kind != row.Insert {
		dep, found, ok := t.key(sh, l, images.Old, nil)
		known = known && ok
		if found {
			before, none = dep, false
			t.deps = append(t.deps, dep)
		}
	}
	if kind != row.Delete {
		dep, found, ok := t.key(sh, l, images.New, images.Old)
		known = known && ok
		if found && (none || dep != before) {
			after = dep
			t.deps = append(t.deps, after)
		}
	}
	if !known {
		t.add(cache.DepOfShape(sh.ID))
		t.a.counts.shape.Add(1)
	}
}

// add appends a dependency unless it is the newest one already.
func (t *txn) add(dep cache.Dep) {
	if n := len(t.deps); n > 0 && t.deps[n-1] == dep {
		return
	}
	t.deps = append(t.deps, dep)
}

// unread tells whether an update is proven to have changed none of the columns
// that the shape reads.
func (t *txn) unread(sh *Shape, l *layout, images *row.Images) bool {
	for _, i := range sh.spec.Reads {
		at := l.at[i]
		if at < 0 || at >= len(images.New) {
			return false
		}
		before, after := images.Old[at], images.New[at]
		switch {
		case after.State == row.Unchanged:
		case after.State == row.Absent && before.State != row.Absent:
			// A minimal image holds what the statement wrote.
		case after.State == row.Null && before.State == row.Null:
		case after.State == row.Present && before.State == row.Present && string(after.Raw) == string(before.Raw):
		default:
			return false
		}
	}
	return true
}

// key hashes the shape's columns of one image. found is false when a column is
// NULL, which no comparison finds; ok is false when a column is not known or
// its equality or order is not proven. Columns that the new image leaves out
// have the value they had before.
func (t *txn) key(sh *Shape, l *layout, image, before []row.Value) (dep cache.Dep, found, ok bool) {
	t.hash.Begin(sh.ID)
	for _, i := range sh.spec.Equal {
		if found, ok = t.canonical(i, l, image, before); !found || !ok {
			return 0, false, ok
		}
		t.hash.Value(t.value)
	}
	if i := sh.spec.Range; i >= 0 {
		if found, ok = t.canonical(i, l, image, before); !found || !ok {
			return 0, false, ok
		}
		ordinal, ok := canon.Ordinal(l.spec.Columns[i].Kind, t.value)
		if !ok {
			return 0, false, false
		}
		t.value = binary.BigEndian.AppendUint64(t.value[:0], ordinal>>sh.spec.Level)
		t.hash.Value(t.value)
	}
	return t.hash.Dep(), true, true
}

// canonical puts the canonical form of column i into t.value.
func (t *txn) canonical(i int, l *layout, image, before []row.Value) (found, ok bool) {
	at := l.at[i]
	if at < 0 || at >= len(image) {
		return false, false
	}
	v := image[at]
	if (v.State == row.Absent || v.State == row.Unchanged) && before != nil {
		v = before[at]
	}
	switch v.State {
	case row.Null:
		return false, true
	case row.Present:
		t.value, ok = l.canonical(t.value[:0], i, v.Raw)
		return ok, ok
	}
	return false, false
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
	a.counts.key.Add(uint64(len(t.deps)))
	gone := make(map[nameKey]*Table)
	for f, tc := range t.touched {
		switch {
		case tc.whole:
			a.markWhole(f, at)
			a.counts.table.Add(1)
		case f.table != nil:
			a.marks.Mark(cache.DepOfTable(f.table.ID), at)
		}
		a.markOld(f, at)
		if tc.gone && f.table != nil {
			gone[f.key] = f.table
		}
	}
	if len(t.schema) > 0 {
		// A table registered while the transaction was being applied is not in
		// its view; its definition may have been read before this change.
		for key, tb := range a.tracker.all() {
			if slices.Contains(t.schema, key) {
				gone[key] = tb
			}
		}
	}
	if len(gone) > 0 {
		a.tracker.goneFor(gone)
	}
}
