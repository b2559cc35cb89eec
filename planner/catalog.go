package planner

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"freshet/cache/canon"
	"freshet/cache/feed"
)

// maxListings bounds the catalog; names that statements make up would fill it.
const maxListings = 20_000

// catalog keeps what the upstream's catalog said, read lazily and shared by
// concurrent plans, until a change of the schema drops it.
type catalog struct {
	config Config

	mu       sync.Mutex
	listings map[string]*listing // by lookup key
	settings *once[settings]     // for as long as the process lives
	builtins *once[builtins]     // PostgreSQL, likewise
	extras   *once[extras]       // PostgreSQL: what users defined
	paths    map[string]*once[string]
	zones    map[string]*once[zone] // MySQL
	hidden   hiddenCode             // PostgreSQL: what users' code may do to sessions
}

func newCatalog(c Config) *catalog {
	k := &catalog{config: c}
	k.reset()
	return k
}

func (k *catalog) reset() {
	k.listings = make(map[string]*listing)
	k.paths = make(map[string]*once[string])
	k.zones = make(map[string]*once[zone])
	k.extras = nil
}

// once is one thing that is loaded by whoever needs it first, while others
// wait. Its fact is dropped when it may have become untrue, even while it is
// being loaded: what comes of the load is then used by nobody for long.
type once[T any] struct {
	fact
	done  chan struct{}
	value T
	err   error
}

// listing is all tables that one name may stand for.
type listing = once[[]*relation]

// relation is one table as the catalog has it.
type relation struct {
	schema, name string
	// reason says why it cannot be followed; "" if it can.
	reason  string
	columns []column
	byName  map[string]int
	spec    feed.TableSpec
	// foreign tells that a column's type is not built in (PostgreSQL).
	foreign bool
	// definition is the query that a view stands for, as the server writes it
	// out; "" for what is no view.
	definition string
	// policies are the conditions of row-level security by which rows are shown;
	// shielded tells that some hold (PostgreSQL).
	policies []string
	shielded bool
	// only is the same table without its heirs; nil if it has none (PostgreSQL).
	only *relation

	table atomic.Pointer[feed.Table] // nil until followed
}

type column struct {
	name    string
	compare canon.MySQLColumn // Kind in both dialects
	charset string            // MySQL
	// collation is MySQL's; PostgreSQL's deterministic ones are all alike.
	collation string
	// generated columns may be missing from row images.
	generated bool
	clock     clock
	held      canon.Held // MySQL
	// builtIn tells that the type came with the server (PostgreSQL).
	builtIn bool
	// names tells that values are numbers of what the catalog names, and are shown
	// by those names: regclass and the like, or a type that holds one (PostgreSQL).
	names bool
}

// clock says how a column's values stand to time.
type clock uint8

const (
	clockText  clock = iota // PostgreSQL: may be text, or what becomes text
	clockNone               // numbers
	clockDate               // with a date
	clockOfDay              // without; it may be completed with today's date or offset
)

func (r *relation) String() string {
	if r.spec.Only {
		return "ONLY " + r.schema + "." + r.name
	}
	return r.schema + "." + r.name
}

// index fills byName; MySQL's column names ignore case.
func (r *relation) index(fold bool) {
	r.byName = make(map[string]int, len(r.columns))
	for i, c := range r.columns {
		if fold {
			r.byName[strings.ToLower(c.name)] = i
		} else {
			r.byName[c.name] = i
		}
	}
}

// follow registers the table with the feed. Two that do so at once get the
// same table: the tracker knows it by its definition.
func (r *relation) follow(f Follower) (*feed.Table, error) {
	if t := r.table.Load(); t != nil {
		return t, nil
	}
	t, err := f.Follow(r.spec)
	if err != nil {
		return nil, err
	}
	r.table.Store(t)
	return t, nil
}

// gone tells that the feed saw the definition change, or lost its place.
func (r *relation) gone() bool {
	t := r.table.Load()
	return t != nil && t.Gone() || r.only != nil && r.only.gone()
}

// load returns what get gives, loading it first if that is nil or dropped. get
// and set are called with k.mu held. A failed load is not kept.
func load[T any](ctx context.Context, k *catalog, get func() *once[T], set func(*once[T]), fetch func(context.Context) (T, error)) (*once[T], error) {
	k.mu.Lock()
	if o := get(); o != nil && !o.dropped.Load() {
		k.mu.Unlock()
		select {
		case <-o.done:
			return o, o.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	o := &once[T]{done: make(chan struct{})}
	set(o)
	k.mu.Unlock()

	defer close(o.done)
	o.value, o.err = fetch(ctx)
	if o.err != nil {
		o.dropped.Store(true)
	}
	return o, o.err
}

// lookup returns the listing under a key. One whose tables the feed has let go
// of is read anew.
func (k *catalog) lookup(ctx context.Context, key string, fetch func(context.Context) ([]*relation, error)) (*listing, error) {
	get := func() *listing {
		if len(k.listings) >= maxListings {
			k.dropAll()
		}
		o := k.listings[key]
		if o != nil && loaded(o) && anyGone(o.value) {
			o.dropped.Store(true)
		}
		return o
	}
	return load(ctx, k, get, func(o *listing) { k.listings[key] = o }, fetch)
}

func loaded[T any](o *once[T]) bool {
	select {
	case <-o.done:
		return o.err == nil
	default:
		return false
	}
}

func anyGone(rels []*relation) bool {
	for _, r := range rels {
		if r.gone() {
			return true
		}
	}
	return false
}

// changed drops what a change of the schema may have made untrue.
func (k *catalog) changed(schema, table string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if table == "" {
		k.dropAll()
		return
	}
	for key, l := range k.listings {
		if strings.EqualFold(key[strings.LastIndexByte(key, 0)+1:], table) {
			l.dropped.Store(true)
			delete(k.listings, key)
		}
	}
	k.dropShared()
}

// dropAll is called with mu held.
func (k *catalog) dropAll() {
	for _, l := range k.listings {
		l.dropped.Store(true)
	}
	clear(k.listings)
	k.dropZones()
	k.dropShared()
}

// dropShared drops what no single table stands for; called with mu held.
func (k *catalog) dropShared() {
	k.hidden.drop()
	for _, o := range k.paths {
		o.dropped.Store(true)
	}
	clear(k.paths)
	if k.extras != nil {
		k.extras.dropped.Store(true)
		k.extras = nil
	}
}

// query runs a catalog query and checks that every row has the columns wanted.
func (k *catalog) query(ctx context.Context, columns int, sql string) ([][]*string, error) {
	if k.config.Querier == nil {
		return nil, fmt.Errorf("no connection to read the catalog with")
	}
	rows, err := k.config.Querier.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if len(r) != columns {
			return nil, fmt.Errorf("the catalog answered %d columns for %d", len(r), columns)
		}
	}
	return rows, nil
}

// text is a cell's text, "" for NULL.
func text(cell *string) string {
	if cell == nil {
		return ""
	}
	return *cell
}
