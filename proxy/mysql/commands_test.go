package mysql_test

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"freshet/bench/upstream"
	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// What CLIENT_IGNORE_SPACE does to sql_mode at login is not done again by
// COM_CHANGE_USER and COM_RESET_CONNECTION on every server.
func TestIgnoreSpaceAfterChangeUser(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		address := serve(t, s, proxy.Config{Loops: 1})
		run := func(at string) (modes []string) {
			c := mustDial(t, at, as(s, plainCaps|wire.ClientIgnoreSpace))
			look := func() { modes = append(modes, c.cells("SELECT @@sql_mode"), c.cells("SELECT COUNT (*) FROM DUAL")) }
			look()
			c.command([]byte{byte(wire.ComResetConnection)})
			look()
			m := wire.ChangeUser{User: []byte(s.User), Database: []byte(s.Database), Collation: 45, Plugin: []byte(c.hs.Plugin)}
			c.write(0, m.Append(nil, c.caps))
			a := wire.ClientAuth{Password: s.Password}
			if _, _, err := a.Start(c.hs.Plugin, c.hs.Nonce); err != nil {
				t.Fatal(err)
			}
			if err := c.authenticate(&a); err != nil {
				t.Fatal(err)
			}
			look()
			c.command([]byte{byte(wire.ComResetConnection)})
			look()
			return modes
		}
		for range 2 {
			if through, direct := run(address), run(s.Address()); !slices.Equal(through, direct) {
				t.Errorf("\nthrough %q\n direct %q", through, direct)
			}
		}
	})
}

// Commands that no client of a proxy needs are refused in the server's words.
func TestRefusedCommands(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		address := serve(t, s, proxy.Config{})
		for name, payload := range map[string]string{
			"COM_CLONE": "20", "COM_SLEEP": "00", "COM_CONNECT": "0b", "COM_TIME": "0f", "COM_DELAYED_INSERT": "10", "COM_TABLE_DUMP": "1301610162",
			"COM_CONNECT_OUT": "14", "COM_DAEMON": "1d", "none": "22", "an extension": "f0", "another": "fe",
			"COM_PROCESS_KILL of nobody": "0c0a120f00", "COM_PROCESS_KILL of none of Freshet's": "0c31d40040", "a short COM_STMT_EXECUTE": "1701",
		} {
			p, err := hex.DecodeString(payload)
			if err != nil {
				t.Fatal(err)
			}
			if name == "a short COM_STMT_EXECUTE" && s.Kind == upstream.MySQL {
				continue // the id of no statement, to MySQL
			}
			through, direct := mustDial(t, address, as(s, plainCaps)).command(p), mustDial(t, s.Address(), as(s, plainCaps)).command(p)
			if through.String() != direct.String() {
				t.Errorf("%s:\nthrough %v %v\n direct %v %v", name, through, through.err, direct, direct.err)
			}
		}
	})
}

// bulk is COM_STMT_BULK_EXECUTE with rows of an INT and a string, each value with
// its indicator before it.
func bulk(id uint32, types string, rows ...string) []byte {
	unhex := func(x string) []byte {
		b, err := hex.DecodeString(strings.ReplaceAll(x, " ", ""))
		if err != nil {
			panic(err)
		}
		return b
	}
	b := wire.BulkExecute{StatementID: id, Types: unhex(types), Rows: unhex(strings.Join(rows, ""))}
	return b.Append(nil)
}

// MariaDB's execution in bulk: the same replies and the same rows as straight on
// the server, what it wrote is seen, and links' statements are not mixed up.
func TestBulkExecute(t *testing.T) {
	s := upstream.Need(t, upstream.MariaDB)
	address := serve(t, s, proxy.Config{Loops: 1, MaxLinks: 2})
	const types = "0300 fd00"
	caps := plainCaps | wire.MariaDBBulkOperations
	run := func(at string) (all []string) {
		admin := mustDial(t, s.Address(), as(s, plainCaps))
		admin.query("DROP TABLE IF EXISTS bulk")
		admin.query("CREATE TABLE bulk (id INT PRIMARY KEY AUTO_INCREMENT, n INT, s VARCHAR(10))")
		c, other := mustDial(t, at, as(s, caps)), mustDial(t, at, as(s, caps))
		if !c.caps.Has(wire.MariaDBBulkOperations) {
			t.Fatal(at, " does not offer it")
		}
		const insert = "INSERT INTO bulk (n, s) VALUES (?, ?)"
		prepare := func(c *client, q string) uint32 {
			return c.command(append([]byte{byte(wire.ComStmtPrepare)}, q...)).prep.StatementID
		}
		note := func(r reply) { all = append(all, r.String()) }
		id, its, read := prepare(c, insert), prepare(other, insert), prepare(c, "SELECT n FROM bulk WHERE n = ?")
		one, two, null := "00 01000000 00 0161", "00 02000000 00 026262", "00 03000000 01"
		for range 2 {
			note(c.command(bulk(id, types, one, two, null)))
			all = append(all, c.cells("SELECT ROW_COUNT(), LAST_INSERT_ID()"), c.cells("SELECT id, n, s FROM bulk ORDER BY id"))
			note(c.command(bulk(id, "", two, two)))
			note(other.command(bulk(its, "fd00 fd00", "00 0137 00 0161", "00 0138 01")))
			note(other.command(bulk(its, "", "00 0139 00 0162")))
			note(c.command(bulk(id, "", null)))
			note(c.command(bulk(id, types, "02 00 0163"))) // DEFAULT
			all = append(all, c.cells("SELECT id, n, s FROM bulk ORDER BY id"), other.cells("SELECT COUNT(*) FROM bulk"))
			note(c.command(bulk(read, "0300", "00 01000000")))
			note(c.command(bulk(id, types, "00 0100")))
			note(c.command(bulk(99, types, one)))
			c.query("BEGIN")
			note(c.command(bulk(id, types, one, one)))
			c.query("ROLLBACK")
			all = append(all, c.cells("SELECT COUNT(*) FROM bulk"))
		}
		return all
	}
	through, direct := run(address), run(s.Address())
	for i := range direct {
		if through[i] != direct[i] {
			t.Errorf("step %d:\nthrough %s\n direct %s", i, through[i], direct[i])
		}
	}
	mustDial(t, s.Address(), as(s, plainCaps)).query("DROP TABLE bulk")
}
