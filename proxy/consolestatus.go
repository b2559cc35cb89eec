package proxy

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"freshet/cache/feed"
	"freshet/planner"
)

// Version is the release; the build sets it.
var Version = "dev"

type showVersion struct{}

func (showVersion) run(context.Context, *console) (*Result, error) {
	return &Result{Tag: "SHOW", Columns: columns("name", "value"), Rows: [][]string{{"version", Version}, {"go", runtime.Version()}}}, nil
}

type showStatus struct{}

func (showStatus) run(_ context.Context, c *console) (*Result, error) {
	r := &Result{Tag: "SHOW", Columns: columns("name", "value")}
	add := func(name string, format string, a ...any) {
		r.Rows = append(r.Rows, []string{name, fmt.Sprintf(format, a...)})
	}
	u := c.upstream
	add("version", "%s", Version)
	add("upstream", "%s %s at %s", u.Server.Kind, u.Server.Version, u.Target.Address())
	add("cache", "%s", u.mode)
	add("consistency", "%s", c.server.level())
	add("max_staleness", "%s", u.maxStaleness)
	add("uptime_seconds", "%d", int(time.Since(c.server.started).Seconds()))
	add("loops", "%d", c.server.config.Loops)
	add("pool", "%s", u.pool)
	add("connections", "%d", c.server.connections.Load())
	add("tls", "%s", c.server.tlsStatus())
	idle, busy, opened := u.links(c.server)
	add("links_idle", "%d", idle)
	add("links_busy", "%d", busy)
	add("links_opened_total", "%d", opened)
	if u.Store != nil {
		st := u.Store.Stats()
		add("entries", "%d", st.Entries)
		add("store_bytes", "%d", st.Bytes)
		add("store_limit_bytes", "%d", st.LimitBytes)
		add("evictions_total", "%d", st.Evictions)
	}
	t := u.sourceTotals()
	for _, s := range []Source{SourceHit, SourceFill, SourceJoin, SourceForward} {
		add("queries_"+s.String(), "%d", t[s])
	}
	u.feedStatus(add)
	return r, nil
}

// feedStatus tells of the feed; loudly when there is none.
func (u *Upstream) feedStatus(add func(string, string, ...any)) {
	if u.Feed == nil {
		add("feed", "off: %s", u.feedOff)
		return
	}
	st := u.Feed.Status()
	state := "following"
	if !st.Up {
		state = "down: " + st.LastError
	}
	add("feed", "%s", state)
	add("feed_from", "%s at %s", feedRole(st), st.From)
	if st.Synchronous {
		add("feed_lease", "%s", orElse(st.NoLease, "held"))
	}
	add("feed_position", "%s", st.PositionText)
	add("feed_proven_ms_ago", "%s", provenAgo(u.Feed))
	add("feed_publication", "%s", st.Publication)
	add("feed_slot", "%s", st.Slot)
	add("feed_rows", "%d", st.Rows)
	add("feed_transactions", "%d", st.Transactions)
	add("feed_tables", "%d", st.Tables)
}

// feedRole names the server that the feed comes from.
func feedRole(st feed.Status) string {
	if st.Replica {
		return "replica"
	}
	return "upstream"
}

func provenAgo(f *feed.Feed) string {
	at := f.ProvenAt()
	if at == 0 {
		return "never"
	}
	return strconv.FormatFloat(float64(feed.Now()-at)/1e6, 'f', 1, 64)
}

func (u *Upstream) links(s *Server) (idle, busy, opened int64) {
	for _, l := range s.allLoops() {
		p := l.laneOf(u).pool
		idle += p.idleCount.Load()
		busy += p.busyCount.Load()
		opened += p.opened.Load()
	}
	return idle, busy, opened
}

func (u *Upstream) sourceTotals() (t [5]uint64) {
	u.stats.each(func(st *laneStats) {
		for i := range t {
			t[i] += st.sources[i].get()
		}
	})
	return t
}

type explainCreate struct{ from string }

func (cmd explainCreate) run(ctx context.Context, c *console) (*Result, error) {
	sql := cmd.from
	if _, err := parseQueryID(sql); err == nil {
		q := c.upstream.Queries.find(sql)
		if q == nil || q.plan.Load() == nil {
			return nil, &ConsoleError{Code: ErrUnknown, Message: fmt.Sprintf("query_id %q was not seen: look it up in SHOW PROXIED QUERIES", sql)}
		}
		return c.explained(q.plan.Load()), nil
	}
	p, err := c.plan(ctx, sql)
	if err != nil {
		return nil, err
	}
	return c.explained(p), nil
}

func (c *console) explained(p *planner.Plan) *Result {
	supported, tracking := "yes", ""
	q := c.upstream.Queries.find(queryID(p.QueryID))
	if p.Cacheable {
		tracking = p.Tracking.String()
	} else {
		supported = "no: " + orElse(p.Reason, "not a read")
	}
	if p.Cacheable && q != nil && q.created() {
		supported = "cached"
	}
	if p.TTLMillis > 0 || q != nil && q.policy().TTL > 0 {
		tracking = "ttl"
	}
	return &Result{Tag: "EXPLAIN", Columns: columns("query_id", "query", "supported", "tracking", "dependencies"),
		Rows: [][]string{{queryID(p.QueryID), p.Query, supported, tracking, strings.Join(p.Explain, "; ")}}}
}

type explainLast struct{}

func (explainLast) run(_ context.Context, c *console) (*Result, error) {
	last := c.last
	destination := "upstream"
	switch last.Source {
	case SourceHit, SourceJoin:
		destination = "cache"
		if q := c.upstream.Queries.at(last.Query); q != nil && q.index >= firstQuery {
			destination = "cache(" + q.name() + ")"
		}
	case SourceFill, SourceConsole:
		destination = last.Source.String()
	}
	return &Result{Tag: "EXPLAIN", Columns: columns("destination", "reason"), Rows: [][]string{{destination, last.Reason}}}, nil
}

// showOptions is SHOW freshet.cache, SELECT @@freshet_cache and the like: one
// row of the session's values.
type showOptions struct{ names, columns []string }

func (cmd showOptions) run(_ context.Context, c *console) (*Result, error) {
	r := &Result{Tag: "SHOW", Rows: [][]string{nil}}
	for i, name := range cmd.names {
		value := c.level.String()
		if name == "cache" {
			value = map[bool]string{false: "on", true: "off"}[c.cacheOff]
		}
		r.Columns = append(r.Columns, ResultColumn{Name: cmd.columns[i]})
		r.Rows[0] = append(r.Rows[0], value)
	}
	return r, nil
}

// setOption is SET freshet.cache or SET freshet.consistency, or RESET of one.
// local: until the transaction ends.
type setOption struct {
	apply func(*Session)
	local bool
	tag   string // "" is SET
}

// parse reads a value and says what was expected when it is none.
func (o *setOption) parse(option, value string) (expected string) {
	if option == "consistency" {
		level, ok := ParseLevel(value)
		switch {
		case value == "default":
			o.apply = func(s *Session) { s.level = s.Loop.server.level() }
		case ok:
			o.apply = func(s *Session) { s.level = level }
		default:
			return wantLevel
		}
		return ""
	}
	switch value {
	case "on", "1", "true", "default":
		o.apply = func(s *Session) { s.CacheOff = false }
	case "off", "0", "false":
		o.apply = func(s *Session) { s.CacheOff = true }
	default:
		return "on or off"
	}
	return ""
}

// run posts the change before the answer, so both reach the loop in order.
func (o setOption) run(_ context.Context, c *console) (*Result, error) {
	c.session.Post(func() {
		if o.local && c.upstream.Target.Dialect == "postgres" { // elsewhere LOCAL means SESSION
			c.session.saveOptions()
		}
		o.apply(c.session)
	})
	return &Result{Tag: orElse(o.tag, "SET")}, nil
}
