package proxy

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"freshet/cache"
	"freshet/cache/feed"
	"freshet/planner"
	"freshet/planner/mysql"
	"freshet/planner/scan"
)

// ServerInfo is what the upstream says of itself.
type ServerInfo struct {
	Kind    string // "mysql", "mariadb" or "postgres"
	Version string // VERSION() or server_version, whole
	// Collation is the id of collation_server (MySQL and MariaDB).
	Collation int
	// SQLMode is the global sql_mode (MySQL and MariaDB) when Freshet started.
	SQLMode string
}

// Upstream is one database server and all that is kept of it: its store, its
// feed, its planner and its queries.
type Upstream struct {
	Target         Target
	Listen         string
	Protocol       Protocol
	Store          *cache.Store // nil with --cache off
	Feed           *feed.Feed   // nil when off
	Planner        *planner.Planner
	Queries        *Queries
	ConnectTimeout time.Duration
	Server         ServerInfo

	log          *slog.Logger
	mode         CacheMode
	maxStaleness time.Duration
	pool         PoolMode
	linkWait     time.Duration
	budget       budget
	stats        upstreamStats
	contexts     contexts
	feedOff      string // why, when Feed is nil
	feedFrom     string // DSN of the replica that the feed comes from; "" is the upstream
	db           *sql.DB
	unreachable  atomic.Bool   // as the side connection last found it, see defaults.go
	generation   atomic.Uint64 // of the server's defaults, see defaults.go
	lookNow      chan struct{} // has the defaults looked at at once
	unseen       unseen
	// users are the server's; they change with SIGHUP.
	users *atomic.Pointer[users]
	// proofLate is the ticket that was proven when a session last waited for its
	// barrier in vain.
	proofLate atomic.Uint64
	dialect   sync.Map // the Protocol's own, see Shared
}

// Shared is a value of the dialect's own, made once for each key and shared by
// all loops.
func (u *Upstream) Shared(key any, make func() any) any {
	if v, ok := u.dialect.Load(key); ok {
		return v
	}
	v, _ := u.dialect.LoadOrStore(key, make())
	return v
}

// Context interns everything besides text and parameters that can change an
// answer. Equal bytes give equal ids; an id is never given to other bytes.
func (u *Upstream) Context(canonical []byte) uint64 { return u.contexts.id(canonical) }

// contexts is bounded in bytes: past the bound all are forgotten and later ids
// are new, which costs misses.
type contexts struct {
	mu   sync.Mutex
	ids  map[string]uint64
	size int
	next uint64
}

// Bounds in bytes, with contextOverhead for each.
const (
	maxContexts     = 16 << 20
	contextOverhead = 64
)

func (c *contexts) id(b []byte) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id, ok := c.ids[string(b)]; ok {
		return id
	}
	c.size += len(b) + contextOverhead
	if c.ids == nil || c.size > maxContexts {
		c.ids, c.size = map[string]uint64{}, len(b)+contextOverhead
	}
	c.next++
	c.ids[string(b)] = c.next
	return c.next
}

// openUpstream connects, looks the server over and starts its feed.
func openUpstream(ctx context.Context, c Config, uc UpstreamConfig, proto Protocol, log *slog.Logger) (*Upstream, error) {
	t, err := ParseTarget(uc.DSN)
	if err != nil {
		return nil, err
	}
	u := &Upstream{Target: t, Listen: uc.Listen, Protocol: proto, ConnectTimeout: t.ConnectTimeout,
		log: log.With("upstream", t.Address()), mode: c.Cache, maxStaleness: c.MaxStaleness, pool: c.Pool,
		linkWait: c.LinkWait, budget: budget{free: c.MaxLinks}, lookNow: make(chan struct{}, 1)}
	if u.feedFrom, err = ParseFeedFrom(uc.FeedFrom, t); err != nil {
		return nil, err
	}
	if err := u.connect(ctx); err != nil {
		return nil, fmt.Errorf("upstream %s://%s@%s/%s: %w", t.URL.Scheme, t.User, t.Address(), t.Database, t.Explain(ctx, err))
	}
	var file string
	if c.StoreDir != "" {
		file = filepath.Join(c.StoreDir, fmt.Sprintf("queries-%s-%s-%s.yaml", t.Dialect, t.Host, t.Port))
	}
	if u.Queries, err = newQueries(&queryFile{path: file, read: u.reading()}); err != nil {
		return nil, fmt.Errorf("saved queries: %w", err)
	}
	if u.mode == CacheOff {
		u.feedOff = "the cache is off"
	} else if u.Store, err = cache.New(cache.Options{LimitBytes: c.storeLimit()}); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	u.unseen.may.Store(u.Server.Kind == "mariadb")
	u.startFeed(ctx, c)
	return u, nil
}

// connect opens the side connection and asks the server what it is.
func (u *Upstream) connect(ctx context.Context) error {
	connector, err := u.Target.connector()
	if err != nil {
		return err
	}
	u.db = sql.OpenDB(connector)
	u.db.SetMaxOpenConns(4)
	u.db.SetMaxIdleConns(1)
	ctx, cancel := context.WithTimeout(ctx, u.ConnectTimeout)
	defer cancel()
	if u.Target.Dialect == "postgres" {
		u.Server.Kind = "postgres"
		return u.db.QueryRowContext(ctx, "SHOW server_version").Scan(&u.Server.Version)
	}
	err = u.db.QueryRowContext(ctx, `SELECT VERSION(), (SELECT ID FROM information_schema.COLLATIONS
		WHERE COLLATION_NAME = @@GLOBAL.collation_server AND ID IS NOT NULL LIMIT 1), @@GLOBAL.sql_mode`).Scan(
		&u.Server.Version, &u.Server.Collation, &u.Server.SQLMode)
	u.Server.Kind = "mysql"
	if strings.Contains(u.Server.Version, "MariaDB") {
		u.Server.Kind = "mariadb"
	}
	return err
}

// reading says how the server reads a text whose session changed nothing.
func (u *Upstream) reading() scan.Options {
	if u.Target.Dialect == "postgres" {
		return scan.Options{Postgres: true, AnsiQuotes: true, NoBackslash: true}
	}
	return mysql.ParseMode(u.Server.SQLMode).Options()
}

// marksOf is what the feed may do to the store. Tests put faults in between.
var marksOf = func(s *cache.Store) feed.Marks { return s }

// startFeed starts planner and feed, in this order: the feed tells the planner
// of changed definitions. A feed that cannot start is not fatal: Freshet then
// forwards, and says so loudly.
func (u *Upstream) startFeed(ctx context.Context, c Config) {
	var tracker *feed.Tracker
	if u.Store != nil {
		tracker = feed.NewTracker(marksOf(u.Store))
	}
	u.Planner = planner.New(planner.Config{Dialect: u.plannerDialect(), Version: u.Server.Version,
		Querier: sideQuerier{u.db}, Tracker: tracker, Log: u.log})
	if u.Store == nil {
		return
	}
	if c.Feed == "off" {
		u.feedOff = "--feed off"
	} else if f, err := feed.Open(ctx, feed.Config{
		Dialect: u.Target.Dialect, DSN: u.Target.URL.String(), From: u.feedFrom, Store: marksOf(u.Store), Tracker: tracker, Log: u.log,
		OnSchemaChange: u.schemaChanged, Synchronous: c.Consistency == LevelLinearizable.String(),
	}); err != nil {
		u.feedOff = err.Error()
	} else {
		u.Feed = f
		if u.feedFrom != "" {
			u.log.Info("the change feed comes from a replica", "replica", f.Status().From)
		}
	}
	if u.Feed == nil {
		u.log.Warn("the change feed is off: only caches WITH (TTL …) are kept", "cause", u.feedOff)
	}
}

func (u *Upstream) plannerDialect() planner.Dialect {
	switch u.Server.Kind {
	case "mariadb":
		return planner.MariaDB
	case "mysql":
		return planner.MySQL
	}
	return planner.Postgres
}

func (u *Upstream) close() error {
	if u.Feed != nil {
		u.Feed.Close()
	}
	return errors.Join(u.db.Close())
}

// sideQuerier answers the planner's catalog queries.
type sideQuerier struct{ db *sql.DB }

func (s sideQuerier) Query(ctx context.Context, q string) (rows [][]*string, err error) {
	r, err := s.db.QueryContext(ctx, q)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	cols, err := r.Columns()
	if err != nil {
		return nil, err
	}
	for r.Next() {
		row := make([]*string, len(cols))
		scan := make([]any, len(cols))
		for i := range row {
			scan[i] = &row[i]
		}
		if err := r.Scan(scan...); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, r.Err()
}
