package mysql_test

import (
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// table makes a table of its own for a test, straight on the server.
func table(t *testing.T, s *upstream.Server, name string, statements ...string) *client {
	t.Helper()
	c := mustDial(t, s.Address(), as(s, plainCaps))
	for _, q := range append([]string{"DROP TABLE IF EXISTS " + name}, statements...) {
		if r := c.query(q); r.err != nil {
			t.Fatal(q, ": ", r.err)
		}
	}
	return c
}

// untilHit repeats a statement until its answer came from the store, and
// checks that every answer is the same to the byte.
func untilHit(t *testing.T, c *client, ask func() reply) reply {
	t.Helper()
	first := ask()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		r := ask()
		if r.String() != first.String() {
			t.Fatalf("an answer changed:\n%s\nwas:\n%s", r, first)
		}
		last := c.cells("EXPLAIN LAST STATEMENT")
		if strings.HasPrefix(last, "cache(") {
			return r
		}
		if time.Now().After(end) {
			t.Fatal("no hit: ", last)
		}
	}
}

// Reads hit for every kind of client, in text and prepared, and no kind is
// given another kind's bytes.
func TestHitsForEveryKindOfClient(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		direct := table(t, s, "hits", "CREATE TABLE hits (id INT PRIMARY KEY, s VARCHAR(20))", "INSERT INTO hits VALUES (1, 'a')")
		address := serve(t, s, proxy.Config{})
		for name, caps := range capabilitySets {
			t.Run(name, func(t *testing.T) {
				c := mustDial(t, address, as(s, caps))
				want := mustDial(t, s.Address(), as(s, caps))
				got := untilHit(t, c, func() reply { return c.query("SELECT * FROM hits WHERE id = 1") })
				if w := want.query("SELECT * FROM hits WHERE id = 1"); got.String() != w.String() {
					t.Errorf("text:\n%s\ndirect:\n%s", got, w)
				}
				execute := func(c *client, id uint32) reply {
					p := append(wire.AppendStatementCommand(nil, wire.ComStmtExecute, id), 0, 1, 0, 0, 0)
					if c.caps.Has(wire.ClientQueryAttributes) {
						p = append(p, 1)
					}
					p = append(p, 0, 1, byte(wire.TypeLong), 0)
					if c.caps.Has(wire.ClientQueryAttributes) {
						p = append(p, 0)
					}
					return c.command(append(p, 1, 0, 0, 0))
				}
				text := append([]byte{byte(wire.ComStmtPrepare)}, "SELECT * FROM hits WHERE id = ?"...)
				id, wantID := c.command(text).prep.StatementID, want.command(text).prep.StatementID
				got = untilHit(t, c, func() reply { return execute(c, id) })
				execute(want, wantID) // the first execution has marks of its own on MariaDB
				if w := execute(want, wantID); got.String() != w.String() {
					t.Errorf("prepared:\n%s\ndirect:\n%s", got, w)
				}
			})
		}
		if r := direct.query("DROP TABLE hits"); r.err != nil {
			t.Fatal(r.err)
		}
	})
}
