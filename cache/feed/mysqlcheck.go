package feed

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/client"
)

func checkMySQL(ctx context.Context, dsn string) []Finding {
	var out findings
	s, err := newMySQL(nil, dsn)
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
	out.mysqlPrivileges(s, conn, facts)
	out.mysqlTables(conn, facts)
	return out
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

func (f *findings) mysqlPrivileges(s *mysqlSource, conn *client.Conn, facts mysqlFacts) {
	status, err := readLogStatus(conn)
	if !f.failed(err, s.monitorGrant(facts)) {
		f.good("user %s may see where the log is", s.dsn.user)
		facts.doDB, facts.ignoreDB = status.doDB, status.ignoreDB
		if len(facts.doDB)+len(facts.ignoreDB) == 0 {
			f.good("no database is left out of the log")
		} else {
			f.bad("take binlog-do-db and binlog-ignore-db out of the server's configuration and restart it",
				"databases are left out of the log (binlog-do-db: %s; binlog-ignore-db: %s)",
				strings.Join(facts.doDB, ","), strings.Join(facts.ignoreDB, ","))
		}
	}
	if !f.failed(replicaLogs(conn, facts), facts.replicaGrant()+" ON *.* TO '"+s.dsn.user+"'@'%'") {
		f.good("what the server replicates, if anything, it logs")
	}
	if !f.failed(register(conn, s.serverID), s.replicationGrant()) {
		f.good("user %s may replicate", s.dsn.user)
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
