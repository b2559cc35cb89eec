package feed

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
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
	copy   pgCopy // the standby that is followed in its place

	mu     sync.Mutex
	facts  pgFacts
	slot   string
	line   *pgLine              // the stream's, while it runs
	prints map[nameKey]*pgPrint // the definitions that probes watch
	// world is what probes know of the rest of the catalog; "" before the first.
	world, names, builtins string
	// gate is the number of the first transaction that cannot have been logged
	// before the stream began.
	gate uint64

	// The stream's name as a standby, and why it has not got it.
	seatName, seatWhy string
	seatAsked         int64

	probes, queries, vets, leases *pgSide

	// The prober's alone: what the last whole probe saw, when it last asked for
	// names and had the log flushed, and the line on which the probe is prepared.
	lastSnapshot, lastLSN string
	named, flushed        time.Time
	owing                 bool // the last whole probe did not ask for names
	prepared              *pgconn.PgConn

	// The keeper's alone.
	gates   map[*Table]uint64
	misfits map[nameKey]int
	// untidy says that the publication may hold a table that it hurts.
	untidy atomic.Bool
}

// pgPrint is a table's fingerprint in the catalog and those of its heirs, by
// their OIDs. It is never changed.
type pgPrint struct {
	oids  []uint32
	texts []string
}

func newPostgres(f *Feed, dsn, from string) (*pgSource, error) {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = sideTimeout
	}
	s := &pgSource{feed: f, config: config, prints: make(map[nameKey]*pgPrint),
		gates: make(map[*Table]uint64), misfits: make(map[nameKey]int)}
	s.probes, s.queries, s.vets, s.leases = s.newSide(), s.newSide(), s.newSide(), s.newLeaseSide()
	if from != "" {
		return s, s.useStandby(from)
	}
	return s, nil
}

// connect opens a line that reads and writes values in one known way.
func (s *pgSource) connect(ctx context.Context, replication bool) (*pgconn.PgConn, error) {
	if replication {
		return s.connectAs(ctx, streamSettings)
	}
	return s.connectAs(ctx, nil)
}

// asyncName is the name of lines that replicate while no commit waits for them.
const asyncName = "freshet, asynchronous"

// streamSettings are what a line that replicates has besides lineSettings.
var streamSettings = map[string]string{"replication": "database", "application_name": asyncName}

// lineSettings are what sessions on all lines begin with. Their commits wait
// for no standby: Freshet may be one.
var lineSettings = map[string]string{
	"application_name": "freshet", "client_encoding": "UTF8", "DateStyle": "ISO", "IntervalStyle": "postgres",
	"bytea_output": "hex", "extra_float_digits": "3", "search_path": "pg_catalog", "default_transaction_read_only": "off",
	"default_transaction_isolation": "read committed", "statement_timeout": "0", "lock_timeout": "3s",
	"idle_in_transaction_session_timeout": "0", "jit": "off", "plan_cache_mode": "force_generic_plan",
	"max_parallel_workers_per_gather": "0", "synchronous_commit": "local",
}

// connectAs is connect with other settings; "" leaves one as the server has it.
func (s *pgSource) connectAs(ctx context.Context, own map[string]string) (*pgconn.PgConn, error) {
	return dialPg(ctx, s.config, own)
}

func dialPg(ctx context.Context, config *pgconn.Config, own map[string]string) (*pgconn.PgConn, error) {
	settings := maps.Clone(lineSettings)
	maps.Copy(settings, own)
	config = config.Copy()
	for name, value := range settings {
		for given := range config.RuntimeParams {
			if strings.EqualFold(given, name) {
				delete(config.RuntimeParams, given)
			}
		}
		if value != "" {
			config.RuntimeParams[name] = value
		}
	}
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		line, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return swift(line), nil
	}
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	return conn, nil
}

func (s *pgSource) key(schema, name string) nameKey { return nameKey{schema: schema, name: name} }
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
	from := s.config
	if s.copy.config != nil {
		from, st.Replica = s.copy.config, true
	}
	st.From = net.JoinHostPort(from.Host, strconv.Itoa(int(from.Port)))
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

func (s *pgSource) fact() pgFacts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.facts
}

// close drops the publication unless another Freshet uses it.
func (s *pgSource) close(ctx context.Context) {
	for _, l := range []*pgSide{s.probes, s.queries, s.vets, s.leases} {
		l.Close()
	}
	if s.copy.asks != nil {
		defer s.copy.asks.Close()
	}
	if s.fact().identity == "" {
		return // nothing was followed
	}
	last := s.newSide()
	defer last.Close()
	if err := last.Use(ctx, s.dropPublication); err != nil {
		s.feed.log.Warn("feed: the publication was left", "publication", publication, "error", err.Error(),
			"mend", "DROP PUBLICATION "+publication)
	}
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
	if s.copy.config != nil {
		if others, err := s.othersOnStandby(ctx, mine); err != nil || others {
			return err
		}
	}
	return pgExec(ctx, c, "DROP PUBLICATION IF EXISTS "+publication)
}

var _ source = (*pgSource)(nil)
