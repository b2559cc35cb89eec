package mysql_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// A refusal must be the server's own, number, state and text.
func TestRefusals(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		address := serve(t, s, proxy.Config{})
		for name, change := range map[string]func(*loginAs){
			"wrong password":                func(l *loginAs) { l.password = "wrong" },
			"no password":                   func(l *loginAs) { l.password = "" },
			"unknown user":                  func(l *loginAs) { l.user = "nobody" },
			"unknown user, no password":     func(l *loginAs) { l.user, l.password = "nobody", "" },
			"wrong password, other plugin":  func(l *loginAs) { l.password, l.plugin = "wrong", otherPlugin(s) },
			"unknown database":              func(l *loginAs) { l.database = "nosuch" },
			"unknown database and password": func(l *loginAs) { l.database, l.password = "nosuch", "wrong" },
		} {
			l := as(s, plainCaps)
			change(&l)
			_, got := dial(t, address, l)
			_, want := dial(t, s.Address(), l)
			if got == nil || want == nil {
				t.Errorf("%s: through %v, direct %v", name, got, want)
				continue
			}
			// The direct client comes from localhost, which the server resolves.
			normal := strings.NewReplacer("'localhost'", "'HOST'", "'127.0.0.1'", "'HOST'")
			if normal.Replace(got.Error()) != normal.Replace(want.Error()) {
				t.Errorf("%s:\nthrough %v\n direct %v", name, got, want)
			}
		}
	})
}

func otherPlugin(s *upstream.Server) string {
	if s.Kind == upstream.MySQL {
		return wire.PluginNative
	}
	return wire.PluginCachingSHA2
}

// Every way in that a direct client has is open.
func TestWaysIn(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		address := serve(t, s, proxy.Config{})
		for name, change := range map[string]func(*loginAs){
			"default plugin": func(*loginAs) {},
			"auth switch":    func(l *loginAs) { l.plugin = otherPlugin(s) },
			"no plugins":     func(l *loginAs) { l.caps &^= wire.ClientPluginAuth; l.plugin = wire.PluginNative },
			"long answer":    func(l *loginAs) { l.caps |= wire.ClientPluginAuthLenenc },
			"no database":    func(l *loginAs) { l.database = "" },
			"collation 0":    func(l *loginAs) { l.collation = 0 },
			"collation 255":  func(l *loginAs) { l.collation = 224 },
		} {
			l := as(s, plainCaps)
			change(&l)
			if name == "no plugins" && s.Kind == upstream.MySQL {
				continue // such a client cannot answer MySQL's plugin, nor can it directly
			}
			c, err := dial(t, address, l)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			want := "NULL"
			if l.database != "" {
				want = l.database
			}
			if got := c.cells("SELECT DATABASE()"); got != want {
				t.Errorf("%s: database %q, want %q", name, got, want)
			}
			d := mustDial(t, s.Address(), l)
			const q = "SELECT @@character_set_client, @@character_set_results, @@collation_connection"
			if got, want := c.query(q).String(), d.query(q).String(); got != want {
				t.Errorf("%s: %s, direct %s", name, got, want)
			}
		}
	})
}

// The greeting is the server's, from the first client on.
func TestGreeting(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		address := serve(t, s, proxy.Config{})
		want := mustDial(t, s.Address(), as(s, plainCaps)).hs
		for _, when := range []string{"before the first link", "after it"} {
			c := mustDial(t, address, as(s, plainCaps))
			if c.hs.ServerVersion != want.ServerVersion && when == "after it" || !strings.Contains(want.ServerVersion, strings.TrimSuffix(c.hs.ServerVersion, "-log")) {
				t.Errorf("%s: version %q, the server's is %q", when, c.hs.ServerVersion, want.ServerVersion)
			}
			if c.hs.Collation != want.Collation || c.hs.Plugin != want.Plugin || c.hs.Status != want.Status {
				t.Errorf("%s: %+v, the server's is %+v", when, c.hs, want)
			}
			missing := want.Capabilities &^ c.hs.Capabilities &^ (wire.ClientSSL | wire.ClientMultiFactorAuth | wire.ClientCapabilityExtension | wire.ClientSSLVerifyServerCert |
				wire.MariaDBCacheMetadata | wire.MariaDBBulkUnitResults)
			if extra := c.hs.Capabilities &^ want.Capabilities; missing != 0 || extra != 0 {
				t.Errorf("%s: capabilities missing %#x, too many %#x", when, missing, extra)
			}
		}
	})
}

// Connecting and leaving, before authentication or with a wrong password,
// costs the upstream nothing.
func TestBareConnectIsFree(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		address := serve(t, s, proxy.Config{})
		direct := mustDial(t, s.Address(), as(s, plainCaps))
		ids := func() string { return direct.cells("SELECT COUNT(*) FROM information_schema.PROCESSLIST") }
		before := ids()
		for range 20 {
			conn, err := net.DialTimeout("tcp", address, patience)
			if err != nil {
				t.Fatal(err)
			}
			var greeting [5]byte
			if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Read(greeting[:]); err != nil || greeting[4] != 10 {
				t.Fatal(greeting, err)
			}
			defer conn.Close()
		}
		l := as(s, plainCaps)
		l.password = "wrong"
		if _, err := dial(t, address, l); err == nil {
			t.Fatal("let in")
		}
		if after := ids(); after != before {
			t.Errorf("%s connections, before %s", after, before)
		}
	})
}

func TestHostileLogins(t *testing.T) {
	s := upstream.Need(t, upstream.MariaDB)
	address := serve(t, s, proxy.Config{})
	for name, payload := range map[string][]byte{
		"empty":        {},
		"one byte":     {1},
		"old protocol": append([]byte{0, 0, 0, 0, 0}, "user\x00"...),
		"TLS asked":    append([]byte{0, 0x0a, 0, 0}, make([]byte, 28)...),
		"text":         []byte("GET / HTTP/1.1\r\nHost: database\r\n\r\n"),
	} {
		conn, err := net.DialTimeout("tcp", address, patience)
		if err != nil {
			t.Fatal(err)
		}
		c := &client{t: t, conn: conn}
		c.read()
		c.write(1, payload)
		_, p := c.read()
		e, err := wire.DecodeError(p, 0)
		if err != nil || e.Number != wire.ErrNumHandshake {
			t.Errorf("%s: %x, %v", name, p, err)
		}
		if _, _, err := c.tryRead(); err == nil {
			t.Errorf("%s: still open", name)
		}
		conn.Close()
	}
}

func TestFullHouse(t *testing.T) {
	s := upstream.Need(t, upstream.MariaDB)
	address := serve(t, s, proxy.Config{MaxConnections: 1})
	first := mustDial(t, address, as(s, plainCaps))
	_, err := dial(t, address, as(s, plainCaps))
	if e, ok := err.(wire.ServerError); !ok || e.Number != 1040 || e.State != "08004" || e.Message != "Too many connections" {
		t.Errorf("%v", err)
	}
	if got := first.cells("SELECT 1"); got != "1" {
		t.Error(got)
	}
}

// COM_CHANGE_USER is a login: it checks, and it forgets the session.
func TestChangeUser(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		address := serve(t, s, proxy.Config{})
		c := mustDial(t, address, as(s, plainCaps))
		c.query("SET @a = 1, time_zone = '+03:00'")
		change := func(user, password, database string) error {
			m := wire.ChangeUser{User: []byte(user), Database: []byte(database), Collation: 45, Plugin: []byte(c.hs.Plugin)}
			c.write(0, m.Append(nil, c.caps))
			a := wire.ClientAuth{Password: password}
			if _, _, err := a.Start(c.hs.Plugin, c.hs.Nonce); err != nil {
				t.Fatal(err)
			}
			return c.authenticate(&a)
		}
		if err := change(s.User, s.Password, "mysql"); err != nil {
			t.Fatal(err)
		}
		if got := c.cells("SELECT @a, @@time_zone, DATABASE()"); got != "NULL,SYSTEM,mysql" {
			t.Errorf("after the change: %s", got)
		}
		if err := change(s.User, "wrong", ""); err == nil || !strings.Contains(err.Error(), "1045") {
			t.Errorf("wrong password: %v", err)
		}
	})
}
