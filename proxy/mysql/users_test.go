package mysql_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"freshet/bench/upstream"
	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// A session may become another user's, and is that user's upstream from then on;
// and a user ends no sessions but its own.
func TestUsersOfOneSession(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		db := s.DB(t)
		for _, statement := range []string{"DROP USER IF EXISTS other", "CREATE USER other IDENTIFIED BY 'theirs'"} {
			if _, err := db.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		defer db.Exec("DROP USER other") //nolint:errcheck // the next run drops it
		file := filepath.Join(t.TempDir(), "users.yaml")
		if err := os.WriteFile(file, []byte("users: [{name: other, password: theirs}]"), 0o600); err != nil {
			t.Fatal(err)
		}
		address := serve(t, s, proxy.Config{Users: file})
		victim := mustDial(t, address, as(s, plainCaps))
		c := mustDial(t, address, as(s, plainCaps))
		change := func(user, password string) error {
			m := wire.ChangeUser{User: []byte(user), Collation: 45, Plugin: []byte(c.hs.Plugin)}
			c.write(0, m.Append(nil, c.caps))
			a := wire.ClientAuth{Password: password}
			if _, _, err := a.Start(c.hs.Plugin, c.hs.Nonce); err != nil {
				t.Fatal(err)
			}
			return c.authenticate(&a)
		}
		is := func(user string) {
			t.Helper()
			if got := c.cells("SELECT CURRENT_USER()"); !strings.HasPrefix(got, user+"@") {
				t.Errorf("is %s, want %s", got, user)
			}
		}
		is(s.User)
		c.query("SET @a = 1")
		if err := change("other", "theirs"); err != nil {
			t.Fatal(err)
		}
		is("other")
		if got := c.cells("SELECT @a"); got != "NULL" {
			t.Errorf("the other user sees %s", got)
		}
		for _, kill := range []string{"KILL %d", "KILL QUERY %d"} {
			if r := c.query(fmt.Sprintf(kill, victim.hs.ConnectionID)); r.err == nil || r.err.Number != wire.ErrNumKillDenied {
				t.Errorf(kill+": %v", victim.hs.ConnectionID, r.err)
			}
		}
		if got := victim.cells("SELECT 1"); got != "1" {
			t.Error("the other's session ended: ", got)
		}
		if err := change(s.User, s.Password); err != nil {
			t.Fatal(err)
		}
		is(s.User)
		if err := change("other", s.Password); err == nil || !strings.Contains(err.Error(), "1045") {
			t.Errorf("by another's password: %v", err)
		}
	})
}
