package planner

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"freshet/cache/feed"
)

// Follower is what the planner asks of the feed's tracker. *feed.Tracker is one.
type Follower interface {
	Follow(feed.TableSpec) (*feed.Table, error)
	ShapeOf(*feed.Table, feed.ShapeSpec) *feed.Shape
}

// Config says what a planner plans for.
type Config struct {
	Dialect Dialect
	// Version is the server's, as it gives it (8.0.36, 10.11.6-MariaDB, 15.5).
	Version string
	Querier Querier
	// Tracker follows tables; nil when the feed is off: plans are made, but
	// their Deps say ok = false.
	Tracker Follower
	Log     *slog.Logger
}

const (
	// makers is how many statements are planned at once. A parse takes a core
	// for tens of microseconds and a catalog query waits, so two would do.
	makers = 4
	// makeTimeout bounds the catalog queries of one plan.
	makeTimeout = 10 * time.Second
	maxParams   = 65535
)

// Planner plans statements of one upstream. All methods are safe for many
// goroutines.
type Planner struct {
	config     Config
	log        *slog.Logger
	catalog    *catalog
	scopes     scopes
	statements *clockMap[*Statement]
	templates  *clockMap[*template]
	shapes     shapeSets
	nextID     atomic.Uint64

	mu      sync.Mutex
	waiting map[*Statement][]func() // under mu; told when the plan is there
	queue   []*Statement            // under mu
	running int                     // makers at work, under mu
}

// New makes a planner.
func New(c Config) *Planner {
	if c.Tracker != nil {
		if v := reflect.ValueOf(c.Tracker); v.Kind() == reflect.Pointer && v.IsNil() {
			c.Tracker = nil // a nil *feed.Tracker: the feed is off
		}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Planner{
		config:     c,
		log:        c.Log,
		catalog:    newCatalog(c),
		scopes:     scopes{ids: make(map[Scope]ScopeID)},
		statements: newClockMap[*Statement](maxStatements, maxStatementBytes),
		templates:  newClockMap[*template](maxTemplates, maxTemplateBytes),
		shapes:     shapeSets{of: make(map[*feed.Table]*shapeSet)},
		waiting:    make(map[*Statement][]func()),
	}
}

// Make plans a statement on another goroutine and calls done there once
// st.Plan() has a plan, always. Several calls for one statement share the work.
func (p *Planner) Make(st *Statement, done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	waiters, queued := p.waiting[st]
	p.waiting[st] = append(waiters, done)
	if queued {
		return
	}
	p.queue = append(p.queue, st)
	if p.running < makers {
		p.running++
		go p.make()
	}
}

// make plans what is queued and ends when nothing is.
func (p *Planner) make() {
	for {
		p.mu.Lock()
		if len(p.queue) == 0 {
			p.running--
			p.mu.Unlock()
			return
		}
		st := p.queue[0]
		p.queue = p.queue[1:]
		p.mu.Unlock()

		if st.Plan() == nil {
			ctx, cancel := context.WithTimeout(context.Background(), makeTimeout)
			st.plan.Store(p.settle(ctx, st))
			cancel()
		}
		p.mu.Lock()
		waiters := p.waiting[st]
		delete(p.waiting, st)
		p.mu.Unlock()
		for _, done := range waiters {
			done()
		}
	}
}

// settleTries is how often a plan is made again because the schema changed
// meanwhile, before it is refused for a while.
const settleTries = 3

// settle makes a plan that holds at the moment it is made.
func (p *Planner) settle(ctx context.Context, st *Statement) *Plan {
	for range settleTries {
		if plan := p.plan(ctx, st.scope, st.Scope, st.Text, st.declared); !plan.basis.outdated() {
			return plan
		}
	}
	return p.unsettled(st)
}

// Explain plans a statement at once, for EXPLAIN CREATE CACHE. The error is
// ctx's.
func (p *Planner) Explain(ctx context.Context, scope Scope, sql string) (*Plan, error) {
	plan := p.plan(ctx, p.Scope(scope), scope, sql, nil)
	return plan, ctx.Err()
}

// SchemaChanged drops what the catalog said of a table, and with it the plans
// that were made from it. An empty table stands for all of a schema, both
// empty for everything. A table's name counts in every schema: the one that is
// new may shadow another.
func (p *Planner) SchemaChanged(schema, table string) { p.catalog.changed(schema, table) }

// Stats are counts for the status page.
type Stats struct {
	Statements, StatementBytes, Templates int
}

// Stats counts what the planner holds.
func (p *Planner) Stats() Stats {
	var s Stats
	s.Statements, s.StatementBytes = p.statements.stats()
	s.Templates, _ = p.templates.stats()
	return s
}
