package postgres_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	_ "github.com/lib/pq"

	"freshet/proxy"
)

// refusal is what a client is told at the door.
func refusal(t *testing.T, dsn string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := pgconn.Connect(ctx, dsn)
	if err == nil {
		return fmt.Sprint("welcome ", c.Close(ctx))
	}
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Severity + " " + e.Code + " " + e.Message
	}
	return err.Error()
}

func TestLogin(t *testing.T) {
	r := newRig(t, proxy.Config{})
	for name, tc := range map[string]struct {
		change func(c *pgx.ConnConfig)
		want   string
	}{
		"right":          {func(c *pgx.ConnConfig) {}, "welcome <nil>"},
		"wrong password": {func(c *pgx.ConnConfig) { c.Password = "x" }, `FATAL 28P01 password authentication failed for user "freshet"`},
		"unknown user":   {func(c *pgx.ConnConfig) { c.User = "nobody" }, `FATAL 28P01 password authentication failed for user "nobody"`},
		"no database":    {func(c *pgx.ConnConfig) { c.Database = "not_there" }, `FATAL 3D000 database "not_there" does not exist`},
		"bad parameter":  {func(c *pgx.ConnConfig) { c.RuntimeParams["work_mem"] = "much" }, `FATAL 22023 invalid value for parameter "work_mem": "much"`},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := pgx.ParseConfig(r.dsn(true))
			if err != nil {
				t.Fatal(err)
			}
			tc.change(c)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			conn, err := pgconn.ConnectConfig(ctx, &c.Config)
			got := fmt.Sprint("welcome ", err)
			if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
				got = e.Severity + " " + e.Code + " " + e.Message
			} else if err == nil {
				defer conn.Close(ctx)
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestFullHouse(t *testing.T) {
	r := newRig(t, proxy.Config{MaxConnections: 1})
	first := r.peer(t, true)
	if got := refusal(t, r.dsn(true)); got != "FATAL 53300 sorry, too many clients already" {
		t.Error(got)
	}
	first.send(&pgproto3.Terminate{})
	await(t, "a place", func() bool { return refusal(t, r.dsn(true)) == "welcome <nil>" })
}

func TestStartupParameters(t *testing.T) {
	r := newRig(t, proxy.Config{})
	ask := "select current_setting('datestyle'), current_setting('application_name'), current_setting('work_mem'), '2024-02-03'::date"
	extra := []string{"application_name=x", "options=-c%20datestyle%3DGerman", "work_mem=8MB"}
	want := r.peer(t, false, extra...).ask(ask)
	for range 3 {
		if got := r.peer(t, true, extra...).ask(ask); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got %v, want %v", got, want)
		}
		plain := r.peer(t, true).value("select '2024-02-03'::date")
		if plain != `Data ["2024-02-03"]` {
			t.Errorf("without parameters: %s", plain)
		}
	}
}

// dial opens a line to Freshet and sends bytes.
func (r *rig) dial(t *testing.T, pieces ...[]byte) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", r.listen)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	for _, p := range pieces {
		if _, err := c.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func words(w ...uint32) (b []byte) {
	for _, x := range w {
		b = binary.BigEndian.AppendUint32(b, x)
	}
	return b
}

func TestFirstBytes(t *testing.T) {
	r := newRig(t, proxy.Config{})
	startup := (&pgproto3.StartupMessage{ProtocolVersion: 3<<16 | 99, Parameters: map[string]string{"user": "freshet", "_pq_.x": "1"}})
	wire, err := startup.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := r.dial(t, words(8, 80877103), words(8, 80877104))
	answer := make([]byte, 2)
	if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "NN" {
		t.Fatalf("encryption: %q, %v", answer, err)
	}
	for i := range wire { // in pieces of one byte
		if _, err := c.Write(wire[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	front := pgproto3.NewFrontend(c, c)
	m, err := front.Receive()
	if n, ok := m.(*pgproto3.NegotiateProtocolVersion); err != nil || !ok || n.NewestMinorProtocol&0xFFFF != 2 || len(n.UnrecognizedOptions) != 1 {
		t.Errorf("negotiated %+v, %v", m, err)
	}
	if m, err = front.Receive(); err != nil || show(m) != "AuthenticationSASL" {
		t.Errorf("then %v, %v", m, err)
	}
	for name, bad := range map[string][]byte{
		"version 2":           words(8, 2<<16),
		"a length that lies":  words(0xFFFFFFFF, 3<<16),
		"too short":           words(4),
		"no terminator":       append(words(13, 3<<16), "user\x00"...),
		"no user":             append(words(9, 3<<16), 0),
		"MySQL":               []byte("\x0a5.5.5"),
		"TLS thrice":          append(words(8, 80877103), append(words(8, 80877103), words(8, 80877103)...)...),
		"HTTP":                []byte("GET / HTTP/1.1\r\n\r\n"),
		"query before login":  append(append([]byte{}, wire...), "Q\x00\x00\x00\x0dselect 1\x00"...),
		"giant before login":  append(append([]byte{}, wire...), "p\x7f\xff\xff\xff"...),
		"cancel of nobody":    words(16, 80877102, 12345, 1),
		"a cancel that lies":  words(12, 80877102, 12345),
		"startup out of size": append(words(10001), make([]byte, 100)...),
	} {
		t.Run(name, func(t *testing.T) {
			c := r.dial(t, bad)
			rest, err := io.ReadAll(c)
			if err != nil && !strings.Contains(err.Error(), "reset") {
				t.Errorf("%q, %v: want the end of the line", rest, err)
			}
		})
	}
	if got := refusal(t, r.dsn(true)); got != "welcome <nil>" {
		t.Error("afterwards:", got)
	}
}

func TestCancel(t *testing.T) {
	r := newRig(t, proxy.Config{Loops: 2})
	victim, bystander := r.peer(t, true), r.peer(t, true)
	victim.send(q("select pg_sleep(30)"))
	bystander.send(q("select pg_sleep(0.5)"))
	admin := r.peer(t, false)
	await(t, "both sleeping", func() bool {
		return admin.value("select count(*) from pg_stat_activity where query like 'select pg_sleep%'") == `Data ["2"]`
	})
	wrong := append(words(16, 80877102, victim.key), 0, 0, 0, 0)
	r.dial(t, wrong)
	r.dial(t, append(words(12+uint32(len(victim.secret)), 80877102, victim.key), victim.secret...))
	got := strings.Join(victim.read(1, &pgproto3.ReadyForQuery{}), "\n")
	if !strings.Contains(got, "57014") {
		t.Error("the victim:", got)
	}
	if got := strings.Join(bystander.read(1, &pgproto3.ReadyForQuery{}), "\n"); strings.Contains(got, "Error") {
		t.Error("the bystander:", got)
	}
	if got := victim.value("select 1"); got != `Data ["1"]` {
		t.Error("afterwards:", got)
	}
}

// Links are shared: what one session has set must not be another's.
func TestNothingLeaks(t *testing.T) {
	r := newRig(t, proxy.Config{Loops: 1, MaxLinks: 1, LinkWait: time.Second})
	setUp(t, r)
	a, b := r.peer(t, true), r.peer(t, true)
	for _, turn := range []struct {
		who  *peer
		text string
		want string
	}{
		{a, "set datestyle = 'German'", ""},
		{b, "show datestyle", "ISO, MDY"},
		{a, "show datestyle", "German, DMY"},
		{b, "set my.tenant = 'b'", ""},
		{a, "select current_setting('my.tenant', true)", ""},
		{b, "select current_setting('my.tenant', true)", "b"},
		{a, "select set_config('my.' || 'hidden', 'x', false)", "x"},
		{b, "select current_setting('my.hidden', true)", ""},
		{a, "select nextval('seq')", "1"},
		{b, "select lastval()", `Error ERROR 55000 "lastval is not yet defined in this session"`},
	} {
		got := turn.who.value(turn.text)
		want := fmt.Sprintf("Data [%q]", turn.want)
		if strings.HasPrefix(turn.want, "Error") {
			want = turn.want
		}
		if turn.want == "" && got == "" {
			continue
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", turn.text, got, want)
		}
	}
}

// A session with a temporary table keeps the only link; others are told why
// they get none, and go on once there is one.
func TestPinnedLink(t *testing.T) {
	r := newRig(t, proxy.Config{Loops: 1, MaxLinks: 1, LinkWait: 300 * time.Millisecond})
	a, b := r.peer(t, true), r.peer(t, true)
	a.ask("create temp table tt (a int)")
	if got := b.value("select 1 from pg_class limit 1"); !strings.HasPrefix(got, "Error ERROR 53300") {
		t.Error("got", got)
	}
	b.send(parse("", "select 1 from pg_class limit 1"), bind("", ""), execute("", 0), sync)
	if got := strings.Join(b.read(1, &pgproto3.ReadyForQuery{}), " "); !strings.HasPrefix(got, "Error ERROR 53300") || strings.Count(got, "Error") != 1 {
		t.Error("got", got)
	}
	a.ask("drop table tt")
	if got := b.value("select 1 from pg_class limit 1"); got != `Data ["1"]` {
		t.Error("got", got)
	}
}

func TestUpstreamGone(t *testing.T) {
	r := rigOn(t, ownServer(t), proxy.Config{})
	p := r.peer(t, true)
	p.ask("begin")
	p.ask("select pg_backend_pid()")
	idle := r.peer(t, true)
	if err := r.server.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(p.read(2, nil), " "); !strings.Contains(got, "FATAL") && !strings.Contains(got, "EOF") {
		t.Error("in a transaction:", got)
	}
	await(t, "an error", func() bool {
		got := idle.value("select 1 from pg_class limit 1")
		return strings.HasPrefix(got, "Error ERROR 08001") || strings.HasPrefix(got, "Error FATAL")
	})
	if err := r.server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, "service again", func() bool { return refusal(t, r.dsn(true)) == "welcome <nil>" })
	if got := r.peer(t, true).value("select 1 from pg_class limit 1"); got != `Data ["1"]` {
		t.Error(got)
	}
}

// Drivers as they are, in each of their modes.
func TestDrivers(t *testing.T) {
	r := newRig(t, proxy.Config{})
	setUp(t, r)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		t.Run("pgx "+mode.String(), func(t *testing.T) {
			c, err := pgx.ParseConfig(r.dsn(true))
			if err != nil {
				t.Fatal(err)
			}
			c.DefaultQueryExecMode = mode
			conn, err := pgx.ConnectConfig(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(t.Context())
			for i := range 20 {
				var name string
				if err := conn.QueryRow(t.Context(), "select name from wire where id = $1", 1+i%2).Scan(&name); err != nil || name != []string{"one", "two"}[i%2] {
					t.Fatal(name, err)
				}
				if _, err := conn.Exec(t.Context(), "insert into scratch values ($1, 'v')", 1000+i); err != nil {
					t.Fatal(err)
				}
				var n int
				if err := conn.QueryRow(t.Context(), "select count(*) from scratch where id >= $1", 1000).Scan(&n); err != nil || n != i+1 {
					t.Fatalf("%d rows after %d inserts, %v", n, i+1, err)
				}
			}
			if _, err := conn.Exec(t.Context(), "delete from scratch"); err != nil {
				t.Fatal(err)
			}
		})
	}
	t.Run("lib/pq", func(t *testing.T) {
		db, err := sql.Open("postgres", r.dsn(true))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		st, err := db.Prepare("select name from wire where id = $1")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			var name string
			if err := st.QueryRow(1).Scan(&name); err != nil || name != "one" {
				t.Fatal(name, err)
			}
			if err := db.QueryRow("select name from wire where id = $1", 2).Scan(&name); err != nil || name != "two" {
				t.Fatal(name, err)
			}
			if err := db.QueryRow(fmt.Sprintf("select name from wire where id = %d", 1+i%2)).Scan(&name); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("psql", func(t *testing.T) {
		run := func(dsn string) string {
			c := program(t, "psql", dsn, "-X", "-c", `\d wire`, "-c", "select * from wire", "-c", `\copy wire to stdout`, "-c", "selec")
			return c
		}
		// The table's first read has it published, which \d shows.
		run(r.dsn(true))
		for deadline := time.Now().Add(patience); !strings.Contains(run(r.dsn(false)), "Publications:"); {
			if time.Now().After(deadline) {
				t.Fatal("the table was read and is not published")
			}
		}
		if got, want := run(r.dsn(true)), run(r.dsn(false)); got != want {
			t.Errorf("through:\n%s\ndirect:\n%s", got, want)
		}
	})
}

func program(t *testing.T, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip("NOT RUN, no program:", name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if e := (*exec.ExitError)(nil); err != nil && !errors.As(err, &e) {
		t.Fatal(err)
	}
	return string(out)
}

func TestPgbench(t *testing.T) {
	r := newRig(t, proxy.Config{MaxLinks: 40}) // pgbench prepares one client at a time while the others hold transactions
	if out := program(t, "pgbench", "-i", "-s", "1", "-q", r.dsn(false)); !strings.Contains(out, "done") {
		t.Fatal(out)
	}
	for _, mode := range []string{"simple", "extended", "prepared"} {
		for _, script := range []string{"select-only", "tpcb-like"} {
			t.Run(mode+" "+script, func(t *testing.T) {
				out := program(t, "pgbench", "-n", "-M", mode, "-b", script, "-c", "10", "-t", "50", r.dsn(true))
				if !strings.Contains(out, "number of failed transactions: 0") || !strings.Contains(out, "500/500") {
					t.Error(out)
				}
			})
		}
	}
	direct := r.peer(t, false)
	if got := direct.value("select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history), count(*) from pgbench_history"); got != `Data ["t" "1500"]` {
		t.Error("the final data:", got)
	}
	direct.ask("drop table pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history")
}
