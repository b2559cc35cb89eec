package feed

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"freshet/cache/feed/side"
)

// A physical standby replays the primary's own log, so positions and the
// numbers of transactions are the primary's. Its logical decoding (PostgreSQL 16
// and later, manual, "Logical Decoding Concepts") sends what was replayed.
//
// A standby that is promoted goes on at the same place with a log of its own, its
// timeline, and so does its stream. So the stream having come past the primary's
// end proves nothing by itself: the standby must have replayed up to there on the
// primary's timeline, which it is asked beside the stream. What it says stays
// true whatever it becomes later: a new timeline begins where the old was left.

// oldestDecodingStandby is the oldest version that decodes on a standby.
const oldestDecodingStandby = 160000

// pgCopy is what is known of the standby whose stream is followed.
type pgCopy struct {
	config *pgconn.Config // nil: the upstream's own stream is followed
	asks   *pgSide
	// system and timeline are the primary's, when the stream began, and run is
	// the standby's: see pgIdentity. pgSource.mu.
	system, timeline, run string
}

// useStandby makes the standby at this DSN the one that is followed.
func (s *pgSource) useStandby(dsn string) error {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return fmt.Errorf("feed: %w", err)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = sideTimeout
	}
	if config.Database != s.config.Database {
		return fmt.Errorf("feed: the replica's DSN names database %s and the upstream's %s: a stream is of one database", config.Database, s.config.Database)
	}
	s.copy.config = config
	s.copy.asks = side.New(side.Kind[*pgconn.PgConn]{
		Dial: s.dialAsks,
		Server: func() string {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.copy.run
		},
		// What another standby has replayed says nothing of the stream.
		Elsewhere: func(string) error {
			err := s.ofStandby(errors.New("it is now another server, or was restarted"))
			s.feed.cut(err)
			return err
		},
		Judge:     judgePg,
		Interrupt: func(*pgconn.PgConn) {},
		Close:     closePg,
	})
	return nil
}

// connectStandby opens a line for replication commands and statements.
func (s *pgSource) connectStandby(ctx context.Context) (*pgconn.PgConn, error) {
	conn, err := dialPg(ctx, s.copy.config, streamSettings)
	if err != nil {
		return nil, s.ofStandby(err)
	}
	return conn, nil
}

func (s *pgSource) dialAsks(ctx context.Context) (*pgconn.PgConn, string, error) {
	conn, err := s.connectStandby(ctx)
	if err != nil {
		return nil, "", err
	}
	run, err := pgIdentity(ctx, conn)
	if err != nil {
		closePg(conn)
		return nil, "", err
	}
	return conn, run, nil
}

// othersOnStandby tells whether other Freshets take their stream from it.
func (s *pgSource) othersOnStandby(ctx context.Context, mine string) (others bool, err error) {
	err = s.copy.asks.Use(ctx, func(ctx context.Context, c *pgconn.PgConn) error {
		r, err := c.Exec(ctx, "SELECT 1 FROM pg_replication_slots WHERE slot_name LIKE "+quoteText(strings.ReplaceAll(slotPrefix, "_", `\_`)+"%")+
			" AND slot_name <> "+quoteText(mine)+" AND active").ReadAll()
		others = err == nil && len(r) == 1 && len(r[0].Rows) > 0
		return err
	})
	return others, err
}

func (s *pgSource) ofStandby(err error) error {
	return fmt.Errorf("the replica at %s:%d: %w", s.copy.config.Host, s.copy.config.Port, err)
}

// pgPlace is where a server's log is.
type pgPlace struct {
	system, timeline string
	at               uint64 // written, or on a standby replayed
}

// readPgPlace asks on a line that replicates (manual, "Streaming Replication
// Protocol", IDENTIFY_SYSTEM). A server's timeline is that of what it writes or
// replays.
func readPgPlace(ctx context.Context, c *pgconn.PgConn) (pgPlace, error) {
	results, err := c.Exec(ctx, "IDENTIFY_SYSTEM").ReadAll()
	if err != nil {
		return pgPlace{}, err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) < 3 {
		return pgPlace{}, errors.New("feed: the server does not tell where its log ends")
	}
	row := results[0].Rows[0]
	p := pgPlace{system: string(row[0]), timeline: string(row[1])}
	p.at, err = parseLSN(string(row[2]))
	return p, err
}

// readPrimaryPlace asks a primary on an ordinary line.
func readPrimaryPlace(ctx context.Context, c *pgconn.PgConn) (pgPlace, error) {
	rows, err := pgRows(ctx, c, "SELECT s.system_identifier::text, pg_walfile_name(l.lsn), l.lsn::text "+
		"FROM pg_control_system() s, (SELECT pg_current_wal_insert_lsn() AS lsn) l")
	if err != nil {
		return pgPlace{}, err
	}
	if len(rows) != 1 || len(rows[0][1]) < 8 {
		return pgPlace{}, errors.New("feed: the server does not tell where its log ends")
	}
	// The first eight digits of a log file's name are its timeline.
	timeline, err := strconv.ParseUint(string(rows[0][1][:8]), 16, 32)
	if err != nil {
		return pgPlace{}, fmt.Errorf("feed: the log file's name %q does not begin with a timeline", rows[0][1])
	}
	p := pgPlace{system: string(rows[0][0]), timeline: strconv.FormatUint(timeline, 10)}
	p.at, err = parseLSN(string(rows[0][2]))
	return p, err
}

// vouch asks the standby how far it has replayed the primary's log. It gives
// the stream up when the standby follows another.
func (s *pgSource) vouch(ctx context.Context) error {
	s.mu.Lock()
	system, timeline := s.copy.system, s.copy.timeline
	s.mu.Unlock()
	var p pgPlace
	err := s.copy.asks.Use(ctx, func(ctx context.Context, c *pgconn.PgConn) (err error) {
		p, err = readPgPlace(ctx, c)
		return err
	})
	if err != nil {
		return err
	}
	if p.system != system || p.timeline != timeline {
		err := s.ofStandby(fmt.Errorf("it is on timeline %s of system %s, the upstream on timeline %s of system %s: it was promoted, or made anew",
			p.timeline, p.system, timeline, system))
		s.feed.lose(err)
		return err
	}
	s.feed.applier.vouch(p.at)
	return nil
}

// standbyNeeds lists what a standby must have, of which p is the primary.
func (f pgFacts) standbyNeeds(p pgFacts) []need {
	return []need{
		{f.number >= oldestDecodingStandby, "it is PostgreSQL " + f.version + either(f.number >= oldestDecodingStandby, "",
			", and only 16 and later can decode their log on a standby"), "upgrade to PostgreSQL 16 or later, or leave --feed-from away"},
		{f.standby, either(f.standby, "it is a standby", "it is no standby, or was promoted"), "give a physical standby of the upstream"},
		{f.walLevel == "logical", "wal_level is " + f.walLevel + ", upstream " + p.walLevel,
			"ALTER SYSTEM SET wal_level = 'logical' on the standby too; then restart it"},
		{f.feedback, "hot_standby_feedback is " + either(f.feedback, "on", "off: the upstream's VACUUM would end the replication slot"),
			"ALTER SYSTEM SET hot_standby_feedback = on; SELECT pg_reload_conf() on the standby"},
		{f.slots < f.slotsMost, fmt.Sprintf("%d of %d replication slots are taken", f.slots, f.slotsMost),
			fmt.Sprintf("ALTER SYSTEM SET max_replication_slots = %d; then restart the standby", f.slotsMost+4)},
		{f.senders < f.sendersMost, fmt.Sprintf("%d of %d WAL senders are taken", f.senders, f.sendersMost),
			fmt.Sprintf("ALTER SYSTEM SET max_wal_senders = %d; then restart the standby", f.sendersMost+4)},
		{f.replication, "role " + f.user + either(f.replication, " may replicate", " may not replicate"),
			"ALTER ROLE " + quoteIdent(f.user) + " REPLICATION on the upstream"},
	}
}

// inspectStandby refuses a standby whose stream cannot be followed. conn is a
// line to it; the senders are counted with it.
func (s *pgSource) inspectStandby(ctx context.Context, conn *pgconn.PgConn, up pgFacts) error {
	facts, err := readStandbyFacts(ctx, conn)
	if err != nil {
		return s.ofStandby(err)
	}
	if err := refuse(facts.standbyNeeds(up), noReplica); err != nil {
		return s.ofStandby(err)
	}
	return nil
}

// readStandbyFacts is readPgFacts on a line that replicates, which takes simple
// queries alone, and is one of the senders itself.
func readStandbyFacts(ctx context.Context, conn *pgconn.PgConn) (pgFacts, error) {
	r, err := conn.Exec(ctx, pgFactsSQL).ReadAll()
	if err != nil {
		return pgFacts{}, err
	}
	if len(r) != 1 {
		return pgFacts{}, errors.New("feed: the server does not tell its settings")
	}
	facts, err := parsePgFacts(r[0].Rows)
	facts.senders = 0
	return facts, err
}

// meetStandby compares the two servers' logs, and waits until the standby has
// the publication: a change that is decoded before it is there ends the stream.
func (s *pgSource) meetStandby(ctx context.Context, conn, primary *pgconn.PgConn, up pgFacts) error {
	if err := s.inspectStandby(ctx, conn, up); err != nil {
		return err
	}
	run, err := pgIdentity(ctx, conn)
	if err != nil {
		return s.ofStandby(err)
	}
	want, err := readPrimaryPlace(ctx, primary)
	if err != nil {
		return err
	}
	var flushed time.Time
	for end := time.Now().Add(sideTimeout); ; {
		have, err := readPgPlace(ctx, conn)
		switch {
		case err != nil:
			return s.ofStandby(err)
		case have.system != want.system:
			return s.ofStandby(errors.New("it is no replica of the upstream: the system identifiers differ"))
		case have.timeline != want.timeline:
			return s.ofStandby(fmt.Errorf("it is on timeline %s and the upstream on %s: one of them was promoted without the other", have.timeline, want.timeline))
		case have.at >= want.at:
			s.mu.Lock()
			s.copy.system, s.copy.timeline, s.copy.run = want.system, want.timeline, run
			s.mu.Unlock()
			return nil
		case time.Now().After(end):
			return s.ofStandby(fmt.Errorf("it has replayed the log up to %s and not to %s, in %s", lsnText(have.at), lsnText(want.at), sideTimeout))
		}
		// What was logged without a commit is flushed, and so sent, with one.
		if time.Since(flushed) > time.Second {
			flushed = time.Now()
			if err := pgExec(ctx, primary, "SELECT pg_logical_emit_message(true, 'freshet', '')"); err != nil {
				return err
			}
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// logSnapshots has the primary log which transactions run, until stop is called:
// a slot on a standby cannot begin before it meets that in the log (manual,
// CREATE_REPLICATION_SLOT), and the primary does it by itself only now and then.
func (s *pgSource) logSnapshots(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		line := s.newSide()
		defer line.Close()
		for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
			err := line.Use(ctx, func(ctx context.Context, c *pgconn.PgConn) error {
				return pgExec(ctx, c, "SELECT pg_log_standby_snapshot(), pg_logical_emit_message(true, 'freshet', '')")
			})
			if err != nil && ctx.Err() == nil {
				s.feed.journal.failed("the replication slot on the replica has to wait for the upstream's next checkpoint", err)
			}
			if !sleep(ctx, wait) {
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// pgReplica says what a standby has and lacks.
func (f *findings) pgReplica(ctx context.Context, s *pgSource, primary *pgconn.PgConn, up pgFacts) {
	conn, err := s.connectStandby(ctx)
	if f.failed(err, "start the replica, mend --feed-from, or allow replication connections of its user in the replica's pg_hba.conf") {
		return
	}
	defer closePg(conn)
	facts, err := readStandbyFacts(ctx, conn)
	if f.failed(err, "") {
		return
	}
	f.good("replica: PostgreSQL %s at %s:%d", facts.version, s.copy.config.Host, s.copy.config.Port)
	for _, n := range facts.standbyNeeds(up) {
		n.what = "replica: " + n.what
		f.needs([]need{n})
	}
	here, err1 := readPgPlace(ctx, conn)
	there, err2 := readPrimaryPlace(ctx, primary)
	if f.failed(errors.Join(err1, err2), "") {
		return
	}
	same := here.system == there.system && here.timeline == there.timeline
	f.needs([]need{{same, either(same, "replica: its log is the upstream's", "replica: its log is not the upstream's: timeline "+here.timeline+
		" of system "+here.system+", upstream timeline "+there.timeline+" of system "+there.system), "make it anew from the upstream (pg_basebackup -R)"}})
	if here.at < there.at {
		f.note("replica: it is %d bytes of the log behind", there.at-here.at)
	}
	rows, err := pgRows(ctx, primary, "SELECT has_function_privilege('pg_log_standby_snapshot()', 'EXECUTE') WHERE to_regprocedure('pg_log_standby_snapshot()') IS NOT NULL")
	if f.failed(err, "") || len(rows) == 0 {
		return
	}
	may := string(rows[0][0]) == "t"
	f.needs([]need{{may, "role " + up.user + either(may, " may", " may not") + " run pg_log_standby_snapshot(), without which the stream begins with the upstream's next checkpoint",
		"GRANT EXECUTE ON FUNCTION pg_log_standby_snapshot() TO " + quoteIdent(strings.TrimSpace(up.user))}})
}
