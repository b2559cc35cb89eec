package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"freshet/bench/upstream"
	"freshet/proxy"
	"freshet/proxy/postgres"
)

func TestMain(m *testing.M) { os.Exit(upstream.Main(m)) }

// patience bounds every wait of these tests.
const patience = 20 * time.Second

// rig is a real server with a Freshet before it.
type rig struct {
	server *upstream.Server
	listen string
}

func newRig(t testing.TB, c proxy.Config) *rig {
	t.Helper()
	return rigOn(t, upstream.Need(t, upstream.Postgres15), c)
}

// ownServer is a server that only this test has, to be killed.
func ownServer(t testing.TB) *upstream.Server {
	t.Helper()
	return upstream.Own(t, upstream.Postgres15)
}

func rigOn(t testing.TB, server *upstream.Server, c proxy.Config) *rig {
	t.Helper()
	level := slog.LevelWarn
	if os.Getenv("FRESHET_TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	c.Upstreams = []proxy.UpstreamConfig{{DSN: server.DSN(), Listen: "127.0.0.1:0"}}
	c.Memory = 64 << 20
	ctx, stop := context.WithCancel(context.Background())
	s, err := proxy.Open(ctx, c, proxy.Protocols{"postgres": postgres.New()}, log)
	if err != nil {
		stop()
		t.Fatal(err)
	}
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- s.Serve(ctx, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-ended:
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error("serve:", err)
		}
	})
	return &rig{server: server, listen: strings.Fields(s.Listeners()[0])[1]}
}

// dsn is Freshet's address, or the server's own.
func (r *rig) dsn(through bool, extra ...string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(r.server.User, r.server.Password), Path: "/" + r.server.Database,
		Host: net.JoinHostPort(r.server.Host, fmt.Sprint(r.server.Port)), RawQuery: "sslmode=disable"}
	if through {
		u.Host = r.listen
	}
	for _, e := range extra {
		u.RawQuery += "&" + e
	}
	return u.String()
}

// peer is a client that speaks messages.
type peer struct {
	t       testing.TB
	line    net.Conn
	front   *pgproto3.Frontend
	key     uint32
	secret  []byte
	through bool
}

func (r *rig) peer(t testing.TB, through bool, extra ...string) *peer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := pgconn.Connect(ctx, r.dsn(through, extra...))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SyncConn(ctx); err != nil {
		t.Fatal(err)
	}
	h, err := c.Hijack()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Conn.Close() })
	return &peer{t: t, line: h.Conn, front: h.Frontend, key: h.PID, secret: h.SecretKey, through: through}
}

func (p *peer) send(messages ...pgproto3.FrontendMessage) {
	p.t.Helper()
	if err := p.trySend(messages...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) trySend(messages ...pgproto3.FrontendMessage) error {
	if err := p.line.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	for _, m := range messages {
		p.front.Send(m)
	}
	return p.front.Flush()
}

// read returns the server's messages, as text, until n of the type of last
// came, or the connection ends.
func (p *peer) read(n int, last pgproto3.BackendMessage) []string {
	p.t.Helper()
	var got []string
	for n > 0 {
		m, err := p.front.Receive()
		if err != nil {
			var ne net.Error
			if errors.As(err, &ne) && ne.Timeout() {
				p.t.Fatalf("no more messages after %v", got)
			}
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return append(got, "EOF")
			}
			return append(got, "error: "+err.Error())
		}
		if last == nil || fmt.Sprintf("%T", m) == fmt.Sprintf("%T", last) {
			n--
		}
		got = append(got, show(m))
	}
	return got
}

// show writes a message without what may differ from connection to connection.
func show(m pgproto3.BackendMessage) string {
	switch m := m.(type) {
	case *pgproto3.ErrorResponse:
		return fmt.Sprintf("Error %s %s %q detail %q hint %q at %d %s", m.Severity, m.Code, m.Message, m.Detail, m.Hint, m.Position, m.Routine)
	case *pgproto3.NoticeResponse:
		return fmt.Sprintf("Notice %s %s %q", m.Severity, m.Code, m.Message)
	case *pgproto3.NotificationResponse:
		return fmt.Sprintf("Notification %s %q", m.Channel, m.Payload)
	case *pgproto3.RowDescription:
		s := "Row"
		for _, f := range m.Fields {
			s += fmt.Sprintf(" %s(%v,%d,%d,%d,%d)", f.Name, f.TableOID != 0, f.TableAttributeNumber, f.DataTypeOID, f.TypeModifier, f.Format)
		}
		return s
	case *pgproto3.DataRow:
		return fmt.Sprintf("Data %q", m.Values)
	case *pgproto3.CommandComplete:
		return "Complete " + string(m.CommandTag)
	case *pgproto3.ParameterDescription:
		return fmt.Sprint("Parameters ", m.ParameterOIDs)
	case *pgproto3.ParameterStatus:
		return "Status " + m.Name + "=" + m.Value
	case *pgproto3.ReadyForQuery:
		return "Ready " + string(m.TxStatus)
	case *pgproto3.CopyData:
		return fmt.Sprintf("CopyData %q", m.Data)
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", m), "*pgproto3.")
}

// ask runs a simple query and returns what came.
func (p *peer) ask(text string) []string {
	p.t.Helper()
	p.send(&pgproto3.Query{String: text})
	return p.read(1, &pgproto3.ReadyForQuery{})
}

// value runs a simple query and returns its one cell.
func (p *peer) value(text string) string {
	p.t.Helper()
	for _, line := range p.ask(text) {
		if strings.HasPrefix(line, "Data ") || strings.HasPrefix(line, "Error ") {
			return line
		}
	}
	return ""
}

// await asks until f is content, for things that happen in their own time.
func await(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if f() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("waited in vain:", what)
		}
	}
}
