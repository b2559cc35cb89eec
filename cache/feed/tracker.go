package feed

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"freshet/cache"
	"freshet/cache/canon"
)

// Column is what the feed must know of one column of a followed table.
type Column struct {
	Name string
	// Kind says how the column's values are made canonical; canon.None for a
	// column that no shape may compare.
	Kind canon.Kind
	// Unsigned is for MySQL integers, whose row images carry no sign.
	Unsigned bool
	// Type is the upstream's own name of the type, as the catalog has it
	// (information_schema.COLUMNS.COLUMN_TYPE or DATA_TYPE, format_type() or
	// the type's bare name); "" leaves it unchecked. A row event whose column
	// count or types do not fit makes the feed coarse.
	Type string
	// Charset is MySQL's character set of a text column ("" otherwise).
	Charset string
}

// TableSpec describes a table as the catalog knows it: every column, in order,
// invisible ones too.
type TableSpec struct {
	Schema, Name string
	OID          uint32 // PostgreSQL's pg_class.oid; 0 on MySQL
	Columns      []Column
	// Heirs are the tables whose rows are read with this one's, at any depth
	// (PostgreSQL: partitions and tables that inherit), by OID, rising. They
	// have all of Columns, by name, and are followed under this definition: one
	// more or one less makes it gone.
	Heirs []uint32
	// Only tells that it is read without its heirs, however many there are.
	Only bool
	// Policies says which row-level security policies stand on the table
	// (PoliciesSQL); "" while none counts.
	Policies string
}

// stores tells whether rows of the table with an OID are this one's.
func (s *TableSpec) stores(oid uint32) bool {
	if s.OID == oid {
		return true
	}
	_, heir := slices.BinarySearch(s.Heirs, oid)
	return heir
}

// Table is a followed table. Its ID belongs to one definition: when the
// definition changes the feed marks everything under the old ID and the next
// Follow makes a new one.
type Table struct {
	ID   cache.TableID
	Spec TableSpec

	since atomic.Uint64 // position, 0 until taken up
	gone  atomic.Bool

	shapes []*Shape // under Tracker.mu
	// vetted is set, under Tracker.mu, once the catalog was found to agree
	// with Spec and everything before that has been applied.
	vetted  bool
	facts   tableFacts // what the catalog says besides; under Tracker.mu
	up      time.Time  // when it was taken up; under Tracker.mu
	counts  tableCounters
	stage   stage          // under Tracker.mu
	watched cache.Position // where it came into the view; under Tracker.mu
}

// tableFacts is what the feed reads of a table from the catalog itself.
type tableFacts struct {
	// derived are the columns computed from others, which some servers leave
	// out of their log; nil: any may be.
	derived []bool
	// known are the columns of which the log has the value that an update
	// or a delete found; nil: all. written says that it has every column that
	// an update wrote and no other.
	known   []bool
	written bool
	// image says the same in the upstream's words, mend what would make all
	// columns known.
	image, mend string
}

// Since returns the position from which on every change of the table is
// marked; a fill whose filledAt is earlier may not be kept. It is false until
// the feed has taken the table up.
func (tb *Table) Since() (cache.Position, bool) {
	p := tb.since.Load()
	return cache.Position(p), p != 0
}

// Gone tells whether the table's definition changed or the feed lost its
// place: plans that name it must be remade, with a new Follow.
func (tb *Table) Gone() bool { return tb.gone.Load() }

// ShapeSpec is a way to narrow a table to rows: by columns compared for
// equality, by a block of one column's values, by both, or by neither, which
// leaves what the answer reads. Columns are ordinals into TableSpec.Columns.
type ShapeSpec struct {
	// Equal are the columns compared for equality, in the order in which a key
	// is hashed.
	Equal []int
	// Range is the column whose blocks are tracked, -1 if none is.
	Range int
	// Level makes the blocks 1<<Level ordinals wide (canon.Ordinal). Each level
	// is a shape of its own; 0 without a range.
	Level uint8
	// Reads are the columns that the answer reads; nil stands for all.
	Reads []int
}

// maxLevel is the level at which a column has two blocks.
const maxLevel = 63

// normal puts the specification in its one form. What is compared is read,
// whether the answer shows it or not.
func (s ShapeSpec) normal() ShapeSpec {
	s.Equal = slices.Clone(s.Equal)
	if s.Range < 0 {
		s.Range, s.Level = -1, 0
	}
	if s.Reads == nil {
		return s
	}
	s.Reads = append(slices.Clone(s.Reads), s.Equal...)
	if s.Range >= 0 {
		s.Reads = append(s.Reads, s.Range)
	}
	slices.Sort(s.Reads)
	s.Reads = slices.Compact(s.Reads)
	return s
}

func (s *ShapeSpec) same(o *ShapeSpec) bool {
	return s.Range == o.Range && s.Level == o.Level && slices.Equal(s.Equal, o.Equal) &&
		slices.Equal(s.Reads, o.Reads) && (s.Reads == nil) == (o.Reads == nil)
}

// fits tells whether a table of so many columns can have the shape.
func (s *ShapeSpec) fits(columns int) bool {
	outside := func(i int) bool { return i < 0 || i >= columns }
	return s.Range < columns && s.Level <= maxLevel && !slices.ContainsFunc(s.Equal, outside) && !slices.ContainsFunc(s.Reads, outside)
}

// Shape is a ShapeSpec of one table that the feed marks the keys of.
//
// The key of a row is hashed from the shape's ID, then the canonical value of
// each column in Equal, then, with a range, the eight bytes, big-endian, of
// canon.Ordinal >> Level. A row with NULL in one of these columns has no key,
// for no comparison finds it. What has no canonical form, or no ordinal, or is
// not in the log marks DepOfShape, which every answer of the shape depends on.
type Shape struct {
	ID cache.ShapeID

	spec  ShapeSpec // normal
	since atomic.Uint64
}

// Since is Table.Since for the shape's keys.
func (sh *Shape) Since() (cache.Position, bool) {
	p := sh.since.Load()
	return cache.Position(p), p != 0
}

// stage says how far the taking up of a table has come; only forward.
type stage uint8

const (
	stageNew     stage = iota // registered
	stageWatched              // in the view: its changes are marked, its DDL noticed
	stageAsked                // its definition is being compared with the catalog
	stageUp                   // Since is set
)

// Marks is what the feed does to the store. *cache.Store is one. All calls
// come from one goroutine at a time.
type Marks interface {
	Mark(cache.Dep, cache.Position)
	SetApplied(cache.Position)
	SetVisible(cache.Position)
	Applied() cache.Position
	Visible() cache.Position
	Flush()
}

// Tracker keeps the tables and shapes that plans depend on. Any goroutine may
// register; the feed takes registrations up between two transactions, so that
// no transaction is hashed for a shape by half.
type Tracker struct {
	marks Marks

	mu        sync.Mutex
	tables    map[nameKey]*Table // those not gone
	nextTable cache.TableID
	nextShape cache.ShapeID
	follower  follower // nil while no feed is open
	view      view     // what transactions are applied with
	busy      bool     // a transaction is being applied: view must not change
	stale     bool     // view lacks a registration
	running   bool     // applied is a place in the current stream
	applied   cache.Position
}

// follower is the feed as its tracker sees it.
type follower interface {
	// vet says in words why a table cannot be followed; it may ask the
	// upstream a question, not wait for locks.
	vet(spec *TableSpec) error
	// wake says that a registration waits to be taken up.
	wake()
	// key folds a table's name as the upstream compares names.
	key(schema, name string) nameKey
}

// nameKey is what a table is registered under. A table read with its heirs and
// the same table read without them are two.
type nameKey struct {
	schema, name string
	family       bool
}

// keyOf is the key of a definition.
func keyOf(f interface {
	key(schema, name string) nameKey
}, spec *TableSpec) nameKey {
	key := f.key(spec.Schema, spec.Name)
	key.family = len(spec.Heirs) > 0
	return key
}

var errNoFeed = errors.New("the change stream is not followed")

// NewTracker makes an empty tracker; nothing can be followed before Open.
func NewTracker(m Marks) *Tracker {
	return &Tracker{marks: m, tables: make(map[nameKey]*Table)}
}

// Follow registers a table, or returns the one registered before with the same
// definition. It does not wait until the feed has taken it up (see Since). The
// error says in words why the table cannot be followed.
func (t *Tracker) Follow(spec TableSpec) (*Table, error) {
	t.mu.Lock()
	f := t.follower
	t.mu.Unlock()
	if f == nil {
		return nil, errNoFeed
	}
	key := keyOf(f, &spec)
	if tb := t.known(key, &spec); tb != nil {
		return tb, nil
	}
	if err := f.vet(&spec); err != nil {
		return nil, fmt.Errorf("table %s.%s cannot be followed: %w", spec.Schema, spec.Name, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.follower != f {
		return nil, errNoFeed
	}
	if tb := t.tables[key]; tb != nil {
		if sameSpec(&tb.Spec, &spec) {
			return tb, nil
		}
		// One of the two was read before a change that the feed has not come
		// to yet. When it does, both are gone and the next Follow is right.
		t.retire(key, tb)
	}
	t.nextTable++
	tb := &Table{ID: t.nextTable, Spec: spec}
	t.tables[key] = tb
	t.changed()
	return tb, nil
}

func (t *Tracker) known(key nameKey, spec *TableSpec) *Table {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tb := t.tables[key]; tb != nil && sameSpec(&tb.Spec, spec) {
		return tb
	}
	return nil
}

func sameSpec(a, b *TableSpec) bool {
	return a.OID == b.OID && a.Only == b.Only && a.Policies == b.Policies && slices.Equal(a.Columns, b.Columns) && slices.Equal(a.Heirs, b.Heirs)
}

// ShapeOf registers a shape of a followed table; the same specification gives
// the same shape. One that does not fit the table is never taken up.
func (t *Tracker) ShapeOf(table *Table, spec ShapeSpec) *Shape {
	spec = spec.normal()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, sh := range table.shapes {
		if sh.spec.same(&spec) {
			return sh
		}
	}
	t.nextShape++
	sh := &Shape{ID: t.nextShape, spec: spec}
	if !spec.fits(len(table.Spec.Columns)) {
		return sh
	}
	table.shapes = append(table.shapes, sh)
	if !table.gone.Load() {
		t.changed()
	}
	return sh
}

// changed takes a registration up at once when no transaction is being
// applied, else at its end. It is called with mu held.
func (t *Tracker) changed() {
	t.stale = true
	t.adopt()
	if t.follower != nil {
		t.follower.wake()
	}
}
