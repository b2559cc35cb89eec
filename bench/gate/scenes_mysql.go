package gate

import (
	"encoding/binary"

	"freshet/bench/wire"
)

var mysqlScenes = []scene{
	{"reads", 40, false, sceneReads},
	{"mixed reads", 15, false, sceneMixed},
	{"write", 24, false, sceneWrite},
	{"open write", 2, false, sceneOpenWrite},
	{"lane", 8, true, func(r *runner, _ *pair) []call {
		return laneCalls(r.rng, mysqlLaneStatements, mysqlLaneModes, 2+r.rng.IntN(5))
	}},
	{"transaction", 6, true, sceneMySQLTransaction},
	{"script", 8, true, oneText(mysqlScripts, mysqlResets[0])},
	{"after a read", 5, true, sceneAfterRead},
	{"settings", 5, false, shuffledSettings(mysqlSettings, mysqlResets)},
	{"errors", 5, false, sceneErrors(mysqlErrors)},
	{"commands", 3, true, sceneMySQLCommands},
	{"long data", 2, false, sceneLongData},
}

var mysqlLaneModes = []mode{text, prepared, prepared, once}

// mysqlLaneStatements are statements on the session's own table: insert ids, affected
// rows and warnings must come out alike.
var mysqlLaneStatements = []template{
	{"", "INSERT INTO {lane} (a, b, c, at, e) VALUES (?, ?, ?, ?, ?)", []arg{orNull(3, within(60)), word, price, timeOf, blobOf}, nil},
	{"", "INSERT INTO {lane} (b) VALUES (?), (?), (?)", []arg{word, word, orNull(2, word)}, nil},
	{"", "INSERT IGNORE INTO {lane} (a, c) VALUES (?, ?)", []arg{within(5), price}, nil},
	{"", "INSERT INTO {lane} (a, b) VALUES (?, 'x') ON DUPLICATE KEY UPDATE b = ?", []arg{within(5), word}, nil},
	{"", "REPLACE INTO {lane} (a, b) VALUES (?, ?)", []arg{within(5), word}, nil},
	{"", "UPDATE {lane} SET b = ? WHERE a = ?", []arg{word, within(8)}, nil},
	{"", "UPDATE {lane} SET c = c + 1 WHERE c > ?", []arg{price}, nil},
	{"", "DELETE FROM {lane} WHERE id % 7 = ?", []arg{quantity}, nil},
	{"", "INSERT INTO {lane} (a, c) VALUES (?, 1.23456)", []arg{within(90)}, nil},
	{"", "INSERT INTO {lane} (b) SELECT name FROM items WHERE id = ?", []arg{itemID}, nil},
	{"", "SELECT * FROM {lane} ORDER BY id", nil, nil},
	{"", "SELECT COUNT(*), SUM(a), MAX(b) FROM {lane}", nil, nil},
	{"", "SELECT id, a, b FROM {lane} WHERE a = ?", []arg{within(8)}, nil},
	{"", "SELECT id, e FROM {lane} WHERE id = ? FOR UPDATE", []arg{within(8)}, nil},
	{"", "SELECT LAST_INSERT_ID()", nil, nil},
	{"", "SELECT ROW_COUNT()", nil, nil},
	{"", "SHOW WARNINGS", nil, []mode{text}},
	{"", "UPDATE {lane} SET b = 'q' WHERE id = 1; SELECT COUNT(*) FROM {lane}; SELECT 1/0", nil, []mode{text}},
	{"", "TRUNCATE {lane}", nil, nil},
	{"", "SELECT l.id, i.name FROM {lane} l JOIN items i ON i.id = l.a ORDER BY l.id", nil, nil},
}

// mysqlLaneReads are those of them that read the lane table alone.
var mysqlLaneReads = mysqlLaneStatements[10:13]

var mysqlBegins = []string{
	"BEGIN", "START TRANSACTION", "START TRANSACTION READ ONLY", "start transaction with consistent snapshot",
	"BEGIN; SELECT COUNT(*) FROM items", "/* x */ begin work", "SET autocommit = 0", "SET @@session.autocommit=OFF", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; BEGIN",
}

// sceneMySQLTransaction opens a transaction in one of its spellings, works in
// it, and leaves it. An open snapshot is not disturbed: nobody else writes to
// the lane table, and the shared ones are only read.
func sceneMySQLTransaction(r *runner, p *pair) []call {
	begin := mysqlBegins[r.rng.IntN(len(mysqlBegins))]
	calls := []call{{sql: begin, mode: text}}
	calls = append(calls, laneCalls(r.rng, mysqlLaneStatements, mysqlLaneModes, 1+r.rng.IntN(4))...)
	if r.rng.IntN(2) == 0 {
		calls = append(calls, texts("SAVEPOINT s1")...)
		calls = append(calls, laneCalls(r.rng, mysqlLaneStatements, mysqlLaneModes, 2)...)
		calls = append(calls, texts("ROLLBACK TO SAVEPOINT s1")...)
	}
	calls = append(calls, sceneReads(r, p)...)
	if r.rng.IntN(3) == 0 {
		calls = append(calls, call{sql: mysqlErrors[r.rng.IntN(len(mysqlErrors))].sql})
	}
	end := []string{"COMMIT", "ROLLBACK", "commit", "ROLLBACK AND NO CHAIN", "COMMIT RELEASE"}[r.rng.IntN(4)]
	calls = append(calls, texts(end, "SET autocommit = 1", "COMMIT")...)
	return append(calls, laneCalls(r.rng, mysqlLaneReads, mysqlLaneModes, 2)...)
}

// sceneAfterRead asks what the session knows of its last statement, after a
// read that was answered before: it must not be an older statement's.
func sceneAfterRead(r *runner, _ *pair) []call {
	c := r.readOf(r.d.reads[r.rng.IntN(len(r.d.reads))])
	c.mode = []mode{text, prepared}[r.rng.IntN(2)]
	asks := []string{
		"SELECT FOUND_ROWS()", "SELECT ROW_COUNT()", "SHOW WARNINGS", "SELECT @@warning_count, @@error_count",
		"SHOW COUNT(*) WARNINGS", "SHOW ERRORS", "SELECT LAST_INSERT_ID()",
	}
	before := texts([]string{
		"SELECT 1/0", "SELECT CAST('12abc' AS SIGNED)", "SELECT * FROM no_such_table", "INSERT INTO {lane} (b) VALUES ('w')", "DO 1",
	}[r.rng.IntN(5)])
	ask := asks[r.rng.IntN(len(asks))]
	calls := append([]call{c, c}, before...)
	return append(calls, c, call{sql: ask}, c, c, call{sql: ask})
}

var mysqlSettings = []string{
	"SET time_zone = '+05:30'", "SET time_zone = '-03:00'", "SET SESSION time_zone = 'SYSTEM'", "SET sql_mode = 'ANSI_QUOTES'", "SET sql_mode = ''",
	"SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT'", "SET sql_mode = DEFAULT", "SET NAMES latin1", "SET NAMES utf8mb4", "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
	"SET character_set_results = latin1", "SET character_set_results = NULL", "SET CHARACTER SET utf8mb4", "SET collation_connection = utf8mb4_bin",
	"SET sql_select_limit = 3", "SET sql_select_limit = DEFAULT", "SET group_concat_max_len = 20", "SET div_precision_increment = 8", "SET lc_time_names = 'de_DE'",
	"SET lc_time_names = 'en_US'", "SET max_sort_length = 64", "SET @@session.time_zone='+00:00', @@session.lc_time_names='fr_FR'", "SET autocommit = ON", "SET autocommit=1",
	"SET @@autocommit = 'on'", "USE freshet_gate", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
	"SET default_week_format = 3", "SET sql_safe_updates = 0", "SET foreign_key_checks = 1",
	"SET SESSION big_tables = 0, time_zone = '+01:00'", "SET no_such_variable = 1", "SET time_zone = 'No/Where'", "SET sql_big_selects=1",
}

var mysqlResets = []call{
	{sql: string([]byte{wire.ComResetConnection}), mode: command, resets: true},
	{sql: "SET NAMES utf8mb4"},
	{sql: string(append([]byte{wire.ComInitDB}, database...)), mode: command},
	{sql: "USE freshet_gate; SET time_zone = DEFAULT, sql_mode = DEFAULT, sql_select_limit = DEFAULT, lc_time_names = DEFAULT"},
}

// mysqlScripts are short texts in a row, run alike on both sides.
var mysqlScripts = [][]string{
	{"SET @x = 3", "SELECT @x", "SELECT @x := @x + 1", "SELECT @x", "SELECT id FROM items WHERE id = @x"},
	{"CREATE TEMPORARY TABLE shadow (id INT)", "INSERT INTO shadow VALUES (1),(2)", "SELECT * FROM shadow ORDER BY id", "SELECT COUNT(*) FROM items", "DROP TEMPORARY TABLE shadow"},
	{"CREATE TEMPORARY TABLE customers (id INT, name VARCHAR(9))", "SELECT COUNT(*) FROM customers", "SELECT * FROM customers WHERE id = 1", "DROP TEMPORARY TABLE customers", "SELECT * FROM customers WHERE id = 1"},
	{"SELECT GET_LOCK('{lane}', 0)", "SELECT IS_FREE_LOCK('{lane}')", "SELECT RELEASE_LOCK('{lane}')", "SELECT RELEASE_LOCK('{lane}')"},
	{"LOCK TABLES {lane} WRITE", "INSERT INTO {lane} (b) VALUES ('locked')", "SELECT COUNT(*) FROM items", "SELECT COUNT(*) FROM {lane}", "UNLOCK TABLES", "SELECT COUNT(*) FROM customers"},
	{"SELECT 1; SELECT 2", "SELECT id FROM items WHERE id = 1; SELECT nothing FROM items; SELECT 3", "SELECT 1;", ";", "", "SELECT id FROM items WHERE id = 3 ; "},
	{"CALL two(3)", "CALL two(4)", "CALL nope()"},
	{"PREPARE st FROM 'SELECT id, name FROM items WHERE id = ?'", "SET @a = 4", "EXECUTE st USING @a", "EXECUTE st USING @a", "DEALLOCATE PREPARE st", "EXECUTE st USING @a"},
	{"SHOW TABLES LIKE 'item%'", "DESCRIBE items", "SHOW CREATE TABLE {lane}", "SHOW COLUMNS FROM customers", "SHOW VARIABLES LIKE 'autocommit'", "SHOW INDEX FROM kv"},
	{"SELECT SQL_CALC_FOUND_ROWS id FROM items ORDER BY id LIMIT 2", "SELECT FOUND_ROWS()", "SELECT id FROM items ORDER BY id LIMIT 2", "SELECT FOUND_ROWS()"},
	{"SELECT id FROM items WHERE id = 2 FOR UPDATE", "SELECT id FROM items WHERE id = 2 LOCK IN SHARE MODE", "SELECT id INTO @got FROM items WHERE id = 2", "SELECT @got"},
	{"USE information_schema", "SELECT COUNT(*) FROM items", "USE freshet_gate", "SELECT COUNT(*) FROM items", "USE no_such_db", "SELECT DATABASE()"},
	{"SELECT SLEEP(0)", "SELECT RAND(3) > 0", "SELECT LENGTH(UUID())", "SELECT NOW() - NOW()", "SELECT CURDATE() > '2000-01-01'", "SELECT BENCHMARK(1, 1)"},
	{"SET autocommit = 0", "INSERT INTO {lane} (b) VALUES ('implicit')", "SELECT COUNT(*) FROM {lane}", "CREATE TEMPORARY TABLE t9 (i INT)", "ROLLBACK", "DROP TEMPORARY TABLE t9", "SET autocommit = 1", "SELECT COUNT(*) FROM {lane}"},
	{"BEGIN", "INSERT INTO {lane} (b) VALUES ('ddl commits')", "ALTER TABLE {lane} COMMENT 'x'", "ROLLBACK", "SELECT COUNT(*) FROM {lane}"},
	{"BEGIN", "INSERT INTO {lane} (b) VALUES ('chained')", "COMMIT AND CHAIN", "INSERT INTO {lane} (b) VALUES ('undone')", "ROLLBACK", "SELECT COUNT(*) FROM {lane}"},
	{"XA START '{lane}'", "INSERT INTO {lane} (b) VALUES ('xa')", "XA END '{lane}'", "XA PREPARE '{lane}'", "XA COMMIT '{lane}'", "SELECT COUNT(*) FROM {lane}"},
	{"EXPLAIN SELECT nope FROM items", "ANALYZE TABLE hollow", "CHECK TABLE hollow", "FLUSH TABLES hollow"},
	{"HANDLER items OPEN", "HANDLER items READ FIRST", "HANDLER items CLOSE"},
	{"INSERT INTO {lane} (b) VALUES ('counted'), ('twice')", "SELECT LAST_INSERT_ID() > 0, ROW_COUNT()", "SELECT ROW_COUNT(), FOUND_ROWS()"},
	{"DO 1", "DO RELEASE_LOCK('{lane}')", "KILL QUERY 4294967295", "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'raised'", "SHOW WARNINGS"},
	{"SELECT CAST('2024-02-30' AS DATE)", "SHOW WARNINGS", "SELECT 'abc' + 1", "SHOW WARNINGS", "SELECT @@warning_count", "SELECT 1", "SHOW WARNINGS"},
	{"INSERT INTO {lane} (b) VALUES (REPEAT('long', 40))", "SHOW WARNINGS", "INSERT IGNORE INTO {lane} (b) VALUES (REPEAT('long', 40))", "SHOW WARNINGS", "SELECT b FROM {lane} ORDER BY id DESC LIMIT 1"},
	{"SELECT REPEAT('x', 100000)", "SELECT REPEAT('y', 65535), 1", "SELECT REPEAT('', 5)", "SELECT REPEAT('z', 251)", "SELECT REPEAT('z', 250)"},
	{"SET STATEMENT sql_select_limit = 2 FOR SELECT id FROM items ORDER BY id", "SELECT /*+ MAX_EXECUTION_TIME(10000) */ id FROM items WHERE id = 7", "SELECT /*!50000 id */ , name FROM items WHERE id = 7"},
}

var mysqlErrors = []call{
	{sql: "SELEC 1"}, {sql: "SELECT FROM items"}, {sql: "SELECT nope FROM items"}, {sql: "SELECT * FROM no_such_table"},
	{sql: "SELECT * FROM no_such_db.items"}, {sql: "INSERT INTO {lane} (id, b) VALUES (1, 'a'), (1, 'b')"}, {sql: "INSERT INTO {lane} (nope) VALUES (1)"},
	{sql: "SELECT id FROM items WHERE id = (SELECT id FROM items)"}, {sql: "SELECT COUNT(*), id FROM items GROUP BY nope"}, {sql: "CREATE TABLE items (id INT)"},
	{sql: "DROP TABLE no_such_table"}, {sql: "SELECT 'unterminated"}, {sql: "SELECT 1 + "}, {sql: "INSERT INTO {lane} (at) VALUES ('not a date')"},
	{sql: "SELECT no_such_function(1)"}, {sql: "CALL no_such_procedure()"}, {sql: "SELECT JSON_EXTRACT('{', '$.a')"}, {sql: "ROLLBACK TO SAVEPOINT nope"},
	{sql: "SELECT * FROM items WHERE id = ? AND", args: []any{int64(1)}}, {sql: "SELECT (SELECT 1, 2)"}, {sql: "SELECT ~0 + 1"}, {sql: "SELECT EXP(1000)"},
	{sql: "SELECT id FROM items LIMIT -1"}, {sql: "GRANT nothing ON items TO nobody_here"}, {sql: "USE no_such_db"}, {sql: "SELECT \xff\xfe FROM items"},
}

// sceneErrors runs what the server refuses, as text and prepared, between reads.
func sceneErrors(list []call) func(r *runner, p *pair) []call {
	return func(r *runner, p *pair) []call {
		c := list[r.rng.IntN(len(list))]
		c = r.inSomeMode(c, nil)
		return append([]call{c, c}, sceneReads(r, p)...)
	}
}

// sceneMySQLCommands sends commands other than queries.
func sceneMySQLCommands(r *runner, p *pair) []call {
	number := func(com byte, n uint32) string {
		return string(binary.LittleEndian.AppendUint32([]byte{com}, n))
	}
	list := []string{
		string([]byte{wire.ComPing}),
		string([]byte{wire.ComInitDB}) + database,
		string([]byte{wire.ComInitDB}) + "no_such_db",
		string([]byte{wire.ComFieldList}) + "items\x00%",
		string([]byte{wire.ComFieldList}) + "items\x00na%",
		string([]byte{wire.ComSetOption, 0, 0}),
		number(wire.ComStmtReset, 1<<30),
		string([]byte{0x7f}), // no such command
		string([]byte{wire.ComQuery}) + "DO 2",
	}
	calls := []call{{sql: list[r.rng.IntN(len(list))], mode: command}}
	if r.rng.IntN(3) == 0 {
		calls = append(calls, call{sql: list[0], mode: command})
	}
	return append(calls, sceneReads(r, p)...)
}

// sceneLongData sends parameters ahead of their statement.
func sceneLongData(r *runner, _ *pair) []call {
	reads := []call{
		{sql: "SELECT id, name FROM items WHERE sku = ?", args: []any{"sku-03"}, mode: longData, class: read},
		{sql: "SELECT CAST(? AS CHAR(40)), LENGTH(?)", args: []any{"long long", int64(3)}, mode: longData, class: read},
		{sql: "SELECT k FROM kv WHERE k = ?", args: []any{"k2"}, mode: longData, class: read},
	}
	c := reads[r.rng.IntN(len(reads))]
	plain := c
	plain.mode = prepared
	return []call{c, c, plain, c, {sql: "INSERT INTO {lane} (b) VALUES (?)", args: []any{"ahead of time"}, mode: longData}, plain}
}
