package gate

var postgresScenes = []scene{
	{"reads", 40, false, sceneReads},
	{"mixed reads", 15, false, sceneMixed},
	{"write", 24, false, sceneWrite},
	{"open write", 2, false, sceneOpenWrite},
	{"pipeline", 8, true, scenePipeline},
	{"lane", 8, true, func(r *runner, _ *pair) []call {
		return laneCalls(r.rng, postgresLaneStatements, postgresLaneModes, 2+r.rng.IntN(5))
	}},
	{"transaction", 6, true, scenePostgresTransaction},
	{"script", 8, true, oneText(postgresScripts, postgresResets[0])},
	{"copy", 3, true, sceneCopy},
	{"settings", 5, false, shuffledSettings(postgresSettings, postgresResets)},
	{"errors", 5, false, sceneErrors(postgresErrors)},
	{"fetch", 3, true, sceneSQLCursor},
}

var postgresLaneModes = []mode{text, prepared, prepared, once, unnamed, flushed}

// postgresLaneStatements are statements on the session's own table.
var postgresLaneStatements = []template{
	{"", "INSERT INTO {s}{lane} (a, b, c, at, e) VALUES (?, ?, ?, ?, ?)", []arg{orNull(3, within(60)), word, price, timeOf, blobOf}, nil},
	{"", "INSERT INTO {s}{lane} (b) VALUES (?), (?), (?) RETURNING id, b", []arg{word, word, orNull(2, word)}, nil},
	{"", "INSERT INTO {s}{lane} (a, b) VALUES (?, 'x') ON CONFLICT (a) DO UPDATE SET b = ?", []arg{within(5), word}, nil},
	{"", "INSERT INTO {s}{lane} (a, c) VALUES (?, ?) ON CONFLICT DO NOTHING", []arg{within(5), price}, nil},
	{"", "UPDATE {s}{lane} SET b = ? WHERE a = ?", []arg{word, within(8)}, nil},
	{"", "UPDATE {s}{lane} SET c = c + 1 WHERE c > ? RETURNING c", []arg{price}, nil},
	{"", "DELETE FROM {s}{lane} WHERE id % 7 = ?", []arg{quantity}, nil},
	{"", "INSERT INTO {s}{lane} (a, c) VALUES (?, 1.23456)", []arg{within(90)}, nil},
	{"", "INSERT INTO {s}{lane} (b) SELECT name FROM {s}items WHERE id = ?", []arg{itemID}, nil},
	{"", "WITH gone AS (DELETE FROM {s}{lane} WHERE a = ? RETURNING id) SELECT count(*) FROM gone", []arg{within(8)}, nil},
	{"", "SELECT * FROM {s}{lane} ORDER BY id", nil, nil},
	{"", "SELECT count(*), sum(a), max(b) FROM {s}{lane}", nil, nil},
	{"", "SELECT id, a, b FROM {s}{lane} WHERE a = ?", []arg{within(8)}, nil},
	{"", "SELECT id, e FROM {s}{lane} WHERE id = ? FOR UPDATE", []arg{within(8)}, nil},
	{"", "UPDATE {s}{lane} SET b = 'q' WHERE id = 1; SELECT count(*) FROM {s}{lane}; SELECT 1", nil, inOneText},
	{"", "UPDATE {s}{lane} SET b = 'lost' WHERE id = 1; SELECT 1/0; SELECT 2", nil, inOneText},
	{"", "TRUNCATE {s}{lane}", nil, nil},
	{"", "SELECT l.id, i.name FROM {s}{lane} l JOIN {s}items i ON i.id = l.a ORDER BY l.id", nil, nil},
}

var postgresBegins = []string{
	"BEGIN", "START TRANSACTION", "BEGIN READ ONLY", "BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN; SELECT count(*) FROM freshet_gate.items",
	"/* x */ begin work", "BEGIN ISOLATION LEVEL SERIALIZABLE, READ WRITE, DEFERRABLE", "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED; BEGIN",
}

// scenePostgresTransaction opens a transaction in one of its spellings, works
// in it, sometimes breaks it, and leaves it.
func scenePostgresTransaction(r *runner, p *pair) []call {
	begin := call{sql: postgresBegins[r.rng.IntN(len(postgresBegins))]}
	if r.rng.IntN(3) == 0 {
		begin = call{sql: "BEGIN", mode: []mode{prepared, unnamed, once}[r.rng.IntN(3)]}
	}
	calls := append([]call{begin}, laneCalls(r.rng, postgresLaneStatements, postgresLaneModes, 1+r.rng.IntN(4))...)
	if r.rng.IntN(2) == 0 {
		calls = append(calls, texts("SAVEPOINT s1")...)
		calls = append(calls, laneCalls(r.rng, postgresLaneStatements, postgresLaneModes, 2)...)
		if r.rng.IntN(2) == 0 {
			calls = append(calls, call{sql: "SELECT 1/0"})
		}
		calls = append(calls, texts("ROLLBACK TO SAVEPOINT s1", "SET LOCAL timezone = 'America/Lima'", "SHOW timezone")...)
	}
	calls = append(calls, sceneReads(r, p)...)
	if r.rng.IntN(3) == 0 {
		calls = append(calls, call{sql: postgresErrors[r.rng.IntN(len(postgresErrors))].sql}, call{sql: "SELECT 1"})
	}
	end := []string{"COMMIT", "ROLLBACK", "END", "ABORT", "COMMIT AND CHAIN", "ROLLBACK AND CHAIN"}[r.rng.IntN(6)]
	calls = append(calls, texts(end, "ROLLBACK", "SHOW timezone")...)
	return append(calls, laneCalls(r.rng, postgresLaneStatements[10:13], postgresLaneModes, 2)...)
}

// scenePipeline sends several statements in one write: reads that were asked
// before, others, writes to the lane table, an error in the middle.
func scenePipeline(r *runner, _ *pair) []call {
	var batch []call
	for n := 2 + r.rng.IntN(6); n > 0; n-- {
		var c call
		switch k := r.rng.IntN(10); {
		case k < 7:
			t := r.d.reads[r.rng.IntN(len(r.d.reads))]
			c = r.inSomeMode(call{sql: t.sql, args: t.draw(r.rng)}, []mode{unnamed})
		case k < 9:
			t := postgresLaneStatements[r.rng.IntN(10)]
			c = call{sql: t.sql, args: t.draw(r.rng), mode: unnamed}
		default:
			e := postgresErrors[r.rng.IntN(len(postgresErrors))]
			c = call{sql: e.sql, args: e.args, mode: unnamed}
		}
		batch = append(batch, c)
	}
	c := call{mode: pipeline, batch: batch, syncs: r.rng.IntN(2) == 0}
	return []call{c, c}
}

// sceneCopy moves rows by COPY, some of them wrong.
func sceneCopy(r *runner, _ *pair) []call {
	good := call{sql: "COPY {s}{lane} (a, b) FROM STDIN", file: []byte("9001\tnine\n9002\t\\N\n")}
	bad := call{sql: "COPY {s}{lane} (a, b) FROM STDIN WITH (FORMAT csv)", file: []byte("9003,ok\nnot a number,x\n")}
	all := append(texts("DELETE FROM {s}{lane} WHERE a > 9000"), good, bad)
	all = append(all, texts("COPY (SELECT id, name FROM {s}items WHERE id < 5 ORDER BY id) TO STDOUT", "SELECT a, b FROM {s}{lane} WHERE a > 9000 ORDER BY a",
		"COPY {s}no_such_table TO STDOUT", "BEGIN", "COPY {s}hollow TO STDOUT WITH (FORMAT binary)", "ROLLBACK")...)
	return all
}

// sceneSQLCursor reads by DECLARE and FETCH.
func sceneSQLCursor(*runner, *pair) []call {
	return texts("BEGIN", "DECLARE c SCROLL CURSOR FOR SELECT id, name FROM {s}items ORDER BY id", "FETCH 3 FROM c", "FETCH BACKWARD 1 FROM c",
		"MOVE 2 IN c", "FETCH FORWARD ALL FROM c", "CLOSE c", "FETCH c", "ROLLBACK",
		"BEGIN", "DECLARE h CURSOR WITH HOLD FOR SELECT id FROM {s}customers ORDER BY id", "COMMIT", "FETCH 2 FROM h", "CLOSE h")
}

var postgresSettings = []string{
	"SET timezone = 'Asia/Kolkata'", "SET TIME ZONE 'America/Lima'", "SET TIME ZONE LOCAL", "SET TIME ZONE +3", "SET datestyle = 'SQL, DMY'", "SET datestyle TO 'German'", "SET DateStyle = ISO, MDY",
	"SET intervalstyle = 'iso_8601'", "SET intervalstyle = 'sql_standard'", "SET bytea_output = 'escape'", "SET bytea_output = hex", "SET extra_float_digits = -3", "SET extra_float_digits = 3",
	"SET search_path = public", "SET search_path TO freshet_gate", "SET search_path = freshet_gate, public", "SET search_path = \"$user\", no_such_schema",
	"SET client_encoding = 'LATIN1'", "SET NAMES 'UTF8'", "SET lc_numeric = 'C'", "SET lc_time = 'C'", "SET standard_conforming_strings = on", "SET work_mem = '8MB'", "SET enable_seqscan = on",
	"SELECT set_config('timezone', 'Europe/Paris', false)", "SELECT set_config('datestyle', 'ISO, YMD', false)", "SET application_name = 'gate'", "SET statement_timeout = '19s'",
	"SET myapp.tenant = '7'", "SELECT current_setting('myapp.tenant', true)", "SET no_such_variable = 1", "SET timezone = 'No/Where'", "RESET timezone", "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
	"SET xmloption = document", "SET array_nulls = on", "BEGIN; SET timezone = 'Africa/Lagos'; ROLLBACK", "BEGIN; SET datestyle = 'Postgres, DMY'; COMMIT", "SET plan_cache_mode = force_generic_plan",
	"SET row_security = on", "SET ROLE NONE", "SET lock_timeout = 0", "SET transform_null_equals = on", "SET transform_null_equals = off",
}

var postgresResets = []call{
	{sql: "DISCARD ALL", resets: true}, {sql: "DEALLOCATE ALL", resets: true}, {sql: "RESET ALL"},
	{sql: "RESET ALL"}, {sql: "SET search_path = freshet_gate; RESET datestyle; RESET client_encoding"},
	{sql: "DISCARD PLANS"}, {sql: "DISCARD ALL", mode: unnamed, resets: true},
}

// postgresScripts are short texts in a row, run alike on both sides.
var postgresScripts = [][]string{
	{"CREATE TEMP TABLE shadow (id int)", "INSERT INTO shadow VALUES (1),(2)", "SELECT * FROM shadow ORDER BY id", "SELECT count(*) FROM {s}items", "DROP TABLE shadow"},
	{"CREATE TEMP TABLE customers (id int, name text)", "SELECT count(*) FROM customers", "SELECT count(*) FROM freshet_gate.customers", "DROP TABLE pg_temp.customers", "SELECT count(*) FROM {s}customers"},
	{"SELECT pg_try_advisory_lock({key})", "SELECT pg_advisory_unlock({key})", "SELECT pg_advisory_unlock({key})"},
	{"LISTEN {lane}", "NOTIFY {lane}, 'hello'", "SELECT count(*) FROM {s}items", "UNLISTEN *", "NOTIFY {lane}, 'nobody'"},
	{"SELECT 1; SELECT 2", "SELECT id FROM {s}items WHERE id = 1; SELECT nothing FROM {s}items; SELECT 3", "SELECT 1;", ";", "", "SELECT id FROM {s}items WHERE id = 3 ; ", "-- nothing", ";;"},
	{"PREPARE st AS SELECT id, name FROM {s}items WHERE id = $1", "EXECUTE st(4)", "EXECUTE st(4)", "DEALLOCATE st", "EXECUTE st(4)"},
	{"SHOW search_path", "SHOW server_version", "SHOW ALL_nothing", "SELECT current_schema()", "SELECT current_user = session_user"},
	{"SELECT id FROM {s}items WHERE id = 2 FOR UPDATE", "SELECT id FROM {s}items WHERE id = 2 FOR SHARE", "SELECT id FROM {s}items WHERE id = 2 FOR NO KEY UPDATE SKIP LOCKED"},
	{"CREATE TEMP TABLE made AS SELECT id FROM {s}items WHERE id < 4", "SELECT count(*) FROM made", "SELECT id INTO TEMP again FROM made", "DROP TABLE made, again"},
	{"SELECT pg_sleep(0)", "SELECT random() < 1", "SELECT length(gen_random_uuid()::text)", "SELECT clock_timestamp() > now()", "SELECT now() - now()", "SELECT txid_current() > 0"},
	{"BEGIN", "INSERT INTO {s}{lane} (b) VALUES ('ddl')", "ALTER TABLE {s}{lane} ALTER b SET DEFAULT 'z'", "ROLLBACK", "SELECT count(*) FROM {s}{lane}"},
	{"BEGIN", "INSERT INTO {s}{lane} (b) VALUES ('chained')", "COMMIT AND CHAIN", "INSERT INTO {s}{lane} (b) VALUES ('undone')", "ROLLBACK", "SELECT count(*) FROM {s}{lane}"},
	{"DO 'BEGIN RAISE NOTICE ''told''; END'", "DO 'BEGIN RAISE EXCEPTION ''raised''; END'", "DROP TABLE IF EXISTS no_such_table", "ROLLBACK", "COMMIT", "BEGIN", "BEGIN", "COMMIT"},
	{"SELECT repeat('x', 100000)", "SELECT repeat('y', 65535), 1", "SELECT repeat('', 5)", "SELECT n, repeat('z', 1000) FROM generate_series(1, 300) n"},
	{"BEGIN", "SET LOCAL timezone = 'Asia/Tokyo'", "SELECT seen FROM {s}items WHERE id = 3", "COMMIT", "SELECT seen FROM {s}items WHERE id = 3"},
	{"BEGIN", "SET timezone = 'Asia/Seoul'", "ROLLBACK", "SHOW timezone", "SELECT seen FROM {s}items WHERE id = 3"},
	{"SET myapp.tenant = '9'", "SELECT current_setting('myapp.tenant')", "RESET myapp.tenant", "SELECT current_setting('myapp.tenant')"},
	{"SELECT nextval('{s}{lane}_id_seq') > 0", "SELECT currval('{s}{lane}_id_seq') > 0", "SELECT lastval() > 0"},
	{"EXPLAIN (COSTS OFF) SELECT nope FROM {s}items", "EXPLAIN (COSTS OFF) SELECT id FROM {s}items WHERE id = 1", "ANALYZE {s}hollow", "VACUUM {s}hollow", "BEGIN", "VACUUM", "ROLLBACK"},
	{"SET ROLE pg_monitor", "SELECT current_user", "SELECT count(*) FROM freshet_gate.customers", "RESET ROLE", "SELECT count(*) FROM freshet_gate.customers"},
	{"LOCK TABLE {s}{lane}", "BEGIN", "LOCK TABLE {s}{lane} IN SHARE MODE", "SELECT count(*) FROM {s}{lane}", "COMMIT"},
}

var postgresErrors = []call{
	{sql: "SELEC 1"}, {sql: "SELECT nope FROM {s}items"}, {sql: "SELECT * FROM no_such_table"}, {sql: "SELECT * FROM no_such_schema.items"}, {sql: "SELECT * FROM a.b.c.d"},
	{sql: "INSERT INTO {s}{lane} (id, b) VALUES (-1, 'a'), (-1, 'b')"}, {sql: "INSERT INTO {s}{lane} (nope) VALUES (1)"}, {sql: "SELECT id FROM {s}items WHERE id = (SELECT id FROM {s}items)"},
	{sql: "SELECT count(*), id FROM {s}items"}, {sql: "CREATE TABLE freshet_gate.items (id int)"}, {sql: "DROP TABLE no_such_table"}, {sql: "SELECT 'unterminated"},
	{sql: "SELECT 1 + "}, {sql: "INSERT INTO {s}{lane} (at) VALUES ('not a date')"}, {sql: "SELECT no_such_function(1)"}, {sql: "SELECT '{'::json"}, {sql: "ROLLBACK TO SAVEPOINT nope"},
	{sql: "SELECT 1/0"}, {sql: "SELECT (SELECT 1, 2)"}, {sql: "SELECT exp(1000000::float8)"}, {sql: "SELECT id FROM {s}items LIMIT -1"}, {sql: "SELECT 99999999999::int"}, {sql: "SELECT 'x'::freshet_gate.mood"},
	{sql: "GRANT SELECT ON {s}items TO nobody_here"}, {sql: "SELECT '\xff\xfe'"}, {sql: "SELECT id FROM {s}items WHERE id = ?", args: []any{"not a number"}},
	{sql: "SELECT -1::freshet_gate.amount * 100000 ; SELECT (-5000)::freshet_gate.amount"}, {sql: "UPDATE {s}items SET id = 1 WHERE id IN (1, 2)"},
	{sql: "SELECT 'a' COLLATE \"no_such\""}, {sql: "COPY {s}items FROM '/no/such/file'"}, {sql: "SELECT $1"},
}
