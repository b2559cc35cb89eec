package feed

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// pgFacts is what a server says of itself.
type pgFacts struct {
	version  string
	number   int    // server_version_num
	identity string // of this run of this server

	walLevel                                string
	slots, slotsMost, senders, sendersMost  int
	standby, replication, create, published bool
	feedback                                bool // hot_standby_feedback
	elsewhere                               bool // the stream is not this server's
	user, database                          string
}

const pgFactsSQL = `SELECT current_setting('server_version'), current_setting('server_version_num'), current_setting('wal_level'),
	(SELECT count(*) FROM pg_replication_slots), current_setting('max_replication_slots'),
	(SELECT count(*) FROM pg_stat_replication), current_setting('max_wal_senders'),
	pg_is_in_recovery(), (SELECT rolsuper OR rolreplication FROM pg_roles WHERE rolname = current_user),
	has_database_privilege(current_database(), 'CREATE'),
	EXISTS (SELECT FROM pg_publication WHERE pubname = 'freshet' AND pg_has_role(pubowner, 'USAGE')),
	current_user, current_database(), current_setting('hot_standby_feedback') = 'on'`

func readPgFacts(ctx context.Context, c *pgconn.PgConn) (pgFacts, error) {
	rows, err := pgRows(ctx, c, pgFactsSQL)
	if err != nil {
		return pgFacts{}, err
	}
	f, err := parsePgFacts(rows)
	if err != nil {
		return f, err
	}
	f.identity, err = pgIdentity(ctx, c)
	return f, err
}

// parsePgFacts reads the answer to pgFactsSQL.
func parsePgFacts(rows [][][]byte) (pgFacts, error) {
	if len(rows) != 1 || len(rows[0]) != 14 {
		return pgFacts{}, errors.New("feed: the server does not tell its settings")
	}
	row := rows[0]
	var err error
	number := func(i int) int {
		n, failed := strconv.Atoi(string(row[i]))
		err = errors.Join(err, failed)
		return n
	}
	is := func(i int) bool { return string(row[i]) == "t" }
	f := pgFacts{
		version: string(row[0]), number: number(1), walLevel: string(row[2]),
		slots: number(3), slotsMost: number(4), senders: number(5), sendersMost: number(6),
		standby: is(7), replication: is(8), create: is(9), published: is(10),
		user: string(row[11]), database: string(row[12]), feedback: is(13),
	}
	if err != nil {
		return f, fmt.Errorf("feed: the server's settings are not numbers: %w", err)
	}
	return f, nil
}

// oldestPostgres is the oldest version whose snapshots can be asked for.
const oldestPostgres = 130000

// needs lists what the server must have.
func (f pgFacts) needs() []need {
	own := []need{
		{f.slots < f.slotsMost, fmt.Sprintf("%d of %d replication slots are taken", f.slots, f.slotsMost),
			fmt.Sprintf("ALTER SYSTEM SET max_replication_slots = %d; then restart the server", f.slotsMost+4)},
		{f.senders < f.sendersMost, fmt.Sprintf("%d of %d WAL senders are taken", f.senders, f.sendersMost),
			fmt.Sprintf("ALTER SYSTEM SET max_wal_senders = %d; then restart the server", f.sendersMost+4)},
	}
	if f.elsewhere {
		own = nil
	}
	return append(own, []need{
		{f.number >= oldestPostgres, "the server is PostgreSQL " + f.version, "upgrade to PostgreSQL 13 or later"},
		{!f.standby, either(f.standby, "the server is a standby", "the server is a primary"), "point Freshet at the primary"},
		{f.walLevel == "logical", "wal_level is " + f.walLevel, "ALTER SYSTEM SET wal_level = 'logical'; then restart the server"},
		{f.replication, "role " + f.user + either(f.replication, " may replicate", " may not replicate"), "ALTER ROLE " + quoteIdent(f.user) + " REPLICATION"},
		{f.create || f.published, "role " + f.user + either(f.create || f.published, " may publish in database ", " may not create a publication in database ") + f.database,
			"GRANT CREATE ON DATABASE " + quoteIdent(f.database) + " TO " + quoteIdent(f.user)},
	}...)
}

// either words a fact as it is.
func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// check is Open's look at the server.
func (s *pgSource) check(ctx context.Context) error {
	conn, err := s.connect(ctx, false)
	if err != nil {
		return err
	}
	facts, err := readPgFacts(ctx, conn)
	facts.elsewhere = s.copy.config != nil
	if err = errors.Join(err, conn.Close(ctx)); err != nil {
		return err
	}
	if err := facts.refuse(); err != nil {
		return err
	}
	if err := s.checkStream(ctx, facts); err != nil {
		return err
	}
	s.mu.Lock()
	s.facts = facts
	s.mu.Unlock()
	return nil
}

// checkStream is check's look at the line that is to bring the stream.
func (s *pgSource) checkStream(ctx context.Context, facts pgFacts) error {
	if s.copy.config != nil {
		return s.checkStandby(ctx, facts)
	}
	// A line that replicates is let in by rules of its own (pg_hba.conf).
	replica, err := s.connect(ctx, true)
	if err != nil {
		return fmt.Errorf("the server cannot be followed: %w; mend: allow replication for %s in pg_hba.conf", err, facts.user)
	}
	return replica.Close(ctx)
}

// checkStandby is check's look at the replica; one that is not there may come.
func (s *pgSource) checkStandby(ctx context.Context, up pgFacts) error {
	conn, err := s.connectStandby(ctx)
	if err != nil {
		if pgCode(err) == "" && ctx.Err() == nil {
			s.feed.journal.failed("the replica cannot be reached", err)
			return nil
		}
		return err
	}
	defer closePg(conn)
	return s.inspectStandby(ctx, conn, up)
}

func (f pgFacts) refuse() error {
	return refuse(f.needs(), unfollowable)
}
