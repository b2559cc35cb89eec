package mysql

import "testing"

func TestScanText(t *testing.T) {
	const plainRead, write = effRead, effects(0)
	for text, want := range map[string]effects{
		"SELECT 1":                                    plainRead,
		" /* c */ -- x\n select 1":                    plainRead,
		"(SELECT 1) UNION (SELECT 2)":                 plainRead,
		"SELECT '@a', \"@b\", `@c` FROM t":            plainRead,
		"SELECT 'a@b.c' FROM t -- @v":                 plainRead,
		"SELECT @a":                                   plainRead | effVariables,
		"SELECT @@sql_mode":                           plainRead,
		"SELECT @@warning_count":                      plainRead | effWarnings,
		"SELECT @@session.last_insert_id":             plainRead | effLastID,
		"SELECT 1; SELECT 2":                          plainRead | effMany,
		"SELECT 1;":                                   plainRead,
		"SELECT 1 LIMIT 3 OFFSET 4":                   plainRead | effOffset,
		"SELECT 1 LIMIT 3, 4":                         plainRead | effOffset,
		"SELECT 1 LIMIT 3":                            plainRead,
		"SELECT 1, 2 FROM t LIMIT 1":                  plainRead,
		"SELECT GET_LOCK('x', 1)":                     plainRead | effNamedLock,
		"SELECT LAST_INSERT_ID(), FOUND_ROWS()":       plainRead | effLastID | effFound,
		"SELECT SQL_CALC_FOUND_ROWS 1":                plainRead | effCalcFound,
		"SELECT 1 INTO @x":                            plainRead | effVariables,
		"/*!50000 SET @a = 1 */":                      effSet | effConsole | effQuiet | effVariables,
		"UPDATE t SET a = 1":                          write,
		"INSERT INTO t VALUES (1)":                    effInsert,
		"SET NAMES utf8mb4":                           effSet | effConsole | effQuiet,
		"SET sql_mode = f()":                          effSet | effConsole | effComputed,
		"SET @@time_zone = 'x'":                       effSet | effConsole | effQuiet | effUnscoped,
		"SET @@session.time_zone = 'x'":               effSet | effConsole | effQuiet,
		"SET @@transaction_isolation = 'x'":           effSet | effConsole | effQuiet | effNextTrans,
		"SET @@`tx_isolation` := 'x'":                 effSet | effConsole | effQuiet | effNextTrans,
		"COMMIT AND CHAIN":                            effEnds,
		"ROLLBACK":                                    effEnds,
		"ROLLBACK TO SAVEPOINT s":                     0,
		"ROLLBACK WORK TO s":                          0,
		"SET ROLE r":                                  effSet | effConsole | effQuiet | effRole,
		"SET TRANSACTION READ ONLY":                   effSet | effConsole | effQuiet | effNextTrans,
		"SET SESSION TRANSACTION READ ONLY":           effSet | effConsole | effQuiet,
		"SET session_track_schema = OFF":              effSet | effConsole | effQuiet | effTracking,
		"SET @@session.session_track_schema = OFF":    effSet | effConsole | effQuiet | effTracking,
		"SET STATEMENT max_statement_time=1 FOR DO 1": effSet | effConsole | effStatement,
		"USE db":                           effUse | effQuiet,
		"CREATE TEMPORARY TABLE t (a INT)": effConsole | effInsert | effTemporary,
		"LOCK TABLES t READ":               effLock,
		"FLUSH TABLES WITH READ LOCK":      effConsole | effLock,
		"FLUSH TABLES":                     effConsole,
		"UNLOCK TABLES":                    effUnlock,
		"PREPARE p FROM 'SELECT 1'":        effPrepare,
		"EXECUTE p":                        effPrepare | effUnproven,
		"CALL p()":                         effUnproven,
		"BEGIN":                            effQuiet,
		"BEGIN NOT ATOMIC SELECT 1; END":   effQuiet | effUnproven | effMany,
		"XA START 'x'":                     effXA,
		"HANDLER t OPEN":                   effHandler,
		"KILL 5":                           effKill,
		"SHOW WARNINGS":                    effConsole | effQuiet | effWarnings,
		"nonsense":                         effUnproven,
		"5":                                effUnproven,
		"":                                 0,
		"SELECT 'unended":                  plainRead | effUnproven,
	} {
		if got := scanText([]byte(text), ""); got != want {
			t.Errorf("%s:\n got %b\nwant %b", text, got, want)
		}
	}
	if got := scanText([]byte(`SELECT "@a"`), "ANSI_QUOTES"); got != effRead {
		t.Errorf("a name in quotes: %b", got)
	}
	if got := scanText([]byte(`SELECT 'a\', @b`), "NO_BACKSLASH_ESCAPES"); got != effRead|effVariables {
		t.Errorf("a backslash that escapes nothing: %b", got)
	}
	if got := scanText([]byte(`SELECT 'a\', @b'`), ""); got != effRead {
		t.Errorf("a backslash that escapes: %b", got)
	}
}

func TestScoped(t *testing.T) {
	for text, want := range map[string]string{
		"SET @@time_zone='+01:00', @@ sql_mode = ''":               "SET @@session.time_zone='+01:00', @@ sql_mode = ''",
		"set @@`time_zone` := 1,@@a=@@b, @@global.c=@@d":           "set @@session.`time_zone` := 1,@@session.a=@@b, @@global.c=@@d",
		"SET @x = @@a, @@tx_isolation='y', @@local.b = (@@c = 1)":  "SET @x = @@a, @@tx_isolation='y', @@local.b = (@@c = 1)",
		"SET NAMES utf8mb4, @@a = 1; SELECT '@@b = 1', @@c = 2":    "SET NAMES utf8mb4, @@session.a = 1; SELECT '@@b = 1', @@session.c = 2",
		"/* SET @@a = 1 */ SET /* , */ @@a /**/ = /**/ 1 -- @@b=1": "/* SET @@a = 1 */ SET /* , */ @@session.a /**/ = /**/ 1 -- @@b=1",
	} {
		if got := string(scoped([]byte(text), "")); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

func FuzzScanText(f *testing.F) {
	f.Add([]byte("SELECT @a; SET x = 'y"))
	f.Fuzz(func(t *testing.T, text []byte) { scanText(text, "") })
}
