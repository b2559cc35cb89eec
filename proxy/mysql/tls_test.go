package mysql_test

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"freshet/bench/pki"
	"freshet/bench/upstream"
	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// withTLS is a configuration whose certificate the authority has signed.
func withTLS(ca *pki.Authority, mode proxy.TLSMode) proxy.Config {
	pair := ca.Sign("server")
	return proxy.Config{TLS: proxy.TLSConfig{Cert: pair.Cert, Key: pair.Key, Mode: mode}}
}

// overTLS opens a go-sql-driver pool with one connection. A nil configuration is
// for a client in clear.
func overTLS(t *testing.T, s *upstream.Server, address string, config *tls.Config, more ...driver.Option) *sql.DB {
	t.Helper()
	c := driver.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName, c.TLS = s.User, s.Password, "tcp", address, s.Database, config
	if err := c.Apply(more...); err != nil {
		t.Fatal(err)
	}
	connector, err := driver.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func trusting(ca *pki.Authority) *tls.Config {
	return &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}
}

// A session under TLS is a session: hits, prepared statements, results and
// statements of many packets.
func TestTLS(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		ca := pki.New(t)
		address := serve(t, s, withTLS(ca, ""))
		db := overTLS(t, s, address, trusting(ca))
		exec := func(text string, args ...any) {
			t.Helper()
			if _, err := db.Exec(text, args...); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		exec("DROP TABLE IF EXISTS tls_client")
		exec("CREATE TABLE tls_client (id INT PRIMARY KEY, v VARCHAR(20))")
		exec("INSERT INTO tls_client VALUES (1, 'one'), (2, 'two')")
		hitsUnderTLS(t, db, "SELECT v FROM tls_client WHERE id = 1")
		hitsUnderTLS(t, db, "SELECT v FROM tls_client WHERE id = ?", 1)
		// TLS is no part of what makes answers differ.
		var v, destination, reason string
		clear := overTLS(t, s, address, nil)
		if err := clear.QueryRow("SELECT v FROM tls_client WHERE id = 1").Scan(&v); err != nil || v != "one" {
			t.Fatal(v, err)
		}
		if err := clear.QueryRow("EXPLAIN LAST STATEMENT").Scan(&destination, &reason); err != nil || !strings.HasPrefix(destination, "cache") {
			t.Errorf("in clear, the answer came from %s (%s), %v", destination, reason, err)
		}
		longUnderTLS(t, db)
		exec("DROP TABLE tls_client")
	})
}

// hitsUnderTLS repeats a read, whose answer is one, until it is served from memory.
func hitsUnderTLS(t *testing.T, db *sql.DB, text string, args ...any) {
	t.Helper()
	destination := ""
	for begun := time.Now(); !strings.HasPrefix(destination, "cache"); time.Sleep(5 * time.Millisecond) {
		var v, reason string
		if err := db.QueryRow(text, args...).Scan(&v); v != "one" || err != nil {
			t.Fatal(v, err)
		}
		if err := db.QueryRow("EXPLAIN LAST STATEMENT").Scan(&destination, &reason); err != nil {
			t.Fatal(err)
		}
		if time.Since(begun) > patience {
			t.Fatalf("no hit of %s: %s (%s)", text, destination, reason)
		}
	}
}

// longUnderTLS sends and wants values of many records.
func longUnderTLS(t *testing.T, db *sql.DB) {
	t.Helper()
	var n int
	if err := db.QueryRow("SELECT LENGTH(?)", strings.Repeat("x", 3<<20)).Scan(&n); err != nil || n != 3<<20 {
		t.Errorf("a long parameter: %d, %v", n, err)
	}
	const each = 800_000 // of 8 bytes; the servers' max_allowed_packet is 16 MiB
	rows, err := db.Query(fmt.Sprintf("SELECT REPEAT('abcdefgh', %[1]d) UNION ALL SELECT REPEAT('abcdefgh', %[1]d) UNION ALL SELECT REPEAT('abcdefgh', %[1]d)", each))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil || v != strings.Repeat("abcdefgh", each) {
			t.Errorf("a long value: %d bytes, %v", len(v), err)
		}
		n++
	}
	if err := rows.Err(); err != nil || n != 3<<20+3 {
		t.Error("long values: ", err)
	}
}

// Each mode lets in whom it says, and tells the others why in the server's words.
func TestTLSModes(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		ca, stranger := pki.New(t), pki.New(t)
		own := func(a *pki.Authority) *tls.Config {
			pair := a.Sign("client")
			cert, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
			if err != nil {
				t.Fatal(err)
			}
			c := trusting(ca)
			c.Certificates = []tls.Certificate{cert}
			return c
		}
		const insecure = "Error 3159 (HY000): Connections using insecure transport are prohibited while --require_secure_transport=ON."
		const denied = "Error 1045 (28000): Access denied for user 'freshet'@'127.0.0.1' (using password: YES)"
		modes := map[proxy.TLSMode]string{}
		for _, mode := range []proxy.TLSMode{proxy.TLSPrefer, proxy.TLSRequire, proxy.TLSVerify} {
			c := withTLS(ca, mode)
			c.TLS.CA = ca.File
			modes[mode] = serve(t, s, c)
		}
		for _, c := range []struct {
			name   string
			config *tls.Config
			want   map[proxy.TLSMode]string // "" where it is let in
		}{
			{"in clear", nil, map[proxy.TLSMode]string{proxy.TLSRequire: insecure, proxy.TLSVerify: insecure}},
			{"without a certificate", trusting(ca), map[proxy.TLSMode]string{proxy.TLSVerify: denied}},
			{"with one", own(ca), nil},
			{"with another's", own(stranger), map[proxy.TLSMode]string{"prefer": "tls: ", "require": "tls: ", "verify": "tls: "}},
			{"trusting another", trusting(stranger), map[proxy.TLSMode]string{"prefer": "unknown authority", "require": "unknown authority", "verify": "unknown authority"}},
		} {
			for mode, address := range modes {
				err := overTLS(t, s, address, c.config).Ping()
				if want := c.want[mode]; want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
					// The driver tells of a refusal under way as a bad connection.
					if errors.Is(err, driver.ErrInvalidConn) && want == "tls: " {
						continue
					}
					t.Errorf("--tls %s, %s: %v, want %q", mode, c.name, err, want)
				}
			}
		}
	})
}

// TLS is offered with a certificate and only then, and a request for it that was
// not offered, or comes again, is no handshake.
func TestTLSOffer(t *testing.T) {
	s := upstream.Need(t, upstream.MariaDB)
	ca := pki.New(t)
	request := (&wire.HandshakeResponse{Capabilities: plainCaps | wire.ClientSSL, MaxPacket: 1 << 24, Collation: 45}).AppendSSLRequest(nil)
	ask := func(c *client) {
		t.Helper()
		c.write(1, request)
		_, p := c.read()
		if e, err := wire.DecodeError(p, plainCaps); err != nil || e.Number != wire.ErrNumHandshake {
			t.Errorf("answered %q, %v", p, err)
		}
	}
	connect := func(address string) *client {
		t.Helper()
		c, p := meet(t, address)
		var err error
		if c.hs, err = wire.DecodeHandshake(p); err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := connect(serve(t, s, proxy.Config{}))
	if c.hs.Capabilities.Has(wire.ClientSSL) {
		t.Error("TLS is offered without a certificate")
	}
	ask(c)
	c = connect(serve(t, s, withTLS(ca, "")))
	if !c.hs.Capabilities.Has(wire.ClientSSL) {
		t.Error("TLS is not offered")
	}
	c.write(1, request)
	secured := tls.Client(c.conn, trusting(ca))
	if err := secured.HandshakeContext(context.Background()); err != nil {
		t.Fatal(err)
	}
	c.conn = secured
	ask(c)
}

// The shell that MariaDB's users have.
func TestTLSShell(t *testing.T) {
	shell, err := exec.LookPath("mariadb")
	if err != nil {
		t.Skip("no mariadb shell")
	}
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		ca, stranger := pki.New(t), pki.New(t)
		c := withTLS(ca, proxy.TLSVerify)
		c.TLS.CA = ca.File
		address := serve(t, s, c)
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		pair := ca.Sign("client")
		run := func(more ...string) string {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			arguments := append([]string{"--no-defaults", "-h127.0.0.1", "-P" + port, "-u" + s.User, "-p" + s.Password, "-e", `SELECT 40+2; \s`}, more...)
			out, err := exec.CommandContext(ctx, shell, arguments...).CombinedOutput()
			return fmt.Sprint(string(out), err)
		}
		certificate := []string{"--ssl-cert=" + pair.Cert, "--ssl-key=" + pair.Key}
		if got := run(append(certificate, "--ssl-ca="+ca.File, "--ssl-verify-server-cert")...); !strings.Contains(got, "Cipher in use is TLS_") || !strings.Contains(got, "42\n") {
			t.Errorf("said %s", got)
		}
		if got := run(append(certificate, "--ssl-ca="+stranger.File, "--ssl-verify-server-cert")...); !strings.Contains(got, "ERROR 2026 (HY000)") {
			t.Errorf("trusting another, said %s", got)
		}
		if got := run("--ssl-ca=" + ca.File); !strings.Contains(got, "ERROR 1045 (28000)") {
			t.Errorf("without a certificate, said %s", got)
		}
		if got := run("--skip-ssl"); !strings.Contains(got, "ERROR 3159 (") {
			t.Errorf("in clear, said %s", got)
		}
	})
}
