package feed

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// publication is the name of the publication that all Freshets of a database
// share; slotPrefix begins the name of every slot.
const (
	publication = "freshet"
	slotPrefix  = "freshet_"
)

// pgSource follows a PostgreSQL database.
type pgSource struct {
	feed   *Feed
	config *pgconn.Config

	mu     sync.Mutex
	facts  pgFacts
	slot   string
	line   *pgLine             // the stream's, while it runs
	prints map[nameKey]pgPrint // the definitions that probes watch
	// world is what probes know of the rest of the catalog; "" before the first.
	world, names string
	// gate is the number of the first transaction that cannot have been logged
	// before the stream began.
	gate uint64

	probes, queries pgSide
	vetMu           sync.Mutex
	vets            pgSide

	// The prober's alone: what the last probe saw, when it last had the log
	// flushed, and the line on which the probe is prepared.
	lastSnapshot, lastLSN string
	flushed               time.Time
	prepared              *pgconn.PgConn

	// The keeper's alone.
	gates   map[*Table]uint64
	misfits map[nameKey]int
	// untidy says that the publication may hold a table that it hurts.
	untidy atomic.Bool
}

// pgPrint is a table's fingerprint in the catalog.
type pgPrint struct {
	oid  uint32
	text string
}

func newPostgres(f *Feed, dsn string) (*pgSource, error) {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = sideTimeout
	}
	s := &pgSource{feed: f, config: config, prints: make(map[nameKey]pgPrint),
		gates: make(map[*Table]uint64), misfits: make(map[nameKey]int)}
	for _, side := range []*pgSide{&s.probes, &s.queries, &s.vets} {
		side.source = s
	}
	return s, nil
}

// connect opens a line that reads and writes values in one known way.
func (s *pgSource) connect(ctx context.Context, replication bool) (*pgconn.PgConn, error) {
	config := s.config.Copy()
	for name, value := range map[string]string{
		"application_name": "freshet", "client_encoding": "UTF8", "DateStyle": "ISO", "IntervalStyle": "postgres",
		"bytea_output": "hex", "extra_float_digits": "3", "search_path": "pg_catalog", "default_transaction_read_only": "off",
		"default_transaction_isolation": "read committed", "statement_timeout": "0", "lock_timeout": "3s",
		"idle_in_transaction_session_timeout": "0", "jit": "off", "plan_cache_mode": "force_generic_plan",
		"max_parallel_workers_per_gather": "0", "synchronous_commit": "local",
	} {
		for given := range config.RuntimeParams {
			if strings.EqualFold(given, name) {
				delete(config.RuntimeParams, given)
			}
		}
		config.RuntimeParams[name] = value
	}
	if replication {
		config.RuntimeParams["replication"] = "database"
	}
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	return conn, nil
}

func (s *pgSource) key(schema, name string) nameKey { return nameKey{schema, name} }
func (s *pgSource) wake()                           { s.feed.wake() }

// keeps is always false: the slot is a temporary one, so that nothing is left
// upstream to hold its log; it goes with its line.
func (s *pgSource) keeps(error) bool { return false }
func (s *pgSource) forget()          {}

func (s *pgSource) describe(st *Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Dialect, st.Server = "postgres", s.facts.version
	st.Publication, st.Slot = publication, s.slot
	if s.line != nil {
		st.PositionText = lsnText(s.line.applied.Load())
	}
}

func lsnText(lsn uint64) string { return fmt.Sprintf("%X/%X", lsn>>32, uint32(lsn)) }

func parseLSN(text string) (uint64, error) {
	high, low, ok := strings.Cut(text, "/")
	h, err1 := strconv.ParseUint(high, 16, 32)
	l, err2 := strconv.ParseUint(low, 16, 32)
	if !ok || err1 != nil || err2 != nil {
		return 0, fmt.Errorf("feed: %q is not a position in the log", text)
	}
	return h<<32 | l, nil
}

// newSlotName makes a name that no other Freshet has.
func newSlotName() (string, error) {
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", err
	}
	return slotPrefix + hex.EncodeToString(random[:]), nil
}

// quoteIdent writes an identifier, quoteText a literal.
func quoteIdent(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func quoteText(text string) string {
	if strings.Contains(text, `\`) {
		return ` E'` + strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), `'`, `''`) + `'`
	}
	return `'` + strings.ReplaceAll(text, `'`, `''`) + `'`
}

// pgCode returns the server's SQLSTATE, "" for other errors.
func pgCode(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// SQLSTATEs that are told apart (manual, appendix A).
const (
	pgDuplicateObject  = "42710"
	pgUndefinedObject  = "42704"
	pgLockNotAvailable = "55P03"
	pgUndefinedTable   = "42P01"
	pgDeadlock         = "40P01"
	pgUniqueViolation  = "23505"
)

// pgRows runs one statement with text parameters; NULL is nil.
func pgRows(ctx context.Context, c *pgconn.PgConn, sql string, params ...string) ([][][]byte, error) {
	values := make([][]byte, len(params))
	for i, p := range params {
		values[i] = []byte(p)
	}
	r := c.ExecParams(ctx, sql, values, nil, nil, nil).Read()
	return r.Rows, r.Err
}

// pgExec runs statements without parameters.
func pgExec(ctx context.Context, c *pgconn.PgConn, sql string) error {
	_, err := c.Exec(ctx, sql).ReadAll()
	return err
}

// pgSide is a line for questions, opened when first needed and after every
// error that may have broken it. One goroutine uses it at a time.
type pgSide struct {
	source   *pgSource
	conn     *pgconn.PgConn
	identity string // of the server at the other end
}

// use runs do on the line. An old line may turn out to be broken: then do runs
// once more, on a new one.
func (l *pgSide) use(ctx context.Context, do func(*pgconn.PgConn) error) error {
	if l.conn != nil && l.identity != l.source.fact().identity {
		l.drop() // the stream has gone to another server
	}
	old := l.conn != nil
	for {
		if l.conn == nil {
			if err := l.open(ctx); err != nil {
				return err
			}
		}
		err := do(l.conn)
		if err == nil || pgCode(err) != "" && !l.conn.IsClosed() {
			return err
		}
		l.drop()
		if !old || ctx.Err() != nil {
			return err
		}
		old = false
	}
}

// open connects and makes sure that the other end is the server whose log is
// followed.
func (l *pgSide) open(ctx context.Context) error {
	conn, err := l.source.connect(ctx, false)
	if err != nil {
		return err
	}
	identity, err := pgIdentity(ctx, conn)
	if err == nil {
		if want := l.source.fact().identity; want != "" && want != identity {
			err = fmt.Errorf("feed: %s is now another server, or was restarted", l.source.config.Host)
			l.source.feed.cut(err)
		}
	}
	if err != nil {
		return errors.Join(err, conn.Close(ctx))
	}
	l.conn, l.identity = conn, identity
	return nil
}

func (l *pgSide) drop() {
	if l.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		conn := l.conn
		l.conn = nil
		if err := conn.Close(ctx); err != nil {
			return // it was dropped because it does not work
		}
	}
}

// pgIdentity names one run of one server.
func pgIdentity(ctx context.Context, c *pgconn.PgConn) (string, error) {
	r, err := c.Exec(ctx, "SELECT (EXTRACT(epoch FROM pg_catalog.pg_postmaster_start_time()) * 1000000)::bigint::text || ':' || "+
		"current_setting('port')").ReadAll()
	if err != nil {
		return "", err
	}
	if len(r) != 1 || len(r[0].Rows) != 1 || len(r[0].Rows[0]) != 1 {
		return "", errors.New("feed: the server does not say since when it runs")
	}
	return string(r[0].Rows[0][0]), nil
}

func (s *pgSource) fact() pgFacts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.facts
}

// close drops the publication unless another Freshet uses it.
func (s *pgSource) close(ctx context.Context) {
	if s.fact().identity != "" {
		s.queries.drop() // it may be a line to a server that was restarted
		if err := s.queries.use(ctx, func(c *pgconn.PgConn) error { return s.dropPublication(ctx, c) }); err != nil {
			s.feed.log.Warn("feed: the publication was left", "publication", publication, "error", err.Error(),
				"mend", "DROP PUBLICATION "+publication)
		}
	}
	s.probes.drop()
	s.queries.drop()
	s.vetMu.Lock()
	defer s.vetMu.Unlock()
	s.vets.drop()
}

func (s *pgSource) dropPublication(ctx context.Context, c *pgconn.PgConn) error {
	s.mu.Lock()
	mine := s.slot
	s.mu.Unlock()
	rows, err := pgRows(ctx, c, `SELECT 1 FROM pg_replication_slots WHERE slot_name LIKE $1 AND slot_name <> $2 AND active`,
		strings.ReplaceAll(slotPrefix, "_", `\_`)+"%", mine)
	if err != nil || len(rows) > 0 {
		return err
	}
	return pgExec(ctx, c, "DROP PUBLICATION IF EXISTS "+publication)
}

var _ source = (*pgSource)(nil)
