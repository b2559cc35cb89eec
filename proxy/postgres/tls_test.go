package postgres_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"freshet/bench/pki"
	"freshet/bench/upstream"
	"freshet/proxy"
)

// withTLS is a configuration with a certificate.
func withTLS(pair pki.Pair, mode proxy.TLSMode) proxy.Config {
	return proxy.Config{TLS: proxy.TLSConfig{Cert: pair.Cert, Key: pair.Key, Mode: mode}}
}

// tlsDSN is Freshet's address as the parameters want TLS.
func (r *rig) tlsDSN(parameters ...string) string {
	return strings.Replace(r.dsn(true, parameters...), "sslmode=disable&", "", 1)
}

func connect(t *testing.T, dsn string) *pgconn.PgConn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Conn().Close() })
	return c
}

// A session under TLS is a session: hits, large results, COPY both ways, and its
// statements can be cancelled.
func TestTLS(t *testing.T) {
	ca := pki.New(t)
	r := newRig(t, withTLS(ca.Sign("server"), ""))
	dsn := r.tlsDSN("sslmode=verify-full", "sslrootcert="+ca.File, "channel_binding=require")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	for _, text := range []string{"drop table if exists tls_client", "create table tls_client (id int primary key, v text)", "insert into tls_client values (1, 'one'), (2, 'two')"} {
		if _, err := c.Exec(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "a hit under TLS", func() bool {
		var v, destination, reason string
		if err := c.QueryRow(ctx, "select v from tls_client where id = $1", 1).Scan(&v); err != nil || v != "one" {
			t.Fatal(v, err)
		}
		if err := c.QueryRow(ctx, "explain last statement").Scan(&destination, &reason); err != nil {
			t.Fatal(err)
		}
		return strings.HasPrefix(destination, "cache")
	})
	var long string
	if err := c.QueryRow(ctx, "select repeat('abcdefgh', 2000000)").Scan(&long); err != nil || long != strings.Repeat("abcdefgh", 2000000) {
		t.Errorf("%d bytes, %v", len(long), err)
	}
	text := strings.Repeat("9\tnine\n", 1)
	if tag, err := c.PgConn().CopyFrom(ctx, strings.NewReader(text), "copy tls_client from stdin"); err != nil || tag.RowsAffected() != 1 {
		t.Error(tag, err)
	}
	var out bytes.Buffer
	if tag, err := c.PgConn().CopyTo(ctx, &out, "copy (select x from generate_series(1, 500000) x) to stdout"); err != nil || tag.RowsAffected() != 500000 || !strings.HasSuffix(out.String(), "\n500000\n") {
		t.Error(tag, err)
	}
	go func() {
		for ctx.Err() == nil && c.PgConn().CancelRequest(ctx) == nil {
			time.Sleep(20 * time.Millisecond) // until it hits the statement
		}
	}()
	if _, err := c.Exec(ctx, "select pg_sleep(20)"); err == nil || !strings.Contains(err.Error(), "57014") {
		t.Error("cancelled: ", err)
	}
}

// A client that reads slowly holds up nothing but itself, and gets all of it.
func TestTLSSlowReader(t *testing.T) {
	ca := pki.New(t)
	r := newRig(t, withTLS(ca.Sign("server"), ""))
	c := connect(t, r.tlsDSN("sslmode=verify-full", "sslrootcert="+ca.File))
	h, err := c.Hijack()
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, line: h.Conn, front: h.Frontend}
	p.send(&pgproto3.Query{String: "copy (select repeat('x', 1000) from generate_series(1, 60000)) to stdout"})
	other := connect(t, r.tlsDSN("sslmode=require"))
	for i := range 20 {
		if _, err := other.Exec(t.Context(), fmt.Sprintf("select %d", i)).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	rows := 0
	for _, line := range p.read(1, &pgproto3.ReadyForQuery{}) {
		if strings.HasPrefix(line, "CopyData") {
			rows++
		}
	}
	if rows != 60000 {
		t.Errorf("%d rows", rows)
	}
}

func TestTLSModes(t *testing.T) {
	ca, stranger := pki.New(t), pki.New(t)
	client, foreign := ca.Sign("client"), stranger.Sign("client")
	plain := []string{"sslmode=disable"}
	trust := []string{"sslmode=verify-full", "sslrootcert=" + ca.File}
	with := func(p pki.Pair) []string { return append(trust, "sslcert="+p.Cert, "sslkey="+p.Key) }
	const in = "welcome <nil>"
	const needsTLS = `FATAL 28000 no pg_hba.conf entry for host "127.0.0.1", user "freshet", database "freshet_test", no encryption`
	const needsCertificate = "FATAL 28000 connection requires a valid client certificate"
	for mode, want := range map[proxy.TLSMode][5]string{ // in clear; TLS; with a certificate; with another's; trusting another
		proxy.TLSPrefer:  {in, in, in, "tls: ", "unknown authority"},
		proxy.TLSRequire: {needsTLS, in, in, "tls: ", "unknown authority"},
		proxy.TLSVerify:  {needsTLS, needsCertificate, in, "tls: ", "unknown authority"},
	} {
		c := withTLS(ca.Sign("server"), mode)
		c.TLS.CA = ca.File
		r := newRig(t, c)
		for i, parameters := range [5][]string{plain, trust, with(client), with(foreign), {"sslmode=verify-full", "sslrootcert=" + stranger.File}} {
			if got := refusal(t, r.tlsDSN(parameters...)); got != want[i] && (i < 3 || !strings.Contains(got, want[i])) {
				t.Errorf("--tls %s, %q: %s, want %s", mode, parameters, got, want[i])
			}
		}
	}
}

// sslRequest asks for TLS, as users of PostgreSQL do before anything else.
var sslRequest = words(8, 80877103)

// secured is the client's side of a handshake.
func secured(t *testing.T, c net.Conn, ca *pki.Authority, protocols ...string) (*tls.Conn, error) {
	t.Helper()
	s := tls.Client(c, &tls.Config{RootCAs: ca.Pool, ServerName: "localhost", NextProtos: protocols})
	return s, s.Handshake()
}

// answered reads the answer to requests for encryption.
func answered(t *testing.T, c net.Conn, want string) net.Conn {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("answered %q, %v", got, err)
	}
	return c
}

// told reads a message.
func told(t *testing.T, c net.Conn, want string) {
	t.Helper()
	m, err := pgproto3.NewFrontend(c, c).Receive()
	got := fmt.Sprint(err)
	if err == nil {
		got = show(m)
	}
	if !strings.Contains(got, want) {
		t.Errorf("told %s, want %s", got, want)
	}
}

func startupOf(t *testing.T, user string) []byte {
	t.Helper()
	b, err := (&pgproto3.StartupMessage{ProtocolVersion: 3 << 16, Parameters: map[string]string{"user": user}}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Whatever comes before a handshake is never taken for what comes under it, and
// what was settled before it is not asked for again.
func TestTLSRequests(t *testing.T) {
	ca := pki.New(t)
	r := newRig(t, withTLS(ca.Sign("server"), ""))
	startup := startupOf(t, r.server.User)
	// In one piece, so that the second message is there when the first is read.
	told(t, r.dial(t, append(bytes.Clone(sslRequest), startup...)), "received unencrypted data after SSL request")
	// GSSAPI is refused before TLS, and nothing may be asked for again under it.
	c := answered(t, r.dial(t, words(8, 80877104)), "N")
	if _, err := c.Write(sslRequest); err != nil {
		t.Fatal(err)
	}
	s, err := secured(t, answered(t, c, "S"), ca)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(sslRequest); err != nil {
		t.Fatal(err)
	}
	told(t, s, "unsupported frontend protocol")
	// Garbage in the place of a handshake.
	c = answered(t, r.dial(t, sslRequest), "S")
	if _, err := c.Write(startup); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || len(got) > 0 && got[0] != 21 {
		t.Errorf("garbage is answered %q, %v", got, err)
	}
}

// A client that begins with TLS must name the protocol, and no other.
func TestTLSDirect(t *testing.T) {
	ca := pki.New(t)
	r := newRig(t, withTLS(ca.Sign("server"), ""))
	s, err := secured(t, r.dial(t), ca, "postgresql")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(startupOf(t, r.server.User)); err != nil {
		t.Fatal(err)
	}
	told(t, s, "AuthenticationSASL")
	if s, err = secured(t, r.dial(t), ca); err != nil {
		t.Fatal(err)
	}
	told(t, s, "without ALPN")
	if _, err = secured(t, r.dial(t), ca, "h2"); err == nil || !strings.Contains(err.Error(), "no application protocol") {
		t.Error("another protocol: ", err)
	}
	// Without a certificate there is neither way.
	off := newRig(t, proxy.Config{})
	answered(t, off.dial(t, sslRequest), "N")
	if _, err := secured(t, off.dial(t), ca, "postgresql"); err == nil {
		t.Error("TLS without a certificate")
	}
}

// Somebody who ends TLS on the way, with a certificate that the client trusts, is
// found out by the binding; and where there can be none, none is offered.
func TestTLSChannelBinding(t *testing.T) {
	ca := pki.New(t)
	for _, algorithm := range []x509.PublicKeyAlgorithm{x509.ECDSA, x509.RSA, x509.Ed25519} {
		r := newRig(t, withTLS(ca.SignWith("server", algorithm), ""))
		want := "welcome <nil>"
		if algorithm == x509.Ed25519 {
			want = "channel binding required but"
			if got := refusal(t, r.tlsDSN("sslmode=require")); got != "welcome <nil>" {
				t.Errorf("%s, no binding required: %s", algorithm, got)
			}
		}
		if got := refusal(t, r.tlsDSN("sslmode=require", "channel_binding=require")); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", algorithm, got, want)
		}
	}
	r := newRig(t, withTLS(ca.Sign("server"), ""))
	for binding, want := range map[string]string{"require": "FATAL 28000 SCRAM channel binding check failed", "disable": "welcome <nil>"} {
		middle := r.between(t, ca.Sign("middle"))
		dsn := strings.Replace(r.tlsDSN("sslmode=verify-full", "sslrootcert="+ca.File, "channel_binding="+binding), r.listen, middle, 1)
		if got := refusal(t, dsn); got != want {
			t.Errorf("through somebody, channel_binding=%s: %s, want %s", binding, got, want)
		}
	}
}

// between listens with a certificate of its own and speaks TLS with Freshet.
func (r *rig) between(t *testing.T, pair pki.Pair) string {
	t.Helper()
	own, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	answer := func(c net.Conn) {
		defer c.Close()
		up := r.dial(t, sslRequest)
		defer up.Close()
		b := make([]byte, 8)
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		if _, err := io.ReadFull(up, b[:1]); err != nil {
			return
		}
		if _, err := c.Write([]byte("S")); err != nil {
			return
		}
		left := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{own}})
		right := tls.Client(up, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it stands for an attacker
		go io.Copy(left, right)                                        //nolint:errcheck // the client sees the end
		io.Copy(right, left)                                           //nolint:errcheck // as above
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go answer(c)
		}
	}()
	return ln.Addr().String()
}

// The shells of both versions, and the driver that knows no channel binding.
func TestTLSShell(t *testing.T) {
	ca, stranger := pki.New(t), pki.New(t)
	r := newRig(t, withTLS(ca.Sign("server"), proxy.TLSRequire))
	for version, psql := range shells(t) {
		verify := "sslmode=verify-full sslrootcert=" + ca.File
		for parameters, want := range map[string]string{
			"sslmode=require":                   "42",
			verify:                              "42",
			verify + " channel_binding=require": "42",
			verify + " ssl_max_protocol_version=TLSv1.2 channel_binding=require": "42",
			"sslmode=verify-full sslrootcert=" + stranger.File:                   "certificate verify failed",
			"sslmode=disable": "no pg_hba.conf entry",
			verify + " sslnegotiation=direct channel_binding=require":        "42",
			verify + " min_protocol_version=3.2 max_protocol_version=latest": "42",
		} {
			if (strings.Contains(parameters, "direct") || strings.Contains(parameters, "3.2")) && version < 18 {
				continue
			}
			host, port, err := net.SplitHostPort(r.listen)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			cmd := exec.CommandContext(ctx, psql[0], append(psql[1:], "-X", "-At", "-c", "select 40+2", fmt.Sprintf("host=%s port=%s user=%s dbname=%s %s", host, port, r.server.User, r.server.Database, parameters))...)
			cmd.Env = append(os.Environ(), "PGPASSWORD="+r.server.Password)
			out, err := cmd.CombinedOutput()
			cancel()
			if !strings.Contains(string(out), want) {
				t.Errorf("psql %d, %s: %s (%v), want %s", version, parameters, out, err, want)
			}
		}
	}
	db, err := sql.Open("postgres", r.tlsDSN("sslmode=verify-full", "sslrootcert="+ca.File))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRow("select 40+2").Scan(&n); err != nil || n != 42 {
		t.Error("lib/pq: ", n, err)
	}
}

// shells are the psql commands of this machine by version. Those of the newer
// servers' folder run outside it, so that they find the test's files.
func shells(t *testing.T) map[int][]string {
	found := map[int][]string{}
	const psql15, psql18 = "/usr/lib/postgresql/15/bin/psql", "/usr/lib/postgresql/18/bin/psql"
	if _, err := os.Stat(psql15); err == nil {
		found[15] = []string{psql15}
	}
	sid := upstream.SidFolder()
	if _, err := os.Stat(sid + psql18); err == nil {
		libraries, err := filepath.Glob(sid + "/usr/lib/*-linux-gnu")
		loaders, err2 := filepath.Glob(sid + "/usr/lib*/ld-linux-*.so.*")
		if err == nil && err2 == nil && len(libraries) > 0 && len(loaders) > 0 {
			found[18] = []string{loaders[0], "--library-path", libraries[0], sid + psql18}
		}
	}
	if len(found) == 0 {
		t.Skip("no psql")
	}
	return found
}
