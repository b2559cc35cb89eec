package mysql_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"freshet/bench/upstream"
	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// global sets a server default for one test.
func global(t *testing.T, s *upstream.Server, name, value string) {
	t.Helper()
	c := mustDial(t, s.Address(), as(s, plainCaps))
	before := c.cells("SELECT @@GLOBAL." + name)
	if r := c.query("SET GLOBAL " + name + " = " + value); r.err != nil {
		t.Fatal(r.err)
	}
	if _, err := strconv.ParseFloat(before, 64); err != nil {
		before = "'" + before + "'" // a list of words, as sql_mode
	}
	t.Cleanup(func() {
		if r := mustDial(t, s.Address(), as(s, plainCaps)).query("SET GLOBAL " + name + " = " + before); r.err != nil {
			t.Error(r.err)
		}
	})
}

// ofLength is a statement of n bytes that gives a number.
func ofLength(n int) []byte {
	const head, tail = "\x03SELECT LENGTH('", "')"
	return []byte(head + strings.Repeat("x", n-len(head)-len(tail)+1) + tail)
}

// large sends a statement of n bytes and gives the first packet of its reply.
func (c *client) large(n int) string {
	b, _ := wire.AppendPacket(nil, 0, ofLength(n))
	sent := make(chan error, 1)
	go func() {
		_, err := c.conn.Write(b)
		sent <- err // one that is refused need not be taken whole
	}()
	h, p, err := c.tryRead()
	c.conn.Close()
	<-sent
	return fmt.Sprintf("%d:%x %v", h.Seq, p, err)
}

// A statement that is too long is refused at the packet that goes beyond.
func TestTooLongStatement(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		global(t, s, "max_allowed_packet", "16777216")
		address := serve(t, s, proxy.Config{Loops: 1})
		for _, n := range []int{1 << 20, 16777213, 16777214, 16777215, 16777216, 17000000, 33554430, 34000000} {
			through, direct := mustDial(t, address, as(s, plainCaps)).large(n), mustDial(t, s.Address(), as(s, plainCaps)).large(n)
			if through != direct {
				t.Errorf("%d bytes:\nthrough %s\n direct %s", n, through, direct)
			}
		}
	})
}

// A session that begins after a default was set has it, also where links and
// what was learnt of them are at hand from before: at once if it was set through
// Freshet, otherwise as soon as that is seen.
func TestDefaultsOfNewSessions(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		for _, through := range []bool{true, false} {
			address := serve(t, s, proxy.Config{Loops: 1, MaxLinks: 2})
			for name, values := range map[string][2]string{
				// Neither may be what the server began with: a default that is back
				// at the next look was never seen to change.
				"max_allowed_packet":       {"16777216", "33554432"},
				"auto_increment_increment": {"1", "3"},
				"long_query_time":          {"10.000000", "20.000000"},
				"sql_mode":                 {"'ANSI_QUOTES'", "'PIPES_AS_CONCAT'"},
			} {
				if !through && name != "max_allowed_packet" && name != "sql_mode" {
					continue // seen by a look that comes too seldom for a test
				}
				t.Run(fmt.Sprintf("%s/%v", name, through), func(t *testing.T) {
					global(t, s, name, values[0])
					begin := func() *client { return mustDial(t, address, as(s, plainCaps)) }
					value := func(c *client) string { return c.cells("SELECT @@" + name) }
					want := strings.Trim(values[0], "'")
					waitFor(t, func() bool { return value(begin()) == want })
					busy := begin()
					busy.query("BEGIN")
					value(busy)
					if through {
						begin().query("SET GLOBAL " + name + " = " + values[1])
					} else {
						mustDial(t, s.Address(), as(s, plainCaps)).query("SET GLOBAL " + name + " = " + values[1])
						// Until the change is seen a link from before may serve any of
						// them: in so many tries, 5 ms apart, a look at the defaults has come between.
						inARow := 0
						waitFor(t, func() bool {
							if inARow++; value(begin()) != strings.Trim(values[1], "'") {
								inARow = 0
							}
							return inARow > 300
						})
					}
					busy.query("COMMIT") // its link is from before
					for range 3 {
						if got, want := value(begin()), strings.Trim(values[1], "'"); got != want {
							t.Errorf("a new session has %s, want %s", got, want)
						}
					}
					if name == "max_allowed_packet" {
						for _, n := range []int{17000000, 33554430} {
							if got, want := begin().large(n), mustDial(t, s.Address(), as(s, plainCaps)).large(n); got != want {
								t.Errorf("%d bytes:\nthrough %s\n direct %s", n, got, want)
							}
						}
					}
				})
			}
		}
	})
}

// A link from before a change that was not seen yet may refuse a statement that
// newer ones take: the client is told, and does not wait for ever.
func TestOldLinkRefusesLongStatement(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		for range 5 {
			global(t, s, "max_allowed_packet", "16777216")
			address := serve(t, s, proxy.Config{Loops: 1, MaxLinks: 2})
			begin := func() *client { return mustDial(t, address, as(s, plainCaps)) }
			old := begin()
			old.query("BEGIN")
			old.query("SELECT 1 FROM mysql.user LIMIT 1")
			mustDial(t, s.Address(), as(s, plainCaps)).query("SET GLOBAL max_allowed_packet = 67108864")
			if got := begin().cells("SELECT @@max_allowed_packet"); got != "67108864" {
				t.Fatal(got)
			}
			old.query("COMMIT") // its link is the next to be used
			if got := begin().large(33554430); strings.Contains(got, "timeout") {
				t.Fatal(got)
			}
		}
	})
}
