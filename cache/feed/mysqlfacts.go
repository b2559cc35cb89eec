package feed

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
)

// mysqlFacts is what a server says of itself.
type mysqlFacts struct {
	maria      bool
	version    string
	identity   string // the same for every line to the same server, and for no other
	vars       map[string]string
	lowerNames int      // lower_case_table_names
	doDB       []string // binlog-do-db: databases that are logged; empty for all
	ignoreDB   []string // binlog-ignore-db
}

// The variables that are looked at. Which of them exist differs from server to
// server and version to version.
var mysqlVars = []string{
	"version", "log_bin", "binlog_format", "binlog_row_image", "gtid_mode", "server_uuid", "server_id",
	"lower_case_table_names", "log_replica_updates", "log_slave_updates", "hostname", "port", "datadir",
	"binlog_checksum", "binlog_row_value_options", "rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled",
	"innodb_native_foreign_keys", "read_only", "super_read_only", "replica_skip_errors", "slave_skip_errors", "replica_exec_mode", "slave_exec_mode",
	"replicate_events_marked_for_skip", "slave_run_triggers_for_rbr",
}

func readMySQLFacts(c *client.Conn) (mysqlFacts, error) {
	rows, err := mysqlRows(c, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('"+strings.Join(mysqlVars, "','")+"')")
	if err != nil {
		return mysqlFacts{}, err
	}
	f := mysqlFacts{vars: make(map[string]string)}
	for _, row := range rows {
		f.vars[strings.ToLower(row[0])] = row[1]
	}
	f.version = f.vars["version"]
	f.maria = strings.Contains(strings.ToLower(f.version), "mariadb")
	f.lowerNames, err = strconv.Atoi(f.vars["lower_case_table_names"])
	if err != nil {
		return f, fmt.Errorf("feed: lower_case_table_names is %q", f.vars["lower_case_table_names"])
	}
	f.identity = f.vars["server_uuid"]
	if f.identity == "" {
		f.identity = strings.Join([]string{f.vars["hostname"], f.vars["port"], f.vars["server_id"], f.vars["datadir"]}, ":")
	}
	return f, nil
}

// logStatus is where the server's log is, and what is left out of it.
type logStatus struct {
	file           string
	offset         uint64
	doDB, ignoreDB []string
	none           bool
}

// readLogStatus asks in the spelling of MySQL 8.2 and later, then in the old one.
func readLogStatus(c *client.Conn) (logStatus, error) {
	rows, err := mysqlRows(c, "SHOW BINARY LOG STATUS")
	if errorNumber(err) == mysql.ER_PARSE_ERROR {
		rows, err = mysqlRows(c, "SHOW MASTER STATUS")
	}
	if err != nil {
		return logStatus{}, err
	}
	if len(rows) == 0 || len(rows[0]) < 4 {
		return logStatus{none: true}, nil
	}
	st := logStatus{file: rows[0][0], doDB: names(rows[0][2]), ignoreDB: names(rows[0][3])}
	st.offset, err = strconv.ParseUint(rows[0][1], 10, 40)
	return st, err
}

func names(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// filtered refuses a database that binlog filters leave out of the log.
func (f mysqlFacts) filtered(schema string) error {
	if len(f.doDB) > 0 && !slices.Contains(f.doDB, schema) {
		return fmt.Errorf("the server logs only %s: take binlog-do-db out of its configuration, or add binlog-do-db=%s",
			strings.Join(f.doDB, ", "), schema)
	}
	if len(f.doDB) == 0 && slices.Contains(f.ignoreDB, schema) {
		return fmt.Errorf("the server leaves it out of its log: take binlog-ignore-db=%s out of its configuration", schema)
	}
	return nil
}

// A need is one thing an upstream must have, and the statement that mends it.
type need struct {
	ok         bool
	what, mend string
}

// needs lists what the server's variables must be.
func (f mysqlFacts) needs() []need {
	v := f.vars
	out := []need{
		{on(v["log_bin"]), "log_bin is " + v["log_bin"], "set log_bin=binlog and server_id in the server's configuration and restart it"},
		{v["binlog_format"] == "" || strings.EqualFold(v["binlog_format"], "ROW"), "binlog_format is " + v["binlog_format"],
			"SET GLOBAL binlog_format = 'ROW', and binlog_format=ROW in the server's configuration; sessions that are open keep the old format"},
		{v["server_id"] != "0", "server_id is " + v["server_id"], "SET GLOBAL server_id = 1"},
	}
	if !f.maria {
		out = append(out, need{strings.EqualFold(v["gtid_mode"], "ON"), "gtid_mode is " + v["gtid_mode"],
			"SET GLOBAL enforce_gtid_consistency = ON; SET GLOBAL gtid_mode = OFF_PERMISSIVE; SET GLOBAL gtid_mode = ON_PERMISSIVE; " +
				"SET GLOBAL gtid_mode = ON, and both in the server's configuration"})
	}
	return out
}

func on(value string) bool { return strings.EqualFold(value, "ON") || value == "1" }

// check is Open's look at the servers. A replica that is not there may come.
func (s *mysqlSource) check(ctx context.Context) error {
	facts, err := s.inspectUpstream(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.facts = facts
	s.mu.Unlock()
	if s.from == nil {
		return nil
	}
	conn, release, err := s.from.dial(ctx, "", sideTimeout)
	if err != nil {
		if errorNumber(err) == 0 && ctx.Err() == nil {
			s.feed.journal.failed("the replica cannot be reached", err)
			return nil
		}
		return s.ofReplica(err)
	}
	defer closeQuietly(conn)
	defer release()
	_, err = s.inspectReplica(conn, facts)
	return err
}

// inspectUpstream is inspectServer of the upstream, on a line for that alone.
func (s *mysqlSource) inspectUpstream(ctx context.Context) (mysqlFacts, error) {
	conn, release, err := s.dsn.dial(ctx, "", sideTimeout)
	if err != nil {
		return mysqlFacts{}, err
	}
	defer closeQuietly(conn)
	defer release()
	return s.inspectServer(conn, s.from == nil)
}

// inspectServer reads the facts and refuses a server that cannot be followed.
// followed says that it is this one's log that will be.
func (s *mysqlSource) inspectServer(conn *client.Conn, followed bool) (mysqlFacts, error) {
	facts, err := readMySQLFacts(conn)
	if err != nil {
		return facts, err
	}
	if err := refuse(facts.needs(), unfollowable); err != nil {
		return facts, err
	}
	status, err := readLogStatus(conn)
	if err != nil {
		return facts, denied(err, s.monitorGrant(facts))
	}
	facts.doDB, facts.ignoreDB = status.doDB, status.ignoreDB
	if err := replicaLogs(conn, facts); err != nil {
		return facts, err
	}
	if !followed {
		return facts, nil
	}
	if err := register(conn, s.serverID); err != nil {
		return facts, denied(err, s.replicationGrant())
	}
	return facts, nil
}

// replicaLogs refuses a replica that does not log what it replicates.
func replicaLogs(conn *client.Conn, facts mysqlFacts) error {
	logs, known := facts.vars["log_replica_updates"]
	if !known {
		logs = facts.vars["log_slave_updates"]
	}
	if on(logs) || logs == "" {
		return nil
	}
	rows, err := mysqlRows(conn, "SHOW REPLICA STATUS")
	if errorNumber(err) == mysql.ER_PARSE_ERROR {
		rows, err = mysqlRows(conn, "SHOW SLAVE STATUS")
	}
	if err != nil {
		return denied(err, facts.replicaGrant()+" ON *.* TO the user")
	}
	if len(rows) > 0 {
		return fmt.Errorf("the server cannot be followed: it is a replica that does not log what it replicates; mend: " +
			"log_replica_updates=ON (log_slave_updates in MariaDB) in its configuration and restart it")
	}
	return nil
}

// replicaGrant lets a user ask whether the server is a replica.
func (f mysqlFacts) replicaGrant() string {
	if f.maria {
		return "GRANT SLAVE MONITOR"
	}
	return "GRANT REPLICATION CLIENT"
}

func (s *mysqlSource) monitorGrant(facts mysqlFacts) string {
	if facts.maria {
		return "GRANT BINLOG MONITOR ON *.* TO '" + s.logDSN().user + "'@'%'"
	}
	return "GRANT REPLICATION CLIENT ON *.* TO '" + s.logDSN().user + "'@'%'"
}

func (s *mysqlSource) replicationGrant() string {
	return "GRANT REPLICATION SLAVE ON *.* TO '" + s.logDSN().user + "'@'%'"
}

// denied names the grant that a refused statement wants; other errors stay.
func denied(err error, grant string) error {
	switch errorNumber(err) {
	case mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR, mysql.ER_ACCESS_DENIED_ERROR, mysql.ER_DBACCESS_DENIED_ERROR:
		return fmt.Errorf("%s: %w; mend: %s", unfollowable, err, grant)
	}
	return err
}
