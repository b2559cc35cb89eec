package proxy

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"freshet/planner"
)

// Policy is what CREATE CACHE … WITH (…) asked for.
type Policy struct {
	TTL          time.Duration `yaml:"ttl,omitempty"`
	MaxStaleness time.Duration `yaml:"max_staleness,omitempty"`
	Consistency  string        `yaml:"consistency,omitempty"` // "", bounded, session
}

// String lists the policy as SHOW CACHES prints it.
func (p Policy) String() string {
	var parts []string
	if p.TTL > 0 {
		parts = append(parts, "ttl "+p.TTL.String())
	}
	if p.Consistency != "" {
		parts = append(parts, "consistency "+p.Consistency)
	}
	if p.MaxStaleness > 0 {
		parts = append(parts, "max staleness "+p.MaxStaleness.String())
	}
	return strings.Join(parts, ", ")
}

// terms is a query's policy as the hit path reads it.
type terms struct {
	Policy
	name    string
	created bool // by CREATE CACHE, not by itself
	level   Level
	hasLvl  bool
}

// Query is one normalised statement that was seen, whether cached or not.
type Query struct {
	index uint32
	id    uint64
	text  string // normalised
	// version is part of every entry's meta: raising it outdates them all.
	version atomic.Uint32
	terms   atomic.Pointer[terms]
	plan    atomic.Pointer[planner.Plan]
}

func (q *Query) policy() Policy { return q.terms.Load().Policy }
func (q *Query) created() bool  { return q.terms.Load().created }
func (q *Query) name() string   { return orElse(q.terms.Load().name, q.idText()) }

// idText is "" for the lines that are no query's own.
func (q *Query) idText() string {
	if q.index < firstQuery {
		return ""
	}
	return queryID(q.id)
}

func queryID(id uint64) string { return fmt.Sprintf("q_%016x", id) }

// promise is the level and bound that hold for this query.
func (q *Query) promise(level Level, bound time.Duration) (Level, time.Duration) {
	t := q.terms.Load()
	if t.hasLvl {
		level = t.level
	}
	if t.MaxStaleness > 0 {
		bound = t.MaxStaleness
	}
	return level, bound
}

// The first lines of the registry are shared.
const (
	noQuery        = 0 // statements without a plan
	furtherQueries = 1 // those past maxQueries
	firstQuery     = 2
)

// Queries is the registry of one upstream's queries.
type Queries struct {
	mu    sync.RWMutex
	byID  map[uint64]*Query
	list  atomic.Pointer[[]*Query] // by index; only grows, replaced whole
	saved map[uint64]*SavedQuery
	store *queryFile
}

func newQueries(store *queryFile) (*Queries, error) {
	qs := &Queries{byID: map[uint64]*Query{}, saved: map[uint64]*SavedQuery{}, store: store}
	none := &Query{index: noQuery, text: "(statements without a plan: writes, settings, reads inside transactions and the like)"}
	further := &Query{index: furtherQueries, text: "(all further queries)"}
	none.terms.Store(&terms{})
	further.terms.Store(&terms{})
	qs.list.Store(&[]*Query{none, further})
	saved, err := store.load()
	if err != nil {
		return nil, err
	}
	for _, sq := range saved {
		qs.saved[sq.id] = sq
		qs.add(sq.id, sq.Query)
	}
	return qs, nil
}

// at finds a query by the index in an entry's meta.
func (qs *Queries) at(index uint32) *Query {
	list := *qs.list.Load()
	if int(index) >= len(list) {
		return nil
	}
	return list[index]
}

func (qs *Queries) all() []*Query { return *qs.list.Load() }

// told are the queries that are told apart.
func (qs *Queries) told() []*Query { return qs.all()[firstQuery:] }

// of finds or makes the query of a plan.
func (qs *Queries) of(p *planner.Plan) *Query {
	qs.mu.RLock()
	q := qs.byID[p.QueryID]
	qs.mu.RUnlock()
	if q == nil {
		qs.mu.Lock()
		q = qs.add(p.QueryID, p.Query)
		qs.mu.Unlock()
	}
	if q.plan.Load() != p && q.index >= firstQuery {
		q.plan.Store(p)
	}
	return q
}

// add is called with mu held (or before the registry is shared).
func (qs *Queries) add(id uint64, text string) *Query {
	if q := qs.byID[id]; q != nil {
		return q
	}
	list := *qs.list.Load()
	if len(list) >= maxQueries {
		return list[furtherQueries]
	}
	q := &Query{index: uint32(len(list)), id: id, text: text}
	t := &terms{}
	if sq := qs.saved[id]; sq != nil {
		t = sq.terms()
	}
	q.terms.Store(t)
	qs.byID[id] = q
	// Readers hold shorter headers of the same array and never look past them.
	list = append(list, q)
	qs.list.Store(&list)
	return q
}

// find looks a saved query up by name or query id.
func (qs *Queries) find(name string) *Query {
	for _, q := range qs.told() {
		if strings.EqualFold(q.terms.Load().name, name) || strings.EqualFold(q.idText(), name) {
			return q
		}
	}
	return nil
}

// save makes a query a saved one, on disk first.
func (qs *Queries) save(sq *SavedQuery) (*Query, error) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	old, had := qs.saved[sq.id]
	qs.saved[sq.id] = sq
	if err := qs.store.write(qs.saved); err != nil {
		if delete(qs.saved, sq.id); had {
			qs.saved[sq.id] = old
		}
		return nil, err
	}
	q := qs.add(sq.id, sq.Query)
	q.terms.Store(sq.terms())
	q.version.Add(1)
	return q, nil
}

// drop forgets saved queries, on disk first; what they cached is outdated.
func (qs *Queries) drop(which ...*Query) error {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	left := map[uint64]*SavedQuery{}
	for id, sq := range qs.saved {
		left[id] = sq
	}
	for _, q := range which {
		delete(left, q.id)
	}
	if err := qs.store.write(left); err != nil {
		return err
	}
	qs.saved = left
	for _, q := range which {
		q.terms.Store(&terms{})
		q.version.Add(1)
	}
	return nil
}

// alter changes a saved query's policy: what the command names is set, the
// rest stays.
func (qs *Queries) alter(q *Query, p Policy) error {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	sq := *qs.saved[q.id]
	if p.TTL > 0 {
		sq.TTL = p.TTL
	}
	if p.MaxStaleness > 0 {
		sq.MaxStaleness = p.MaxStaleness
	}
	if p.Consistency != "" {
		sq.Consistency = p.Consistency
	}
	next := map[uint64]*SavedQuery{}
	for id, other := range qs.saved {
		next[id] = other
	}
	next[q.id] = &sq
	if err := qs.store.write(next); err != nil {
		return err
	}
	qs.saved = next
	q.terms.Store(sq.terms())
	q.version.Add(1)
	return nil
}
