package mysql_test

import (
	"fmt"
	"strings"
	"testing"

	"freshet/bench/upstream"
	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// commandsBetween are those that clients send between statements, as a pool or a
// connector does. Some have a reply of a kind of its own.
var commandsBetween = map[string][]byte{
	"nothing":    nil,
	"ping":       {byte(wire.ComPing)},
	"statistics": {byte(wire.ComStatistics)},
	"init db":    append([]byte{byte(wire.ComInitDB)}, "freshet_test"...),
	"set option": {byte(wire.ComSetOption), 0, 0},
	"debug":      {byte(wire.ComDebug)},
	"field list": append([]byte{byte(wire.ComFieldList)}, "past\x00"...),
	"processes":  {byte(wire.ComProcessInfo)},
	"reset":      {byte(wire.ComStmtReset)},
	"prepare":    append([]byte{byte(wire.ComStmtPrepare)}, "SELECT v FROM past"...),
}

// ROW_COUNT() and its kin are told as the server tells them, whatever came
// between: in a transaction, after a hit, after a write, after what leaves none.
func TestDiagnosticsAfterCommands(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		table(t, s, "past", "CREATE TABLE past (id INT PRIMARY KEY, v INT)")
		mustDial(t, s.Address(), as(s, plainCaps)).query("INSERT INTO past VALUES (1, 10), (2, 20), (3, 30)")
		address := serve(t, s, proxy.Config{Loops: 1})
		warm := mustDial(t, address, as(s, plainCaps))
		for range 3 {
			warm.query("SELECT v FROM past")
			warm.query("SELECT v FROM past WHERE id = 1")
		}
		for name, before := range map[string][]string{
			"a read in a transaction":  {"BEGIN", "SELECT v FROM past"},
			"a hit":                    {"SELECT v FROM past WHERE id = 1", "SELECT v FROM past"},
			"a commit":                 {"BEGIN", "SELECT v FROM past", "COMMIT"},
			"a setting":                {"SELECT v FROM past", "SET autocommit = 1"},
			"a setting in the key":     {"SELECT v FROM past", "SET time_zone = '+01:00'"},
			"a write":                  {"SELECT v FROM past", "UPDATE past SET v = v + 1"},
			"a write in a transaction": {"SELECT v FROM past", "BEGIN", "UPDATE past SET v = v + 1"},
			"a begin":                  {"SELECT v FROM past", "BEGIN"},
			"an error":                 {"SELECT v FROM past", "SELECT nosuch FROM past"},
		} {
			for between, command := range commandsBetween {
				for _, ask := range []string{"SELECT ROW_COUNT()", "SELECT FOUND_ROWS()", "SHOW COUNT(*) WARNINGS", "GET DIAGNOSTICS @a = ROW_COUNT, @b = NUMBER"} {
					var got [2]string
					for i, at := range []string{address, s.Address()} {
						c := mustDial(t, at, as(s, plainCaps))
						if between == "reset" {
							p := c.command(append([]byte{byte(wire.ComStmtPrepare)}, "SELECT 1"...)).prep
							command = wire.AppendStatementCommand(nil, wire.ComStmtReset, p.StatementID)
						}
						for _, q := range before {
							c.query(q)
						}
						if command != nil {
							c.command(command)
						}
						if got[i] = c.cells(ask); strings.HasPrefix(ask, "GET") {
							got[i] += "; " + c.cells("SELECT @a, @b, ROW_COUNT()")
						}
						c.query("ROLLBACK")
						c.conn.Close()
					}
					if got[0] != got[1] {
						t.Errorf("%s, %s, %s:\nthrough %s\n direct %s", name, between, ask, got[0], got[1])
					}
				}
			}
		}
	})
}

// The same of executions of prepared statements, and of what is prepared.
func TestDiagnosticsAfterExecutions(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		table(t, s, "past", "CREATE TABLE past (id INT PRIMARY KEY, v INT)")
		mustDial(t, s.Address(), as(s, plainCaps)).query("INSERT INTO past VALUES (1, 10), (2, 20), (3, 30)")
		address := serve(t, s, proxy.Config{Loops: 1})
		run := func(at, q, begin, ask string, reset, prepared bool) (out string) {
			c := mustDial(t, at, as(s, plainCaps))
			defer c.conn.Close()
			c.query("SELECT DATABASE()") // FOUND_ROWS() before the first read depends on the thread
			prepare := func(q string) uint32 {
				return c.command(append([]byte{byte(wire.ComStmtPrepare)}, q...)).prep.StatementID
			}
			execute := func(id uint32) reply {
				return c.command(append(wire.AppendStatementCommand(nil, wire.ComStmtExecute, id), 0, 1, 0, 0, 0))
			}
			id, asking := prepare(q), prepare(ask)
			for range 3 {
				c.query(begin)
				execute(id)
				if reset {
					c.command(wire.AppendStatementCommand(nil, wire.ComStmtReset, id))
				}
				if prepared {
					r := execute(asking)
					out += fmt.Sprintf("%v %x; ", r.err, r.rows)
				} else {
					out += c.cells(ask) + "; "
				}
				c.query("ROLLBACK")
			}
			return out
		}
		for _, q := range []string{"SELECT v FROM past", "UPDATE past SET v = v + 1", "DO 1"} {
			for _, begin := range []string{"DO 0", "BEGIN"} {
				for _, ask := range []string{"SELECT ROW_COUNT()", "SELECT FOUND_ROWS()"} {
					for i := range 4 {
						reset, prepared := i&1 != 0, i&2 != 0
						through, direct := run(address, q, begin, ask, reset, prepared), run(s.Address(), q, begin, ask, reset, prepared)
						if through != direct {
							t.Errorf("%s; %s, reset %v, prepared %v, %s:\nthrough %s\n direct %s", begin, q, reset, prepared, ask, through, direct)
						}
					}
				}
			}
		}
	})
}

// What SET TRANSACTION said still holds after a ping.
func TestPingLeavesTheSession(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		table(t, s, "pinged", "CREATE TABLE pinged (id INT PRIMARY KEY)")
		address := serve(t, s, proxy.Config{Loops: 1})
		writer := mustDial(t, s.Address(), as(s, plainCaps))
		writer.query("BEGIN")
		writer.query("INSERT INTO pinged VALUES (1)")
		c := mustDial(t, address, as(s, plainCaps))
		c.query("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
		c.command([]byte{byte(wire.ComPing)})
		c.query("BEGIN")
		if got := c.cells("SELECT COUNT(*) FROM pinged"); got != "1" {
			t.Errorf("the transaction's isolation level was lost: %s rows", got)
		}
		c.query("ROLLBACK")
		writer.query("ROLLBACK")
	})
}
