package mysql_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// A server that dies and comes back: errors and no hangs meanwhile, sessions
// without state live on, those in a transaction do not.
func TestUpstreamRestarts(t *testing.T) {
	s := upstream.Own(t, upstream.MariaDB)
	address := serve(t, s, proxy.Config{})
	idle := mustDial(t, address, as(s, plainCaps))
	working := mustDial(t, address, as(s, plainCaps))
	if got := idle.cells("SELECT 1"); got != "1" {
		t.Fatal(got)
	}
	if r := working.query("BEGIN"); r.err != nil {
		t.Fatal(r.err)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := working.tryRead(); err == nil {
		t.Error("a session in a transaction lives on without it")
	}
	if got := idle.cells("SELECT 2"); !strings.Contains(got, "1053") || !strings.Contains(got, "08S01") {
		t.Errorf("while it is down: %s", got)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		got := idle.cells("SELECT 3")
		if got == "3" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("never well again: ", got)
		}
	}
}

// A statement whose link is cut answers with an error.
func TestLinkIsKilled(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		address := serve(t, s, proxy.Config{})
		c := mustDial(t, address, as(s, plainCaps))
		id := c.cells("SELECT CONNECTION_ID()")
		c.write(0, wire.AppendQuery(nil, c.caps, "SELECT SLEEP(30)"))
		direct := mustDial(t, s.Address(), as(s, plainCaps))
		waitFor(t, func() bool {
			return direct.cells("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO = 'SELECT SLEEP(30)'") == "1"
		})
		if r := direct.query("KILL " + id); r.err != nil {
			t.Fatal(r.err)
		}
		if r := c.reply(wire.ComQuery); r.err == nil && len(r.rows) == 0 {
			t.Errorf("neither error nor row: %v", r)
		}
		// The id was the session's, as on the server itself: it is over.
		if again := mustDial(t, address, as(s, plainCaps)); again.cells("SELECT 5") != "5" {
			t.Error("a new session gets no answer")
		}
	})
}

func waitFor(t *testing.T, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain")
		}
	}
}

// KILL by the id that the client was given ends a statement or a session.
func TestKill(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		address := serve(t, s, proxy.Config{})
		victim, killer := mustDial(t, address, as(s, plainCaps)), mustDial(t, address, as(s, plainCaps))
		direct := mustDial(t, s.Address(), as(s, plainCaps))
		victim.write(0, wire.AppendQuery(nil, victim.caps, "SELECT SLEEP(29)"))
		waitFor(t, func() bool {
			return direct.cells("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO = 'SELECT SLEEP(29)'") == "1"
		})
		start := time.Now()
		if r := killer.query(fmt.Sprintf("KILL QUERY %d", victim.hs.ConnectionID)); r.err != nil {
			t.Fatal(r.err)
		}
		victim.reply(wire.ComQuery)
		if time.Since(start) > 20*time.Second {
			t.Error("the statement ran to its end")
		}
		if got := victim.cells("SELECT 1"); got != "1" {
			t.Error("the session did not live on: ", got)
		}
		if r := killer.query(fmt.Sprintf("KILL %d", victim.hs.ConnectionID)); r.err != nil {
			t.Fatal(r.err)
		}
		if _, _, err := victim.tryRead(); err == nil {
			t.Error("the session lives")
		}
		if r := killer.query(fmt.Sprintf("KILL %d", victim.hs.ConnectionID)); r.err == nil || r.err.Number != wire.ErrNumNoSuchThread {
			t.Errorf("a session that is gone: %v", r.err)
		}
	})
}

// Packets of 16 MiB and more pass in both directions.
func TestHugePackets(t *testing.T) {
	s := upstream.Own(t, upstream.MariaDB, upstream.WithSettings("max_allowed_packet=64M"))
	table(t, s, "huge", "CREATE TABLE huge (id INT PRIMARY KEY, b LONGBLOB)")
	address := serve(t, s, proxy.Config{})
	c := mustDial(t, address, as(s, plainCaps))
	for i, size := range []int{wire.MaxPayload - 1000, wire.MaxPayload + 1000, 2 * wire.MaxPayload} {
		text := fmt.Sprintf("INSERT INTO huge VALUES (%d, '%s')", i, bytes.Repeat([]byte{'x'}, size))
		c.write(0, wire.AppendQuery(nil, c.caps, text))
		// The reply's numbers go on from the packets that the text took.
		h, p := c.read()
		if want := uint8((len(text)+1)/wire.MaxPayload + 1); h.Seq != want || p[0] != 0 {
			t.Fatalf("size %d: seq %d, want %d: %.100x", size, h.Seq, want, p)
		}
		if got := c.cells(fmt.Sprintf("SELECT LENGTH(b) FROM huge WHERE id = %d", i)); got != fmt.Sprint(size) {
			t.Errorf("size %d: %s", size, got)
		}
		r := c.query(fmt.Sprintf("SELECT b FROM huge WHERE id = %d", i))
		if len(r.rows) != 1 || r.err != nil {
			t.Errorf("size %d: %d rows, %v", size, len(r.rows), r.err)
		}
	}
	if r := c.query("SELECT 1"); r.err != nil {
		t.Error(r.err)
	}
}

// What later statements ask of earlier ones may be lost with a link: then they
// are told so, never something else.
func TestPastIsLostWithItsLink(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		address := serve(t, s, proxy.Config{Loops: 1})
		admin := table(t, s, "past", "CREATE TABLE past (id INT PRIMARY KEY AUTO_INCREMENT, v INT)", "INSERT INTO past VALUES (1, 1), (2, 2), (3, 3)")
		cut := func() {
			r := admin.query("SELECT ID FROM information_schema.PROCESSLIST WHERE USER = '" + s.User + "' AND COMMAND = 'Sleep' AND ID <> CONNECTION_ID()")
			for _, row := range r.rows {
				admin.query("KILL " + row[1:])
			}
		}
		for _, c := range []struct{ before, ask, want string }{
			{"INSERT INTO past (v) VALUES (7)", "SELECT LAST_INSERT_ID()", ""},
			{"INSERT INTO past (v) VALUES (7)", "INSERT INTO past (v) VALUES (LAST_INSERT_ID())", ""},
			{"SELECT SQL_CALC_FOUND_ROWS id FROM past LIMIT 1", "SELECT FOUND_ROWS()", ""},
			{"INSERT IGNORE INTO past VALUES ('1x', 1)", "SHOW WARNINGS", ""},
			{"UPDATE past SET v = v + 1 WHERE id < 3", "SELECT ROW_COUNT() + 0", ""},
			{"SELECT id FROM past WHERE id < 3", "SELECT FOUND_ROWS()", "2"},
		} {
			client := mustDial(t, address, as(s, plainCaps))
			if r := client.query(c.before); r.err != nil {
				t.Fatal(c.before, r.err)
			}
			cut()
			client.write(0, wire.AppendQuery(nil, client.caps, c.ask))
			r, err := client.tryReply(wire.ComQuery)
			if err != nil {
				continue // the session is over, as it is for a client whose connection is killed
			}
			if got := r.cells(); !strings.Contains(got, "1105") && !strings.Contains(got, "1053") && got != c.want && !right(admin, c.before, got) {
				t.Errorf("%s, the link is lost, %s: got %q", c.before, c.ask, got)
			}
		}
	})
}

// right tells whether an answer is the one without a cut: of a link that was
// given back before.
func right(admin *client, before, got string) bool {
	switch {
	case strings.HasPrefix(before, "INSERT INTO past (v)"):
		return got == admin.cells("SELECT MAX(id) FROM past") && got != "0"
	case strings.HasPrefix(before, "SELECT SQL_CALC"):
		return got == admin.cells("SELECT COUNT(*) FROM past")
	case strings.HasPrefix(before, "UPDATE"):
		return got == "2"
	}
	return false
}

// A connection that the client asks to be released is over.
func TestRelease(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		address := serve(t, s, proxy.Config{Loops: 1})
		for _, q := range []string{"COMMIT RELEASE", "ROLLBACK AND NO CHAIN RELEASE"} {
			c := mustDial(t, address, as(s, plainCaps))
			c.query("BEGIN")
			if r := c.query(q); r.err != nil {
				t.Fatal(r.err)
			}
			if _, _, err := c.tryRead(); err == nil {
				t.Errorf("%s: the session lives on", q)
			}
		}
		c := mustDial(t, address, as(s, plainCaps))
		c.query("COMMIT NO RELEASE")
		if got := c.cells("SELECT 1"); got != "1" {
			t.Error(got)
		}
	})
}
