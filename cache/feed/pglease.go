package feed

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"freshet/cache/feed/side"
)

// standbyName is what synchronous_standby_names must name: the application_name
// that the DSN gives, "freshet" without one. Several Freshets of one server
// need a name each.
func (s *pgSource) standbyName() string {
	for name, value := range s.config.RuntimeParams {
		if strings.EqualFold(name, "application_name") && value != "" {
			return value
		}
	}
	return "freshet"
}

// newLeaseSide makes a line on which settings are the server's own.
func (s *pgSource) newLeaseSide() *pgSide {
	kind := s.sideKind()
	kind.Dial = func(ctx context.Context) (*pgconn.PgConn, string, error) {
		return s.dialWith(ctx, map[string]string{"synchronous_commit": ""})
	}
	return side.New(kind)
}

// standbySQL tells whether and for whom commits wait. $1 is the process that
// sends us the log.
const standbySQL = `SELECT current_setting('synchronous_standby_names'), w.state, w.sync_state,
	(SELECT count(*) FROM pg_stat_replication o WHERE o.pid <> w.pid AND lower(o.application_name) = lower(w.application_name)),
	(SELECT setting || ' ' || source FROM pg_settings WHERE name = 'synchronous_commit'),
	(` + asyncRolesSQL + `),
	pg_conf_load_time(), pg_has_role('pg_read_all_stats', 'USAGE')
	FROM (SELECT) one LEFT JOIN pg_stat_replication w ON w.pid = $1::int`

// asyncRolesSQL lists the roles and databases whose sessions do not wait.
const asyncRolesSQL = `SELECT string_agg(concat_ws(' ', 'role ' || quote_ident(r.rolname), 'database ' || quote_ident(d.datname)), ', ' ORDER BY r.rolname, d.datname)
	FROM pg_db_role_setting t CROSS JOIN unnest(t.setconfig) c
	LEFT JOIN pg_roles r ON r.oid = t.setrole LEFT JOIN pg_database d ON d.oid = t.setdatabase
	WHERE (t.setdatabase = 0 OR d.datname = current_database()) AND lower(c) LIKE 'synchronous\_commit=%'
	AND NOT lower(c) = ANY ('{synchronous_commit=on,synchronous_commit=remote_apply,synchronous_commit=remote_write,
		synchronous_commit=true,synchronous_commit=yes,synchronous_commit=1}')`

// waitsFor are the values of synchronous_commit under which a commit waits for
// standbys. The feed confirms writing, flushing and applying at once.
var waitsFor = map[string]bool{"on": true, "remote_apply": true, "remote_write": true}

// promise asks how commits wait, and then where the log ends.
func (s *pgSource) promise(ctx context.Context) (promise, error) {
	s.mu.Lock()
	line, name, taken := s.line, s.seatName, s.seatWhy
	s.mu.Unlock()
	if line == nil {
		return promise{refusal: "the change stream does not run"}, nil
	}
	if taken != "" {
		return promise{refusal: taken}, s.seekSeat(ctx)
	}
	var p promise
	err := s.leases.Use(ctx, func(ctx context.Context, c *pgconn.PgConn) (err error) {
		p, err = s.promiseOn(ctx, c, line, name)
		return err
	})
	return p, err
}

func (s *pgSource) promiseOn(ctx context.Context, c *pgconn.PgConn, line *pgLine, name string) (promise, error) {
	rows, err := pgRows(ctx, c, standbySQL, strconv.FormatUint(uint64(line.conn.PID()), 10))
	if err != nil {
		return promise{}, err
	}
	if len(rows) != 1 || len(rows[0]) != 8 {
		return promise{}, errors.New("feed: the server does not tell how its commits wait")
	}
	row := make([]string, 8)
	for i := range row {
		row[i] = string(rows[0][i])
	}
	if why, err := refuseStandby(row, name); why != "" || err != nil {
		return promise{refusal: why}, err
	}
	if loaded := row[6]; line.tried != loaded {
		why, err := s.tryCommit(ctx, c, line)
		if why != "" || err != nil {
			return promise{refusal: why}, err
		}
		line.tried = loaded
	}
	rows, err = pgRows(ctx, c, "SELECT pg_current_wal_insert_lsn()")
	if err != nil {
		return promise{}, err
	}
	if len(rows) != 1 {
		return promise{}, errors.New("feed: the server does not tell where its log ends")
	}
	end, err := parseLSN(string(rows[0][0]))
	return promise{endless: true, end: logEnd(end)}, err
}

// logEnd is a place in PostgreSQL's log.
type logEnd uint64

func (e logEnd) covered(l *ledger) bool { return l.raw >= uint64(e) }

// refuseStandby says why commits cannot be relied on to wait for the stream; ""
// when they can. row is standbySQL's.
func refuseStandby(row []string, name string) (string, error) {
	rule, err := parseStandbyRule(row[0])
	if err != nil {
		return "", err
	}
	commit, source, _ := strings.Cut(row[4], " ")
	why := rule.refuse(name)
	switch {
	case why != "":
		return why, nil
	case row[7] != "t":
		return "the role may not see whom commits wait for: GRANT pg_read_all_stats", nil
	case row[1] != "streaming" || row[2] != "sync" && row[2] != "quorum":
		return "the stream is not yet a synchronous standby", nil
	case row[3] != "0":
		return fmt.Sprintf("%s other standbys have the name %s, and may confirm in Freshet's place", row[3], name), nil
	case !waitsFor[commit]:
		return "synchronous_commit is " + commit + ": commits wait for nobody", nil
	case strings.HasPrefix(source, "user") || strings.HasPrefix(source, "database"):
		return "synchronous_commit is set for Freshet's own role or database, which hides what it is for others", nil
	case row[5] != "":
		return "synchronous_commit is off for " + row[5], nil
	}
	return "", nil
}

// tryCommit commits and looks at whether that commit waits for us. What the
// settings say is what they are read as; that the backends heed them is up to
// the checkpointer, which may take its time to have read them (it alone sets
// the flag that they look at). So once in each run of the stream, and after
// each time that the settings were loaded, confirming pauses for the moment
// that this takes.
func (s *pgSource) tryCommit(ctx context.Context, c *pgconn.PgConn, line *pgLine) (why string, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	other, err := s.connectAs(ctx, map[string]string{"synchronous_commit": "on"})
	if err != nil {
		return "", err
	}
	defer closePg(other)
	line.held.Store(line.applied.Load())
	done := make(chan error, 1)
	go func() { done <- pgExec(ctx, other, "SELECT pg_logical_emit_message(true, 'freshet', '')") }()
	waits, why, err := awaitHeld(ctx, c, other.PID(), done)
	line.held.Store(0)
	err = firstError(err, line.status(false))
	if waits {
		// It may wait for other standbys still; that is no concern of ours.
		ended := time.AfterFunc(tryFor/10, cancel)
		defer ended.Stop()
		if err := <-done; err != nil && ctx.Err() == nil {
			return why, err
		}
	}
	return why, err
}

// awaitHeld watches a commit until it waits for standbys, which is what it
// should, or is done, which it should not be.
func awaitHeld(ctx context.Context, c *pgconn.PgConn, pid uint32, done chan error) (waits bool, why string, err error) {
	for {
		select {
		case err := <-done:
			return false, "commits do not wait for standbys yet", err
		default:
		}
		rows, err := pgRows(ctx, c, "SELECT 1 FROM pg_stat_activity WHERE pid = $1::int AND wait_event = 'SyncRep'",
			strconv.FormatUint(uint64(pid), 10))
		if err != nil || len(rows) > 0 {
			return true, "", err
		}
		sleep(ctx, time.Millisecond)
	}
}

// tryFor bounds the time for which a trial may hold commits up.
const tryFor = 500 * time.Millisecond

// chooseSeat decides the name under which the stream is known. It is the one
// that commits wait for, unless another standby has it: two of one name could
// confirm in each other's place.
func (s *pgSource) chooseSeat(ctx context.Context, c *pgconn.PgConn) (name string, listed bool, err error) {
	if !s.feed.cfg.Synchronous {
		return asyncName, false, nil
	}
	name = s.standbyName()
	s.mu.Lock()
	slot := s.slot
	s.mu.Unlock()
	// A stream of ours that broke may live on at the server's end, and commits
	// wait for it.
	if slot != "" {
		if _, err := pgRows(ctx, c, "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = $1 AND active", slot); err != nil {
			return "", false, err
		}
	}
	others := "1"
	for end := time.Now().Add(time.Second); others != "0"; {
		rows, err := pgRows(ctx, c, "SELECT current_setting('synchronous_standby_names'), (SELECT count(*) FROM pg_stat_replication "+
			"WHERE lower(application_name) = lower($1))", name)
		if err != nil {
			return "", false, err
		}
		rule, err := parseStandbyRule(string(rows[0][0]))
		if err != nil {
			return "", false, err
		}
		others, listed = string(rows[0][1]), rule.lists(name)
		if others != "0" && (time.Now().After(end) || !sleep(ctx, 10*time.Millisecond)) {
			break
		}
	}
	why := ""
	if others != "0" {
		why = fmt.Sprintf("another standby is called %s: give each Freshet an application_name of its own in its DSN", name)
	}
	s.mu.Lock()
	s.seatName, s.seatWhy, s.seatAsked = name, why, Now()
	s.mu.Unlock()
	if why != "" {
		return asyncName, false, nil
	}
	return name, listed, nil
}

// seekSeat looks, now and then, whether the name is free, and if so begins the
// stream anew under it.
func (s *pgSource) seekSeat(ctx context.Context) error {
	s.mu.Lock()
	early := Now()-s.seatAsked < seatEvery
	if !early {
		s.seatAsked = Now()
	}
	name := s.seatName
	s.mu.Unlock()
	if early {
		return nil
	}
	return s.leases.Use(ctx, func(ctx context.Context, c *pgconn.PgConn) error {
		rows, err := pgRows(ctx, c, "SELECT 1 FROM pg_stat_replication WHERE lower(application_name) = lower($1)", name)
		if err == nil && len(rows) == 0 {
			s.feed.cut(fmt.Errorf("feed: the name %s is free now; the stream begins anew under it", name))
		}
		return err
	})
}
