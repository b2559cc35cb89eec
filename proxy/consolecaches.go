package proxy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"freshet/planner"
)

type createCache struct {
	name        string
	ifNotExists bool
	policy      Policy
	from        string
}

func (cmd createCache) run(ctx context.Context, c *console) (*Result, error) {
	qs := c.upstream.Queries
	if cmd.name != "" {
		if q := qs.find(cmd.name); q != nil && q.created() {
			return existing("name", cmd.name, cmd.ifNotExists)
		}
	}
	sq := &SavedQuery{Name: cmd.name, Database: c.scope.Database, Policy: cmd.policy}
	if id, err := parseQueryID(cmd.from); err == nil {
		q := qs.find(cmd.from)
		if q == nil {
			return nil, &ConsoleError{Code: ErrUnknown, Message: fmt.Sprintf("query_id %q was not seen: look it up in SHOW PROXIED QUERIES", cmd.from)}
		}
		if p := q.plan.Load(); p != nil {
			if err := mayCache(p, cmd.policy); err != nil {
				return nil, err
			}
		}
		sq.id, sq.Query = id, q.text
	} else {
		p, err := c.plan(ctx, cmd.from)
		if err != nil {
			return nil, err
		}
		if err := mayCache(p, cmd.policy); err != nil {
			return nil, err
		}
		sq.id, sq.Query = p.QueryID, p.Query
	}
	sq.QueryID = queryID(sq.id)
	if q := qs.find(sq.QueryID); q != nil && q.created() {
		return existing("query", q.name(), cmd.ifNotExists)
	}
	if _, err := qs.save(sq); err != nil {
		return nil, err
	}
	return &Result{Tag: "CREATE CACHE"}, nil
}

func existing(what, name string, fine bool) (*Result, error) {
	if fine {
		return &Result{Tag: "CREATE CACHE"}, nil
	}
	return nil, &ConsoleError{Code: ErrExists, Message: fmt.Sprintf("a cache for this %s exists already: %s", what, name)}
}

// mayCache refuses what would never be kept.
func mayCache(p *planner.Plan, policy Policy) error {
	if p.Cacheable || policy.TTL > 0 && p.Class == planner.ClassRead {
		return nil
	}
	code := ErrUnsupported
	if strings.Contains(p.Reason, "could not be parsed") {
		code = ErrSyntax
	}
	return &ConsoleError{Code: code, Message: "this statement cannot be cached: " + orElse(p.Reason, "not a read")}
}

func (c *console) plan(ctx context.Context, sql string) (*planner.Plan, error) {
	p, err := c.upstream.Planner.Explain(ctx, c.scope, sql)
	if err != nil {
		return nil, &ConsoleError{Code: ErrSyntax, Message: err.Error()}
	}
	return p, nil
}

// saved finds a query that CREATE CACHE made.
func (c *console) saved(name string) (*Query, error) {
	if q := c.upstream.Queries.find(name); q != nil && q.created() {
		return q, nil
	}
	return nil, &ConsoleError{Code: ErrUnknown, Message: fmt.Sprintf("there is no cache %q: see SHOW CACHES", name)}
}

type alterCache struct {
	name   string
	policy Policy
}

func (cmd alterCache) run(_ context.Context, c *console) (*Result, error) {
	q, err := c.saved(cmd.name)
	if err != nil {
		return nil, err
	}
	if err := c.upstream.Queries.alter(q, cmd.policy); err != nil {
		return nil, err
	}
	return &Result{Tag: "ALTER CACHE"}, nil
}

type dropCache struct {
	name     string
	ifExists bool
}

func (cmd dropCache) run(_ context.Context, c *console) (*Result, error) {
	q, err := c.saved(cmd.name)
	if err != nil {
		if cmd.ifExists {
			return &Result{Tag: "DROP CACHE"}, nil
		}
		return nil, err
	}
	if err := c.upstream.Queries.drop(q); err != nil {
		return nil, err
	}
	return &Result{Tag: "DROP CACHE"}, nil
}

type dropAll struct{}

func (dropAll) run(_ context.Context, c *console) (*Result, error) {
	var all []*Query
	for _, q := range c.upstream.Queries.told() {
		if q.created() {
			all = append(all, q)
		}
	}
	if err := c.upstream.Queries.drop(all...); err != nil {
		return nil, err
	}
	return &Result{Tag: "DROP ALL CACHES"}, nil
}

type flushCache struct{ name string }

func (cmd flushCache) run(_ context.Context, c *console) (*Result, error) {
	q := c.upstream.Queries.find(cmd.name)
	if q == nil {
		return nil, &ConsoleError{Code: ErrUnknown, Message: fmt.Sprintf("there is no cache %q: see SHOW CACHES", cmd.name)}
	}
	q.version.Add(1)
	return &Result{Tag: "FLUSH CACHE"}, nil
}

type flushAll struct{}

func (flushAll) run(_ context.Context, c *console) (*Result, error) {
	if c.upstream.Store != nil {
		c.upstream.Store.Flush()
	}
	return &Result{Tag: "FLUSH ALL CACHES"}, nil
}

type showCaches struct{ like, queryID string }

func (cmd showCaches) run(_ context.Context, c *console) (*Result, error) {
	r := &Result{Tag: "SHOW", Columns: columns("query_id", "name", "query", "properties", "#count", "#hits", "#misses",
		"#stale", "#entries", "#bytes", "#hit_ratio", "#saved_ms")}
	sizes := c.upstream.sizes()
	for _, q := range c.upstream.Queries.told() {
		t := c.upstream.stats.totals(q.index)
		if !q.created() && t.Hits+t.Joins+t.Cold+t.Stale == 0 {
			continue // proxied only
		}
		if cmd.queryID != "" && !strings.EqualFold(cmd.queryID, q.idText()) ||
			cmd.like != "" && !like(q.name(), cmd.like) && !like(q.text, cmd.like) {
			continue
		}
		hits := t.Hits + t.Joins
		ratio := 0.0
		if n := t.count(); n > 0 {
			ratio = float64(hits) / float64(n)
		}
		var saved uint64
		if ran := t.Cold + t.Stale + t.Forwards; ran > 0 {
			saved = t.UpstreamMicros / ran * hits / 1000
		}
		r.Rows = append(r.Rows, []string{q.idText(), q.name(), q.text, q.policy().String(), decimal(t.count()), decimal(hits),
			decimal(t.Cold + t.Stale), decimal(t.Stale), decimal(sizes[q.index].entries), decimal(sizes[q.index].bytes),
			strconv.FormatFloat(ratio, 'f', 4, 64), decimal(saved)})
	}
	return r, nil
}

type showProxied struct{ limit int }

func (cmd showProxied) run(_ context.Context, c *console) (*Result, error) {
	r := &Result{Tag: "SHOW", Columns: columns("query_id", "query", "supported", "#count", "#upstream_ms")}
	type row struct {
		q *Query
		t queryTotals
	}
	var rows []row
	for _, q := range c.upstream.Queries.all() {
		if t := c.upstream.stats.totals(q.index); t.Forwards > 0 {
			rows = append(rows, row{q, t})
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(b.t.UpstreamMicros, a.t.UpstreamMicros) })
	if cmd.limit >= 0 && len(rows) > cmd.limit {
		rows = rows[:cmd.limit]
	}
	for _, x := range rows {
		r.Rows = append(r.Rows, []string{x.q.idText(), x.q.text, x.q.supported(), decimal(x.t.Forwards), decimal(x.t.UpstreamMicros / 1000)})
	}
	return r, nil
}

func (q *Query) supported() string {
	p := q.plan.Load()
	switch {
	case q.index == furtherQueries:
		return "no: too many distinct queries to tell apart"
	case p == nil:
		return "no: not planned"
	case p.Cacheable && q.created():
		return "cached"
	case p.Cacheable:
		return "yes"
	}
	return "no: " + orElse(p.Reason, "not a read")
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// like matches SQL's LIKE without regard to case.
func like(s, pattern string) bool {
	return likeFold(strings.ToLower(s), strings.ToLower(pattern))
}

// likeFold backtracks to the last % only, so it takes len(s)*len(p) steps at most.
func likeFold(s, p string) bool {
	si, pi, star, mark := 0, 0, -1, 0
	for si < len(s) {
		switch {
		case pi < len(p) && p[pi] == '%':
			star, mark = pi, si
			pi++
		case pi < len(p) && (p[pi] == '_' || p[pi] == s[si]):
			si, pi = si+1, pi+1
		case star >= 0:
			mark++
			si, pi = mark, star+1
		default:
			return false
		}
	}
	return strings.Trim(p[pi:], "%") == ""
}

// size is what one query's entries take.
type size struct{ entries, bytes uint64 }

// sizes walks the store once and adds up by query.
func (u *Upstream) sizes() map[uint32]size {
	m := map[uint32]size{}
	if u.Store == nil {
		return m
	}
	u.Store.Visit(func(meta [2]uint64, bytes int) {
		index := uint32(meta[0])
		if q := u.Queries.at(index); q == nil || q.version.Load() != uint32(meta[0]>>32) {
			return
		}
		z := m[index]
		m[index] = size{z.entries + 1, z.bytes + uint64(bytes)}
	})
	return m
}
