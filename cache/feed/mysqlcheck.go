package feed

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/client"
)

func checkMySQL(ctx context.Context, dsn, from string) []Finding {
	var out findings
	s, err := newMySQL(nil, dsn, from)
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
	out.good("%s at %s", facts.version, s.dsn.addr)
	out.needs(facts.needs())
	out.rowImage(facts)
	out.mysqlLog(s, conn, &facts)
	if from == "" {
		out.mysqlPrivileges(s, conn, facts)
	} else {
		out.mysqlReplica(ctx, s, facts)
	}
	out.mysqlTables(conn, facts)
	return out
}

// mysqlReplica looks at the replica that the upstream's changes are to come from.
func (f *findings) mysqlReplica(ctx context.Context, s *mysqlSource, up mysqlFacts) {
	conn, release, err := s.from.dial(ctx, "", sideTimeout)
	if f.failed(err, "start the replica, or mend --feed-from") {
		return
	}
	defer closeQuietly(conn)
	defer release()
	facts, err := readMySQLFacts(conn)
	if f.failed(err, "") {
		return
	}
	var found findings
	found.good("%s at %s", facts.version, s.from.addr)
	found.needs(facts.needs())
	found.rowImage(facts)
	found.mysqlLog(s, conn, &facts)
	needs, err := replicaNeeds(conn, up, facts)
	if !found.failed(err, facts.replicaGrant()+" ON *.* TO '"+s.from.user+"'@'%'") {
		found.needs(needs)
	}
	if !on(facts.vars["super_read_only"]) && !on(facts.vars["read_only"]) {
		found.note("it takes writes of its own (read_only is OFF): once it has one, its stream cannot be relied on, and is given up")
	}
	found.mysqlPrivileges(s, conn, facts)
	for _, finding := range found {
		finding.What = "replica: " + finding.What
		*f = append(*f, finding)
	}
}

// rowImage tells of settings under which the feed is right but coarse.
func (f *findings) rowImage(facts mysqlFacts) {
	if image := facts.vars["binlog_row_image"]; image == "" || strings.EqualFold(image, "FULL") {
		f.good("binlog_row_image is FULL")
	} else {
		f.bad("SET GLOBAL binlog_row_image = 'FULL', and binlog_row_image=FULL in the server's configuration",
			"binlog_row_image is %s: changes drop every answer from their table that compares other columns than the primary key", image)
	}
	if options := facts.vars["binlog_row_value_options"]; options != "" {
		f.bad("SET GLOBAL binlog_row_value_options = ''", "binlog_row_value_options is %s: JSON columns are logged in part", options)
	}
}

// mysqlLog tells what is left out of the server's log.
func (f *findings) mysqlLog(s *mysqlSource, conn *client.Conn, facts *mysqlFacts) {
	status, err := readLogStatus(conn)
	if !f.failed(err, s.monitorGrant(*facts)) {
		f.good("the log's place can be seen")
		facts.doDB, facts.ignoreDB = status.doDB, status.ignoreDB
		if len(facts.doDB)+len(facts.ignoreDB) == 0 {
			f.good("no database is left out of the log")
		} else {
			f.bad("take binlog-do-db and binlog-ignore-db out of the server's configuration and restart it",
				"databases are left out of the log (binlog-do-db: %s; binlog-ignore-db: %s)",
				strings.Join(facts.doDB, ","), strings.Join(facts.ignoreDB, ","))
		}
	}
}

func (f *findings) mysqlPrivileges(s *mysqlSource, conn *client.Conn, facts mysqlFacts) {
	if !f.failed(replicaLogs(conn, facts), facts.replicaGrant()+" ON *.* TO '"+s.logDSN().user+"'@'%'") {
		f.good("what the server replicates, if anything, it logs")
	}
	if !f.failed(register(conn, s.serverID), s.replicationGrant()) {
		f.good("user %s may replicate", s.logDSN().user)
	}
}

// loggedEngines keep their rows where the log has every change of them.
const loggedEngines = "'InnoDB','MyISAM','Aria','ROCKSDB','MEMORY'"

func (f *findings) mysqlTables(conn *client.Conn, facts mysqlFacts) {
	rows, err := mysqlRows(conn, "SELECT TABLE_SCHEMA, TABLE_NAME, IFNULL(ENGINE, ''), ENGINE IN ("+loggedEngines+") FROM information_schema.TABLES "+
		"WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') ORDER BY 1, 2")
	if f.failed(err, "") {
		return
	}
	exact := 0
	for _, row := range rows {
		name := fmt.Sprintf("`%s`.`%s`", row[0], row[1])
		switch err := facts.filtered(row[0]); {
		case err != nil:
			f.bad("take binlog filters out of the server's configuration and restart it", "table %s: %v", name, err)
		case row[3] != "1":
			f.bad("ALTER TABLE "+name+" ENGINE = InnoDB", "table %s: its engine %s does not log every change", name, row[2])
		default:
			exact++
		}
	}
	f.good("%d of %d tables can be followed", exact, len(rows))
}
