package mysql_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// Settings in every spelling are the session's own: they change its answers,
// kept ones too, and nobody else's.
func TestSettingsInEverySpelling(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		table(t, s, "spelt", "CREATE TABLE spelt (id INT PRIMARY KEY, ts TIMESTAMP, n INT, v VARCHAR(10))")
		address := serve(t, s, proxy.Config{Loops: 1})
		mustDial(t, s.Address(), as(s, plainCaps)).query("INSERT INTO spelt VALUES (1, '2026-11-30 10:00:00', 7, 'A'), (2, '2026-11-30 10:00:00', 8, 'b')")
		asked := []string{
			"SELECT ts FROM spelt WHERE id = 1", "SELECT \"v\" FROM spelt WHERE id = 1", "SELECT n / 3 FROM spelt WHERE id = 1", "SELECT GROUP_CONCAT(v, n) FROM spelt",
			"SELECT id FROM spelt ORDER BY id", "SELECT DAYNAME(ts) FROM spelt WHERE id = 1", "SELECT 'a' = 'A', id FROM spelt WHERE id = 1",
			"SELECT @@time_zone, @@sql_mode, @@div_precision_increment, @@group_concat_max_len, @@sql_select_limit, @@lc_time_names, @@collation_connection, @@foreign_key_checks, @@autocommit",
		}
		plain := mustDial(t, address, as(s, plainCaps))
		want := map[string]string{}
		for _, q := range asked {
			want[q] = plain.query(q).String()
		}
		values := []string{"time_zone = '+09:00'", "sql_mode = 'ANSI_QUOTES'", "div_precision_increment = 9", "group_concat_max_len = 4", "sql_select_limit = 1",
			"lc_time_names = 'de_DE'", "collation_connection = 'utf8mb4_bin'", "foreign_key_checks = 0", "autocommit = 0"}
		for _, value := range values {
			for _, spelling := range []string{"SET @@%s", "SET @@session.%s", "SET @@local.%s", "SET %s", "SET SESSION %s", "set  @x = 1 , @@%s", "SET NAMES utf8mb4, @@%s", "SET @@sql_warnings = 0,@@%s"} {
				text := fmt.Sprintf(spelling, value)
				c, own := mustDial(t, address, as(s, plainCaps)), mustDial(t, s.Address(), as(s, plainCaps))
				if got, want := c.query(text).String(), own.query(text).String(); got != want {
					t.Errorf("%s: got %s, want %s", text, got, want)
				}
				for _, q := range asked {
					for range 2 {
						if got, want := c.query(q).String(), own.query(q).String(); got != want {
							t.Errorf("%s after %s: got %s, want %s", q, text, got, want)
						}
					}
				}
				c.conn.Close()
				own.conn.Close()
				for range 2 {
					other := mustDial(t, address, as(s, plainCaps))
					for _, q := range asked {
						if got := other.query(q).String(); got != want[q] {
							t.Fatalf("%s in another session after %s: got %s, want %s", q, text, got, want[q])
						}
					}
					other.conn.Close()
				}
			}
		}
	})
}

// What was read and never committed is nobody's answer afterwards.
func TestDirtyReadsAreNotKept(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		table(t, s, "dirty", "CREATE TABLE dirty (id INT PRIMARY KEY, n INT) ENGINE = InnoDB")
		writer := mustDial(t, s.Address(), as(s, plainCaps))
		writer.query("INSERT INTO dirty VALUES (1, 1)")
		address := serve(t, s, proxy.Config{Loops: 1})
		name := "transaction_isolation"
		if s.Kind == upstream.MariaDB {
			name = "tx_isolation"
		}
		const q = "SELECT n FROM dirty WHERE id = 1"
		for _, level := range []string{"SET @@" + name + " = 'read-uncommitted'", "SET @x = 1, @@" + name + " := 'READ-UNCOMMITTED'", "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
			"SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "SET SESSION " + name + " = 0", "SET NAMES utf8mb4, @@`" + name + "` = 0"} {
			reader := mustDial(t, address, as(s, plainCaps))
			warm := mustDial(t, address, as(s, plainCaps))
			warm.query(q)
			writer.query("BEGIN")
			writer.query("UPDATE dirty SET n = 666 WHERE id = 1")
			if r := reader.query(level); r.err != nil {
				t.Fatal(level, r.err)
			}
			if got := reader.cells(q); got != "666" {
				t.Errorf("%s: read %s, the server shows 666", level, got)
			}
			writer.query("ROLLBACK")
			for range 3 {
				if got := reader.cells(q); got != "1" {
					t.Errorf("after the rollback, %s: %s", level, got)
				}
				if got := mustDial(t, address, as(s, plainCaps)).cells(q); got != "1" {
					t.Errorf("another session, %s: %s", level, got)
				}
			}
			reader.conn.Close()
		}
	})
}

// Sessions without autocommit hold a link while they are in a transaction, not
// between two.
func TestWithoutAutocommitLinksAreShared(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		table(t, s, "shared_off", "CREATE TABLE shared_off (id INT PRIMARY KEY, n INT) ENGINE = InnoDB")
		address := serve(t, s, proxy.Config{Loops: 1, MaxLinks: 2, LinkWait: 3 * time.Second})
		direct := mustDial(t, s.Address(), as(s, plainCaps))
		direct.query("INSERT INTO shared_off VALUES (1, 0)")
		var all []*client
		for i := range 6 {
			c := mustDial(t, address, as(s, plainCaps))
			all = append(all, c)
			c.query("SET autocommit = 0")
			if got := c.cells("SELECT n FROM shared_off WHERE id = 1"); got != fmt.Sprint(i) {
				t.Fatalf("session %d reads %s", i, got)
			}
			c.query("UPDATE shared_off SET n = n + 1 WHERE id = 1")
			if got := direct.cells("SELECT n FROM shared_off WHERE id = 1"); got != fmt.Sprint(i) {
				t.Fatalf("session %d has committed without being asked: %s", i, got)
			}
			if r := c.query("COMMIT"); r.err != nil || r.last.Status.Has(wire.StatusAutocommit) {
				t.Fatalf("commit: %v, status %b", r.err, r.last.Status)
			}
		}
		for i, c := range all {
			if got := c.cells("SELECT @@autocommit"); got != "0" {
				t.Errorf("session %d: autocommit %s", i, got)
			}
			c.query("UPDATE shared_off SET n = 100 WHERE id = 1")
			c.query("ROLLBACK")
		}
		if got := direct.cells("SELECT n FROM shared_off WHERE id = 1"); got != "6" {
			t.Errorf("rolled back to %s", got)
		}
	})
}

// A trigger or a stored function may change the session's settings, whatever
// the statement that runs it looks like; nobody else is to notice.
func TestSettingsChangedUnseen(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		table(t, s, "unseen", "CREATE TABLE unseen (id INT PRIMARY KEY AUTO_INCREMENT, ts TIMESTAMP NULL)")
		table(t, s, "unseen2", "CREATE TABLE unseen2 (id INT PRIMARY KEY, ts TIMESTAMP NULL)")
		direct := mustDial(t, s.Address(), as(s, plainCaps))
		direct.query("INSERT INTO unseen2 VALUES (1, '2026-11-30 10:00:00')")
		address := serve(t, s, proxy.Config{Loops: 1})
		const q = "SELECT ts FROM unseen2 WHERE id = 1"
		for _, body := range []string{"SET time_zone = '+09:00'", "SET @@time_zone = '+09:00'", "SET SESSION time_zone = '+09:00'", "SET @@session.time_zone = '+09:00'"} {
			for _, made := range []string{"CREATE TRIGGER unseen_t BEFORE INSERT ON unseen FOR EACH ROW " + body,
				"CREATE FUNCTION unseen_f() RETURNS INT NO SQL BEGIN " + body + "; RETURN 1; END"} {
				direct.query("SET GLOBAL log_bin_trust_function_creators = 1")
				if r := direct.query(made); r.err != nil {
					t.Fatal(made, r.err)
				}
				time.Sleep(time.Second) // the bound within which it is noticed
				for _, run := range []string{"INSERT INTO unseen (ts) VALUES (NULL)", "BEGIN; INSERT INTO unseen (ts) VALUES (NULL)", "SELECT unseen_f()", "INSERT INTO unseen2 SELECT unseen_f() + 5, NULL FROM unseen2 WHERE id = 99",
					"UPDATE unseen2 SET ts = ts WHERE id = unseen_f()"} {
					c, own := mustDial(t, address, as(s, plainCaps|wire.ClientMultiStatements)), mustDial(t, s.Address(), as(s, plainCaps|wire.ClientMultiStatements))
					for _, x := range []*client{c, own} {
						x.query(q)
						for _, part := range strings.Split(run, "; ") {
							x.query(part)
						}
						x.query("COMMIT")
					}
					for range 3 {
						if got, want := c.cells(q), own.cells(q); got != want {
							t.Errorf("%s; %s: %s, want %s", made, run, got, want)
						}
					}
					for range 3 {
						other := mustDial(t, address, as(s, plainCaps))
						if got, want := other.cells(q)+other.cells("SELECT @@time_zone"), direct.cells(q)+direct.cells("SELECT @@time_zone"); got != want {
							t.Errorf("%s; %s: another session %s, want %s", made, run, got, want)
						}
						other.conn.Close()
					}
					c.conn.Close()
					own.conn.Close()
				}
				direct.query("DROP TRIGGER IF EXISTS unseen_t")
				direct.query("DROP FUNCTION IF EXISTS unseen_f")
			}
		}
	})
}
