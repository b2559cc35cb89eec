package feed

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/jackc/pgx/v5/pgconn"
)

// CheckSynchronous says what an upstream has and lacks for Config.Synchronous,
// and what follows from it for the upstream. It changes nothing.
func CheckSynchronous(ctx context.Context, dsn string) []Finding {
	switch scheme, _, _ := strings.Cut(dsn, "://"); scheme {
	case "mysql", "mariadb":
		return checkSemiSync(ctx, dsn)
	case "postgres", "postgresql":
		return checkStandby(ctx, dsn)
	default:
		return Check(ctx, dsn)
	}
}

// note adds what is to be known, and mended by nobody.
func (f *findings) note(format string, args ...any) {
	*f = append(*f, Finding{OK: true, Note: true, What: fmt.Sprintf(format, args...)})
}

func checkSemiSync(ctx context.Context, dsn string) []Finding {
	var out findings
	s, err := newMySQL(nil, dsn, "")
	if out.failed(err, "mend the DSN") {
		return out
	}
	conn, release, err := s.dsn.dial(ctx, "", sideTimeout)
	if out.failed(err, "start the server, or mend the DSN's address, user or password") {
		return out
	}
	defer closeQuietly(conn)
	defer release()
	facts, err := readMySQLFacts(conn)
	if out.failed(err, "") {
		return out
	}
	out.semiSync(conn, facts)
	out.unheldTables(conn)
	return out
}

// semiSync compares the server's settings with those that a lease needs.
func (f *findings) semiSync(conn *client.Conn, facts mysqlFacts) {
	w, ok := facts.semi()
	if !ok {
		w = newSemiWords
		f.bad("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so' (before MySQL 8.0.26: rpl_semi_sync_master, 'semisync_master.so'); "+
			"then check again", noSemiSync)
		f.semiNotes(w, 10*time.Second)
		return
	}
	answers, err := mysqlMany(conn, semiStateSQL(facts.maria, w), 2)
	if f.failed(err, "") {
		return
	}
	st, err := parseSemiState(w, answers[0], answers[1])
	if f.failed(err, "") {
		return
	}
	set := func(name, value string) string {
		name = "rpl_semi_sync_" + w.source + "_" + name
		if facts.maria {
			return "SET GLOBAL " + name + " = " + value + ", and " + name + "=" + strings.Trim(value, "'") + " in the server's configuration"
		}
		return "SET PERSIST " + name + " = " + value
	}
	v := "rpl_semi_sync_" + w.source + "_"
	// The order is that in which they are best set: with the first ones right,
	// the last one begins to hold commits.
	f.needs([]need{
		{strings.EqualFold(st.waitPoint, "AFTER_SYNC"), v + "wait_point is " + st.waitPoint, set("wait_point", "'AFTER_SYNC'")},
		{st.waitNoReplica, v + "wait_no_" + w.replica + " is " + either(st.waitNoReplica, "ON", "OFF"), set("wait_no_"+w.replica, "ON")},
		{st.timeout >= 2*time.Second, fmt.Sprintf("%stimeout is %d ms (at least 2000)", v, st.timeout.Milliseconds()), set("timeout", "10000")},
		{st.enabled, v + "enabled is " + either(st.enabled, "ON", "OFF"), set("enabled", "ON")},
	})
	if !facts.maria {
		f.good("%swait_for_%s_count is %d: it must be the number of all semi-synchronous replicas, every Freshet counted (now connected: %d)",
			v, w.replica, st.needed, st.clients)
	}
	if st.clients > st.needed {
		mend := "switch semi-synchronous replication off on the others: MariaDB waits for one replica only"
		if !facts.maria {
			mend = set("wait_for_"+w.replica+"_count", fmt.Sprint(st.clients))
		}
		f.bad(mend, "%d semi-synchronous replicas are connected, and commits wait for %d", st.clients, st.needed)
	}
	f.semiNotes(w, st.timeout)
	if facts.maria {
		f.note("KILL of a session that waits makes its commit readable at once, marked or not")
	}
}

func (f *findings) semiNotes(w semiWords, timeout time.Duration) {
	f.note("every commit then waits for Freshet: one more round trip; when Freshet is gone, commits stand still for %s (rpl_semi_sync_%s_timeout), "+
		"once, and then go on without it until it is back", timeout, w.source)
}

// unheldTables lists tables whose changes are readable before they are logged.
func (f *findings) unheldTables(conn *client.Conn) {
	rows, err := mysqlRows(conn, "SELECT TABLE_SCHEMA, TABLE_NAME, IFNULL(ENGINE, '') FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' "+
		"AND TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') AND NOT IFNULL(ENGINE, '') IN ("+heldEngines+") ORDER BY 1, 2")
	if f.failed(err, "") {
		return
	}
	for _, row := range rows {
		name := fmt.Sprintf("`%s`.`%s`", row[0], row[1])
		f.bad("ALTER TABLE "+name+" ENGINE = InnoDB", "table %s: its engine %s shows changes before they are logged", name, row[2])
	}
}

func checkStandby(ctx context.Context, dsn string) []Finding {
	var out findings
	s, err := newPostgres(nil, dsn, "")
	if out.failed(err, "mend the DSN") {
		return out
	}
	conn, err := s.connectAs(ctx, map[string]string{"synchronous_commit": ""})
	if out.failed(err, "start the server, or mend the DSN's address, user or password") {
		return out
	}
	defer closePg(conn)
	facts, err := readPgFacts(ctx, conn)
	if out.failed(err, "") {
		return out
	}
	out.standbySettings(ctx, conn, facts, s.standbyName())
	physical, err := s.connectAs(ctx, map[string]string{"replication": "true"})
	if !out.failed(err, "allow physical replication (database \"replication\") of "+facts.user+" in pg_hba.conf; then SELECT pg_reload_conf()") {
		out.good("role %s is let in as a physical standby, which stands in while the slot is made", facts.user)
		closePg(physical)
	}
	out.standbyNotes()
	return out
}

func (f *findings) standbySettings(ctx context.Context, c *pgconn.PgConn, facts pgFacts, name string) {
	rows, err := pgRows(ctx, c, standbySQL, "0")
	if f.failed(err, "") || len(rows) != 1 {
		return
	}
	row := rows[0]
	rule, err := parseStandbyRule(string(row[0]))
	if f.failed(err, "") {
		return
	}
	commit, source, _ := strings.Cut(string(row[4]), " ")
	own := strings.HasPrefix(source, "user") || strings.HasPrefix(source, "database")
	why := rule.refuse(name)
	f.needs([]need{
		{string(row[7]) == "t", "role " + facts.user + either(string(row[7]) == "t", " may", " may not") + " see whom commits wait for",
			"GRANT pg_read_all_stats TO " + quoteIdent(facts.user)},
		{facts.senders+2 <= facts.sendersMost, fmt.Sprintf("%d of %d WAL senders are taken, and two are needed", facts.senders, facts.sendersMost),
			fmt.Sprintf("ALTER SYSTEM SET max_wal_senders = %d; then restart the server", facts.sendersMost+4)},
		{waitsFor[commit] && !own, "synchronous_commit is " + commit + either(own, ", set for Freshet's own role or database", ""),
			either(own, "ALTER ROLE … RESET synchronous_commit, or ALTER DATABASE … RESET synchronous_commit",
				"ALTER SYSTEM SET synchronous_commit = 'on'; SELECT pg_reload_conf()")},
		{len(row[5]) == 0, either(len(row[5]) == 0, "no role or database has synchronous_commit off", "synchronous_commit is off for "+string(row[5])),
			"ALTER ROLE … [IN DATABASE …] RESET synchronous_commit, or ALTER DATABASE … RESET synchronous_commit"},
		{why == "", either(why == "", "commits wait for the standby "+name, why),
			"start Freshet, then ALTER SYSTEM SET synchronous_standby_names = " + quoteText(rule.with(name)) + "; SELECT pg_reload_conf()"},
	})
}

func (f *findings) standbyNotes() {
	f.note("every commit of the whole server, in every database, then waits for Freshet, one more round trip; when Freshet is gone, commits stand still " +
		"until it is back, or until ALTER SYSTEM RESET synchronous_standby_names; SELECT pg_reload_conf()")
	f.note("a Freshet that hangs, or whose machine is lost, is waited for until wal_sender_timeout has passed and it is back")
	f.note("sessions that SET synchronous_commit = off or local, which no privilege forbids, do not wait: their commits are readable a moment before they are marked")
	f.note("a cancel request, or pg_terminate_backend, while a commit waits makes it readable at once, marked or not")
	f.note("changes of definitions (DDL, GRANT) are not in the stream: they are noticed by the next probe")
}
