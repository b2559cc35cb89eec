package mysql_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"freshet/bench/upstream"
	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// A moment of more digits than its column is found by an index or not, as the
// server's plan has it. What is asked for one is never kept, whichever way the
// moment comes; other values of the same statement are.
func TestFinerMomentsAreNotKept(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		direct := table(t, s, "finer", "CREATE TABLE finer (id INT PRIMARY KEY, c DATETIME, KEY ix (c))",
			"INSERT INTO finer VALUES (1, '2024-01-02 03:04:05'), (2, '2024-01-02 03:04:06')")
		scan := direct.cells("SELECT COUNT(*) FROM finer IGNORE INDEX (ix) WHERE c = '2024-01-02 03:04:05.5'")
		index := direct.cells("SELECT COUNT(*) FROM finer FORCE INDEX (ix) WHERE c = '2024-01-02 03:04:05.5'")
		if scan == index {
			t.Errorf("the server compares in one way: %s", scan)
		}
		c := mustDial(t, serve(t, s, proxy.Config{Loops: 1}), as(s, plainCaps))
		untilHit(t, c, func() reply { return c.query("SELECT id FROM finer WHERE c = '2024-01-02 03:04:05'") })
		never(t, c, func() { c.query("SELECT id FROM finer WHERE c = '2024-01-02 03:04:05.5'") })

		prepared := c.command(append([]byte{byte(wire.ComStmtPrepare)}, "SELECT id FROM finer WHERE c = ?"...))
		id := prepared.prep.StatementID
		execute := func(typ wire.FieldType, value string) reply {
			p := append(wire.AppendStatementCommand(nil, wire.ComStmtExecute, id), 0, 1, 0, 0, 0)
			p = append(p, 0, 1, byte(typ), 0, byte(len(value)))
			return c.command(append(p, value...))
		}
		whole := string([]byte{0xe8, 7, 1, 2, 3, 4, 5})
		finer := whole + string(binary.LittleEndian.AppendUint32(nil, 500_000))
		untilHit(t, c, func() reply { return execute(wire.TypeDatetime, whole) })
		untilHit(t, c, func() reply { return execute(wire.TypeVarString, "2024-01-02 03:04:05.00") })
		never(t, c, func() { execute(wire.TypeDatetime, finer) })
		never(t, c, func() { execute(wire.TypeVarString, "2024-01-02 03:04:05.5") })
		if why := c.cells("EXPLAIN CREATE CACHE FROM SELECT id FROM finer WHERE c = '2024-01-02 03:04:05.5'"); !strings.Contains(why, "in two ways") {
			t.Errorf("EXPLAIN CREATE CACHE says %s", why)
		}
		direct.query("DROP TABLE finer")
	})
}

// never asks a few times, once others of the same table hit, and wants the
// reason each time.
func never(t *testing.T, c *client, ask func()) {
	t.Helper()
	for range 3 {
		ask()
		if last := c.cells("EXPLAIN LAST STATEMENT"); strings.HasPrefix(last, "cache") || !strings.Contains(last, "in two ways") {
			t.Errorf("EXPLAIN LAST STATEMENT says %s", last)
		}
	}
}

// A TIMESTAMP compared with an hour that comes twice in the session's time zone is
// never kept; other moments are, and that hour is where clocks are not set. A
// statement that was prepared before the zone was changed is no exception.
func TestDoubledHoursAreNotKept(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		direct := table(t, s, "doubled", "CREATE TABLE doubled (id INT PRIMARY KEY, c TIMESTAMP NULL, KEY ix (c))",
			"REPLACE INTO mysql.time_zone (Time_zone_id, Use_leap_seconds) VALUES (8888, 'N')", "REPLACE INTO mysql.time_zone_name (Name, Time_zone_id) VALUES ('Test/Twice', 8888)",
			"REPLACE INTO mysql.time_zone_transition_type VALUES (8888, 0, 3600, 0, 'A'), (8888, 1, 7200, 1, 'B')",
			"REPLACE INTO mysql.time_zone_transition VALUES (8888, 1711846800, 1), (8888, 1729990800, 0)",
			"SET time_zone = '+00:00'", "INSERT INTO doubled VALUES (1, '2024-10-27 00:30:00'), (2, '2024-10-27 01:30:00')", "SET time_zone = 'Test/Twice'")
		scan := direct.cells("SELECT COUNT(*) FROM doubled IGNORE INDEX (ix) WHERE c = '2024-10-27 02:30:00'")
		index := direct.cells("SELECT COUNT(*) FROM doubled FORCE INDEX (ix) WHERE c = '2024-10-27 02:30:00'")
		if scan != "2" || index != "1" {
			t.Errorf("by scan %s, by index %s, want 2 and 1", scan, index)
		}
		c := mustDial(t, serve(t, s, proxy.Config{Loops: 1}), as(s, plainCaps))
		prepared := c.command(append([]byte{byte(wire.ComStmtPrepare)}, "SELECT id FROM doubled WHERE c = ?"...))
		execute := func(value string) reply {
			p := append(wire.AppendStatementCommand(nil, wire.ComStmtExecute, prepared.prep.StatementID), 0, 1, 0, 0, 0)
			return c.command(append(append(p, 0, 1, byte(wire.TypeVarString), 0, byte(len(value))), value...))
		}
		const twice = "2024-10-27 02:30:00"
		untilHit(t, c, func() reply { return execute(twice) })
		untilHit(t, c, func() reply { return c.query("SELECT id FROM doubled WHERE c = '" + twice + "'") })
		c.query("SET time_zone = 'Test/Twice'")
		untilHit(t, c, func() reply { return execute("2024-06-01 02:30:00") })
		never(t, c, func() { execute(twice) })
		never(t, c, func() { c.query("SELECT id FROM doubled WHERE c = '" + twice + "'") })
		c.query("SET time_zone = '+02:00'")
		untilHit(t, c, func() reply { return execute(twice) })
		direct.query("DROP TABLE doubled")
	})
}
