package proxy_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
	"freshet/proxy"
	"freshet/proxy/mysql"
	"freshet/proxy/postgres"
)

func TestMain(m *testing.M) { os.Exit(upstream.Main(m)) }

// rig is a real server with a Freshet in front of it. The right answer to
// anything is what the server itself says.
type rig struct {
	server  *upstream.Server
	listen  string
	http    string
	direct  *sql.DB
	through *sql.DB
	stop    func() // begins the shutdown
	freshet *proxy.Server
}

// everywhere runs one test body on every kind of server.
func everywhere(t *testing.T, body func(t *testing.T, r *rig)) {
	t.Helper()
	for _, kind := range upstream.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			r := newRig(t, upstream.Need(t, kind), proxy.Config{})
			body(t, r)
		})
	}
}

// config is c in front of the server; c's own upstream may name a replica.
func config(server *upstream.Server, c proxy.Config) proxy.Config {
	u := proxy.UpstreamConfig{DSN: server.DSN(), Listen: "127.0.0.1:0"}
	if len(c.Upstreams) == 1 {
		u.FeedFrom = c.Upstreams[0].FeedFrom
	}
	c.Upstreams = []proxy.UpstreamConfig{u}
	if c.Memory == 0 {
		c.Memory = 64 << 20
	}
	c.HTTP = "127.0.0.1:0"
	return c
}

// newRig starts a Freshet in this process.
func newRig(t testing.TB, server *upstream.Server, c proxy.Config) *rig {
	t.Helper()
	level := slog.LevelWarn
	if testing.Verbose() && os.Getenv("FRESHET_TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	ctx, stop := context.WithCancel(context.Background())
	s, err := proxy.Open(ctx, config(server, c), proxy.Protocols{"mysql": mysql.New(), "postgres": postgres.New()}, log)
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
	r := &rig{server: server, http: s.HTTPAddress(), direct: server.DB(t), stop: stop, freshet: s}
	fields := strings.Fields(s.Listeners()[0])
	r.listen = fields[1]
	r.through = r.open(t, "")
	t.Cleanup(func() {
		r.through.Close()
		stop()
		if err := <-ended; err != nil {
			t.Error("serve:", err)
		}
	})
	return r
}

// dsn is the address of the Freshet in the driver's spelling; extra is added
// to its parameters.
func (r *rig) dsn(extra string) string {
	s := r.server
	if s.Dialect == upstream.DialectPostgres {
		u := url.URL{Scheme: "postgres", User: url.UserPassword(s.User, s.Password), Host: r.listen, Path: "/" + s.Database, RawQuery: "sslmode=disable"}
		if extra != "" {
			u.RawQuery += "&" + extra
		}
		return u.String()
	}
	dsn := fmt.Sprintf("%s:%s@tcp(%s)/%s", s.User, s.Password, r.listen, s.Database)
	if extra != "" {
		dsn += "?" + extra
	}
	return dsn
}

func (r *rig) open(t testing.TB, extra string) *sql.DB {
	t.Helper()
	db, err := sql.Open(r.server.Driver(), r.dsn(extra))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// url is the address of the Freshet as its users write it.
func (r *rig) url() string {
	return strings.Replace(r.server.DSN(), r.server.Address(), r.listen, 1)
}

func (r *rig) postgres() bool { return r.server.Dialect == upstream.DialectPostgres }

// table makes a fresh table and returns its name; columns is what stands in
// the parentheses.
func (r *rig) table(t testing.TB, columns string, rows ...string) string {
	t.Helper()
	name := fmt.Sprintf("t%d", time.Now().UnixNano())
	mustExec(t, r.direct, fmt.Sprintf("CREATE TABLE %s (%s)", name, columns))
	t.Cleanup(func() { mustExec(t, r.direct, "DROP TABLE IF EXISTS "+name) })
	for _, row := range rows {
		mustExec(t, r.direct, fmt.Sprintf("INSERT INTO %s VALUES (%s)", name, row))
	}
	return name
}

// querier is a pool or one connection of it.
type querier interface {
	QueryContext(ctx context.Context, q string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, q string, args ...any) (sql.Result, error)
}

func mustExec(t testing.TB, db querier, q string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, err := db.ExecContext(ctx, q, args...); err != nil {
		t.Fatalf("%s: %v", q, err)
	}
}

// ask returns a whole answer as text: column names, types, then rows; or the
// error.
func ask(db querier, q string, args ...any) string {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	rows, err := db.QueryContext(ctx, q, args...)
	if err != nil {
		return "error: " + err.Error()
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return "error: " + err.Error()
	}
	var b strings.Builder
	for _, c := range types {
		fmt.Fprintf(&b, "%s:%s ", c.Name(), c.DatabaseTypeName())
	}
	for rows.Next() {
		cells := make([]any, len(types))
		scan := make([]any, len(types))
		for i := range cells {
			scan[i] = &cells[i]
		}
		if err := rows.Scan(scan...); err != nil {
			return "error: " + err.Error()
		}
		b.WriteString("\n")
		for _, c := range cells {
			if raw, ok := c.([]byte); ok {
				c = string(raw)
			}
			fmt.Fprintf(&b, "%v|", c)
		}
	}
	if err := rows.Err(); err != nil {
		return "error: " + err.Error()
	}
	return b.String()
}

// conn takes one connection, so that what follows is one session.
func conn(t *testing.T, db *sql.DB) *sql.Conn {
	t.Helper()
	c, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// where is EXPLAIN LAST STATEMENT's destination.
func where(t *testing.T, c *sql.Conn) (destination, reason string) {
	t.Helper()
	if err := c.QueryRowContext(context.Background(), "EXPLAIN LAST STATEMENT").Scan(&destination, &reason); err != nil {
		t.Fatal("EXPLAIN LAST STATEMENT: ", err)
	}
	return destination, reason
}

const patience = 10 * time.Second

// until waits for the condition, and fails with what it last said.
func until(t *testing.T, what string, ok func() (bool, string)) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		good, said := ok()
		if good {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: still not so after %v: %s", what, patience, said)
		}
		time.Sleep(2 * time.Millisecond) // between looks, not instead of one
	}
}

// hits repeats a read until it is served from memory.
func hits(t *testing.T, c *sql.Conn, q string, args ...any) {
	t.Helper()
	until(t, "a hit of "+q, func() (bool, string) {
		answer := ask(c, q, args...)
		destination, reason := where(t, c)
		return strings.HasPrefix(destination, "cache"), destination + " (" + reason + ") " + answer
	})
}

// agrees waits until the answer through Freshet is the server's own.
func (r *rig) agrees(t *testing.T, c querier, q string, args ...any) {
	t.Helper()
	until(t, "the server's own answer to "+q, func() (bool, string) {
		got, want := ask(c, q, args...), ask(r.direct, q, args...)
		return got == want, fmt.Sprintf("\n got %s\nwant %s", got, want)
	})
}
