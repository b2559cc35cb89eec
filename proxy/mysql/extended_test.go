package mysql_test

import (
	"slices"
	"strings"
	"testing"

	"freshet/bench/upstream"
	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// A client that takes MariaDB's extended metadata is told of JSON, UUID and the
// like, cold and from the store, as text and prepared; one that does not, beside
// it, is not.
func TestExtendedMetadata(t *testing.T) {
	s := upstream.Need(t, upstream.MariaDB)
	table(t, s, "told", "CREATE TABLE told (id INT PRIMARY KEY, j JSON, u UUID, i INET6, p POINT, s VARCHAR(10))")
	mustDial(t, s.Address(), as(s, plainCaps)).query(`INSERT INTO told VALUES (1, '{"a":1}', UUID(), '::1', POINT(1, 2), 'x')`)
	address := serve(t, s, proxy.Config{Loops: 1})
	const q = "SELECT * FROM told WHERE id = 1"
	run := func(address string, caps wire.Capability) (all []string) {
		c := mustDial(t, address, as(s, caps))
		if want := caps &^ wire.ClientLongPassword & (wire.MariaDBExtendedMetadata | wire.MariaDBProgress); c.caps&want != want {
			t.Fatalf("%s does not offer %#x", address, want&^c.caps)
		}
		p := c.command(append([]byte{byte(wire.ComStmtPrepare)}, q...))
		all = append(all, p.packets[1:]...)
		for range 3 {
			all = append(all, c.query(q).packets...)
			all = append(all, c.command(append(wire.AppendStatementCommand(nil, wire.ComStmtExecute, p.prep.StatementID), 0, 1, 0, 0, 0)).packets...)
		}
		if r := c.query("SHOW FRESHET STATUS"); address != s.Address() && (r.err != nil || len(r.rows) == 0) {
			t.Errorf("a result of Freshet's own: %v", r)
		}
		return all
	}
	told := plainCaps | wire.ClientDeprecateEOF | wire.MariaDBExtendedMetadata
	for _, caps := range []wire.Capability{told, told &^ wire.MariaDBExtendedMetadata, told, told | wire.MariaDBProgress} {
		through, direct := run(address, caps), run(s.Address(), caps)
		if !slices.Equal(through, direct) {
			t.Errorf("capabilities %#x:\nthrough %s\n direct %s", uint64(caps), strings.Join(through, "\n"), strings.Join(direct, "\n"))
		}
		const json = "01046a736f6e" // format, 4, "json"
		if got, want := strings.Contains(strings.Join(direct, "\n"), json), caps.Has(wire.MariaDBExtendedMetadata); got != want {
			t.Errorf("capabilities %#x: told of JSON: %v", uint64(caps), got)
		}
	}
}
