package mysql_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"freshet/bench/seed"
	"freshet/bench/upstream"
	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// seeded draws from FRESHET_SEED, or the same for every run.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	n := seed.Of(t, "FRESHET_SEED", 1)
	t.Logf("FRESHET_SEED=%d", n)
	return rand.New(rand.NewPCG(n, 1))
}

// Sessions that share few links never notice each other: each has a twin
// straight on the server, on a table of its own, that must be told the same.
func TestSessionsShareLinks(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		r := seeded(t)
		address := serve(t, s, proxy.Config{MaxLinks: 4, Loops: 1})
		const sessions = 10
		var through, direct [sessions]*client
		for i := range sessions {
			table(t, s, fmt.Sprintf("share%d", i), fmt.Sprintf("CREATE TABLE share%d (id INT PRIMARY KEY AUTO_INCREMENT, n INT)", i))
			table(t, s, fmt.Sprintf("shire%d", i), fmt.Sprintf("CREATE TABLE shire%d (id INT PRIMARY KEY AUTO_INCREMENT, n INT)", i))
			through[i], direct[i] = mustDial(t, address, as(s, plainCaps)), mustDial(t, s.Address(), as(s, plainCaps))
			// What FOUND_ROWS() is before the first read depends on the thread.
			through[i].query("SELECT DATABASE()")
			direct[i].query("SELECT DATABASE()")
		}
		var history [sessions][]string
		for step := range 600 {
			i := r.IntN(sessions)
			q := sharedStatement(r, i)
			if n := len(history[i]); n > 0 && r.IntN(10) == 0 && strings.Contains(history[i][n-1], "share") {
				q = "SHOW WARNINGS" // MariaDB keeps them past statements that use no table
			}
			history[i] = append(history[i], q)
			got := through[i].cells(q)
			want := direct[i].cells(strings.ReplaceAll(q, "share", "shire"))
			if strings.Contains(got, "no longer known") {
				continue // given up for one that waited for a link
			}
			if got != strings.ReplaceAll(want, "shire", "share") {
				t.Fatalf("step %d, session %d: %s\nthrough %q\n direct %q\nafter:\n%s", step, i, q, got, want, strings.Join(history[i], "\n"))
			}
		}
	})
}

// sharedStatement is one that leaves no state that pins a link, but for what
// the protocol's bookkeeping has to carry from link to link.
func sharedStatement(r *rand.Rand, i int) string {
	n := r.IntN(5)
	return []string{
		fmt.Sprintf("INSERT INTO share%d (n) VALUES (%d)", i, n),
		fmt.Sprintf("INSERT INTO share%d (n) VALUES (%d), (7), (8)", i, n),
		fmt.Sprintf("SELECT * FROM share%d WHERE n = %d", i, n),
		fmt.Sprintf("SELECT COUNT(*) FROM share%d", i),
		fmt.Sprintf("UPDATE share%d SET n = n + 1 WHERE n = %d", i, n),
		fmt.Sprintf("DELETE FROM share%d WHERE n = %d", i, n),
		fmt.Sprintf("INSERT INTO share%d (n) VALUES (LAST_INSERT_ID())", i),
		"SELECT LAST_INSERT_ID()",
		"SELECT FOUND_ROWS()",
		fmt.Sprintf("SET time_zone = '+0%d:00'", n),
		"SELECT @@time_zone",
		[]string{"SET NAMES latin1", "SET NAMES utf8mb4", "SET NAMES utf8mb4 COLLATE utf8mb4_bin"}[r.IntN(3)],
		"SELECT @@character_set_results, @@collation_connection",
		[]string{"SET sql_mode = ''", "SET sql_mode = 'ANSI_QUOTES'"}[r.IntN(2)],
		"SELECT \"x\" AS y FROM DUAL",
		"SELECT DATABASE()",
		fmt.Sprintf("SELECT nosuch FROM share%d", i),
		fmt.Sprintf("SELECT CAST(CONCAT('x', n) AS SIGNED) FROM share%d", i),
	}[r.IntN(18)]
}

// State that only its link has stays with the session, and goes with it.
func TestStateDoesNotLeak(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		address := serve(t, s, proxy.Config{MaxLinks: 8, Loops: 1})
		a := mustDial(t, address, as(s, plainCaps))
		for _, q := range []string{"SET @v = 1", "CREATE TEMPORARY TABLE leak (a INT)", "SET time_zone = '+09:00'", "SET timestamp = 1000"} {
			if r := a.query(q); r.err != nil {
				t.Fatal(q, r.err)
			}
		}
		b := mustDial(t, address, as(s, plainCaps))
		if got := b.cells("SELECT @v, @@time_zone"); got != "NULL,SYSTEM" {
			t.Errorf("another session sees %s", got)
		}
		if got := b.cells("SELECT * FROM leak"); !strings.Contains(got, "1146") {
			t.Errorf("another session sees the temporary table: %s", got)
		}
		if got := a.cells("SELECT @v, @@time_zone, UNIX_TIMESTAMP()"); got != "1,+09:00,1000" {
			t.Errorf("the session lost its state: %s", got)
		}
		a.conn.Close()
		for range 5 {
			c := mustDial(t, address, as(s, plainCaps))
			if got := c.cells("SELECT @v, @@time_zone"); got != "NULL,SYSTEM" {
				t.Errorf("a later session sees %s", got)
			}
		}
	})
}

// ROW_COUNT() speaks of the statement before, whose link may be with others.
func TestRowCount(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		table(t, s, "counted", "CREATE TABLE counted (a INT)")
		address := serve(t, s, proxy.Config{})
		c := mustDial(t, address, as(s, plainCaps))
		c.query("INSERT INTO counted VALUES (1), (2), (3)")
		if got := c.cells("SELECT ROW_COUNT()"); got != "3" {
			t.Error(got)
		}
		c.query("INSERT INTO counted VALUES (1), (2), (3)")
		if got := c.cells("SELECT ROW_COUNT() + 1 FROM DUAL"); got != "4" && !strings.Contains(got, "freshet") {
			t.Error(got)
		}
	})
}

// The same of a statement that has to be prepared on the link at hand first,
// under the settings it was prepared with.
func TestRowCountPreparedUnderOtherSettings(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		table(t, s, "counted", "CREATE TABLE counted (a INT)")
		address := serve(t, s, proxy.Config{Loops: 1})
		c, other := mustDial(t, address, as(s, plainCaps)), mustDial(t, address, as(s, plainCaps))
		c.query("SET NAMES latin1")
		prepared := c.command(append([]byte{byte(wire.ComStmtPrepare)}, "SELECT ROW_COUNT()"...)).prep
		c.query("SET NAMES utf8mb4")
		other.query("SET NAMES utf8mb4")
		other.query("SET @taken = 1") // keeps the link on which it is prepared
		c.query("INSERT INTO counted VALUES (1), (2), (3)")
		r := c.command(append(wire.AppendStatementCommand(nil, wire.ComStmtExecute, prepared.StatementID), 0, 1, 0, 0, 0))
		if r.err != nil || len(r.rows) != 1 || r.rows[0] != "\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00" {
			t.Errorf("%v, rows %q", r.err, r.rows)
		}
	})
}

// A prepared statement stays what it was prepared as: on MySQL the columns'
// lengths are those of the settings of that time, on whatever link it runs, and
// sessions that prepared it under others share no answers with it.
func TestPreparedKeepsItsSettings(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		table(t, s, "days", "CREATE TABLE days (id INT PRIMARY KEY, d DATE)")
		address := serve(t, s, proxy.Config{Loops: 1})
		mustDial(t, s.Address(), as(s, plainCaps)).query("INSERT INTO days VALUES (1, '2026-11-30')")
		run := func(address string, language string) (all []string) {
			c, other := mustDial(t, address, as(s, plainCaps)), mustDial(t, address, as(s, plainCaps))
			c.query("SET lc_time_names = '" + language + "'")
			prepared := c.command(append([]byte{byte(wire.ComStmtPrepare)}, "SELECT DAYNAME(d), 1/3 FROM days WHERE id = 1"...)).prep
			other.query("SET lc_time_names = 'de_DE', div_precision_increment = 9")
			c.query("SET lc_time_names = 'de_DE', div_precision_increment = 9")
			other.query("SET @taken = 1") // keeps the link given back last, on which it is prepared
			for range 3 {
				r := c.command(append(wire.AppendStatementCommand(nil, wire.ComStmtExecute, prepared.StatementID), 0, 1, 0, 0, 0))
				all = append(all, r.packets...)
			}
			return all
		}
		for _, language := range []string{"fr_FR", "en_US", "de_DE", "fr_FR"} {
			if direct, through := run(s.Address(), language), run(address, language); !slices.Equal(direct, through) {
				t.Errorf("%s:\n direct %s\nthrough %s", language, strings.Join(direct, " "), strings.Join(through, " "))
			}
		}
	})
}

// The same where other things are asked for along with it, by the first
// statements of a session.
func TestRowCountAmongOthers(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		table(t, s, "among", "CREATE TABLE among (id INT PRIMARY KEY AUTO_INCREMENT, n INT)")
		address := serve(t, s, proxy.Config{Loops: 1})
		mustDial(t, s.Address(), as(s, plainCaps)).query("INSERT INTO among (n) VALUES (1), (2), (3)")
		for _, write := range []string{"UPDATE among SET n = n + 1", "INSERT INTO among (n) VALUES (1), (2)", "DELETE FROM among WHERE n > 1"} {
			for _, first := range []string{"", "SELECT * FROM among WHERE n = 99 ORDER BY id"} {
				got := make(map[string]string)
				for _, at := range []string{address, s.Address()} {
					c := mustDial(t, at, as(s, plainCaps))
					if first != "" {
						c.query(first)
					}
					prepare := mustDial(t, s.Address(), as(s, plainCaps))
					prepare.query("DELETE FROM among")
					prepare.query("INSERT INTO among (n) VALUES (1), (2), (3)")
					c.query(write)
					got[at] = c.cells("SELECT ROW_COUNT(), FOUND_ROWS() >= 0, LAST_INSERT_ID() > 0")
					c.query(write)
					got[at] += c.cells("SELECT ROW_COUNT(), LAST_INSERT_ID() > 0")
				}
				if got[address] != got[s.Address()] && !strings.Contains(got[address], "no longer known") {
					t.Errorf("%s; %s: through %s, direct %s", first, write, got[address], got[s.Address()])
				}
			}
		}
	})
}
