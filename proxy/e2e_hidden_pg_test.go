package proxy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"freshet/bench/upstream"
	"freshet/proxy"
)

// inPostgres runs one body on PostgreSQL 15 and 18.
func inPostgres(t *testing.T, body func(t *testing.T, r *rig)) {
	t.Helper()
	for _, kind := range []upstream.Kind{upstream.Postgres15, upstream.Postgres18} {
		t.Run(string(kind), func(t *testing.T) {
			body(t, newRig(t, upstream.Need(t, kind), proxy.Config{Loops: 1, MaxLinks: 3}))
		})
	}
}

// line is one session that says what it wants in so many messages.
type line struct {
	t *testing.T
	c *pgconn.PgConn
}

func (r *rig) line(t *testing.T, through bool) *line {
	t.Helper()
	dsn := r.server.DSN()
	if through {
		dsn = r.url()
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	l := &line{t, c}
	t.Cleanup(l.close)
	return l
}

func (l *line) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if !l.c.IsClosed() {
		if err := l.c.Close(ctx); err != nil {
			l.t.Log(err)
		}
	}
}

// ask sends a simple query and tells its rows or its error.
func (l *line) ask(text string) string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	results, err := l.c.Exec(ctx, text).ReadAll()
	if err != nil {
		return "error: " + err.Error()
	}
	var b strings.Builder
	for _, r := range results {
		for _, row := range r.Rows {
			fmt.Fprintf(&b, "%q ", row)
		}
	}
	return b.String()
}

func (l *line) must(text string) {
	l.t.Helper()
	if got := l.ask(text); strings.HasPrefix(got, "error: ") {
		l.t.Fatalf("%s: %s", text, got)
	}
}

// run sends a text by the extended protocol.
func (l *line) run(text string) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := l.c.ExecParams(ctx, text, nil, nil, nil, nil).Read().Err; err != nil {
		l.t.Fatalf("%s: %v", text, err)
	}
}

// looks show what a session is.
var looks = []string{
	"select ts, name from lk0 where id = 1",
	"select current_setting('my.leak', true), current_setting('my.made', true)",
	"select count(*) from pg_prepared_statements where name = 'leakp'",
	"select count(*) from pg_listening_channels()",
	"select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
	"select current_setting('DateStyle')",
	"select ts, name from lk0 where id = 1",
}

func (l *line) look() string {
	var b strings.Builder
	for _, q := range looks {
		b.WriteString(l.ask(q) + "\n")
	}
	return b.String()
}

// hidingWrite is a write that changes the session without saying so.
type hidingWrite struct{ name, make, write, undo string }

const german = "set_config('DateStyle', 'German', false)"

// byTrigger is a write whose trigger runs a body.
func byTrigger(name, body string) hidingWrite {
	return hidingWrite{name, "create function leakf() returns trigger language plpgsql as $$begin " + body + "; return new; end$$; " +
		"create trigger t before insert on leak for each row execute function leakf()", "insert into leak values (1)", "drop function leakf cascade"}
}

var hidingWrites = []hidingWrite{
	byTrigger("a setting", "perform "+german),
	byTrigger("SET", "set datestyle = 'German'"),
	byTrigger("dynamic SQL", "execute 'set date' || 'style = ''German'''"),
	byTrigger("a customised option", "perform set_config('my.leak', 'x', false)"),
	byTrigger("an option of a computed name", "perform set_config('my.' || 'made', 'x', false)"),
	byTrigger("a local customised option", "perform set_config('my.leak', 'x', true)"),
	byTrigger("a temporary table", "create temp table if not exists lk0 as select 1 as id, 'temporary' as name, now()::timestamp(0) - now()::timestamp(0) as ts"),
	byTrigger("a prepared statement", "execute 'prepare leakp as select 1'"),
	byTrigger("LISTEN", "listen leaks"),
	byTrigger("an advisory lock", "perform pg_advisory_lock_shared(4711)"),
	byTrigger("pg_settings", "update pg_settings set setting = 'German' where name = 'DateStyle'"),
	{"a deferred trigger", "create function leakf() returns trigger language plpgsql as $$begin perform " + german + "; return new; end$$; " +
		"create constraint trigger t after insert on leak deferrable initially deferred for each row execute function leakf()", "insert into leak values (1)", "drop function leakf cascade"},
	{"a trigger's condition", "create function leakf() returns trigger language plpgsql as $$begin return new; end$$; " +
		"create trigger t before insert on leak for each row when (" + german + " is not null) execute function leakf()", "insert into leak values (1)", "drop function leakf cascade"},
	{"an INSTEAD OF trigger", "create view leakv as select * from leak; create function leakf() returns trigger language plpgsql as $$begin perform " + german + "; return new; end$$; " +
		"create trigger t instead of insert on leakv for each row execute function leakf()", "insert into leakv values (1)", "drop view leakv; drop function leakf cascade"},
	{"a rule", "create rule leakr as on insert to leak do also select " + german, "insert into leak values (1)", "drop rule leakr on leak"},
	{"a default", "alter table leak add b text default " + german, "insert into leak values (1)", "alter table leak drop b"},
	{"a check", "alter table leak add constraint c check (" + german + " is not null) not valid", "insert into leak values (1)", "alter table leak drop constraint c"},
	{"a domain", "create domain leakd as int check (" + german + " is not null); create table leakt (a leakd)", "insert into leakt values (1)", "drop table leakt; drop domain leakd"},
	{"an index", "create function leakf(int) returns int language plpgsql immutable as $$begin perform " + german + "; return 1; end$$; create index leaki on leak (leakf(id))", "insert into leak values (1)", "drop function leakf cascade"},
	{"a generated column", "create function leakf(int) returns int language plpgsql immutable as $$begin perform " + german + "; return 1; end$$; alter table leak add g int generated always as (leakf(id)) stored", "insert into leak (id) values (1)", "drop function leakf cascade"},
	{"a body in SQL", "create function leakf() returns text begin atomic select " + german + "; end; alter table leak add b text default leakf()", "insert into leak values (1)", "alter table leak drop b; drop function leakf"},
	{"an event trigger", "create function leakf() returns event_trigger language plpgsql as $$begin perform " + german + "; end$$; create event trigger leake on ddl_command_end when tag in ('COMMENT') execute function leakf()",
		"comment on table leak is 'x'", "drop event trigger leake; drop function leakf"},
	{"a view that is read", "create view leakv as select id, " + german + " from leak", "select * from leakv", "drop view leakv"},
	{"the view of the settings", "", "update pg_settings set setting = 'German' where name = 'DateStyle'", ""},
	{"a view of the view of the settings", "create view leakv as select * from pg_settings", "update leakv set setting = 'German' where name = 'DateStyle'", "drop view leakv"},
	{"a function", "create function leakf() returns text language plpgsql as $$begin return set_config('my.leak', 'x', false); end$$", "select leakf()", "drop function leakf"},
}

// ways are how a write may be sent.
var ways = []struct {
	name string
	send func(l *line, text string)
}{
	{"simple", func(l *line, text string) { l.must(text) }},
	{"extended", func(l *line, text string) { l.run(text) }},
	{"transaction", func(l *line, text string) {
		l.must("begin")
		l.run(text)
		l.must("commit")
	}},
	{"one text", func(l *line, text string) { l.must("begin; " + text + "; commit") }},
	{"EXECUTE", func(l *line, text string) {
		if !strings.HasPrefix(text, "comment") {
			l.must("prepare w as " + text)
			text = "execute w"
		}
		l.must(text)
	}},
}

// What a write changes in its session unseen is the session's own, and reaches
// neither the cache nor, by a link that changes hands, another session.
func TestHiddenByWrites(t *testing.T) {
	inPostgres(t, func(t *testing.T, r *rig) {
		admin := r.line(t, true) // what it makes counts at once
		admin.must("drop table if exists lk0, leak cascade; create table lk0 (id int primary key, name text, ts timestamp); insert into lk0 values (1, 'real', '2024-05-06 07:08:09'); create table leak (id int)")
		t.Cleanup(func() { r.line(t, false).must("drop table lk0, leak cascade") })
		clean := r.line(t, false).look()
		for i, w := range hidingWrites {
			for j, way := range ways {
				if i > 0 && (i+j)%3 != 0 {
					continue // each in some of the ways
				}
				admin.must("truncate leak; " + w.make)
				r.hides(t, w.name+", "+way.name, clean, func(l *line) { way.send(l, w.write) })
				if w.undo != "" {
					r.line(t, false).must(w.undo)
				}
				if t.Failed() {
					return
				}
			}
		}
	})
}

// COPY fires triggers too.
func TestHiddenByCopy(t *testing.T) {
	inPostgres(t, func(t *testing.T, r *rig) {
		w := byTrigger("", "perform "+german)
		admin := r.line(t, true)
		admin.must("drop table if exists lk0, leak cascade; create table lk0 (id int primary key, name text, ts timestamp); insert into lk0 values (1, 'real', '2024-05-06 07:08:09'); create table leak (id int)")
		t.Cleanup(func() { r.line(t, false).must("drop table lk0, leak cascade; " + w.undo) })
		clean := r.line(t, false).look()
		admin.must(w.make)
		r.hides(t, "COPY", clean, func(l *line) {
			if _, err := l.c.CopyFrom(context.Background(), strings.NewReader("1\n"), "copy leak from stdin"); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// hides runs something that hides a change, direct and through, and looks at
// that session and at others.
func (r *rig) hides(t *testing.T, what, clean string, do func(*line)) {
	t.Helper()
	own, hider := r.line(t, false), r.line(t, true)
	do(own)
	do(hider)
	if got, want := hider.look(), own.look(); got != want {
		t.Errorf("%s: the session itself: got\n%swant\n%s", what, got, want)
	}
	own.close()
	// While it is there, and when it is gone.
	for range 2 {
		for range 3 {
			other := r.line(t, true)
			for range 2 {
				if got := other.look(); got != clean {
					t.Errorf("%s: another session: got\n%swant\n%s", what, got, clean)
				}
			}
			other.close()
		}
		hider.close()
	}
}

// Code that was made behind Freshet's back is noticed before long, and what it
// left on links until then is taken off them.
func TestHiddenBehindTheBack(t *testing.T) {
	inPostgres(t, func(t *testing.T, r *rig) {
		direct := r.line(t, false)
		direct.must("drop table if exists lk0, leak cascade; create table lk0 (id int primary key, name text, ts timestamp); insert into lk0 values (1, 'real', '2024-05-06 07:08:09'); create table leak (id int)")
		t.Cleanup(func() { r.line(t, false).must("drop table lk0, leak cascade; drop function if exists leakf cascade") })
		clean := direct.look()
		for _, w := range []hidingWrite{hidingWrites[0], hidingWrites[15]} {
			writer := r.line(t, true)
			until(t, "a write that is trusted", func() (bool, string) {
				writer.must("insert into leak values (0)")
				return r.unasked("insert into leak values (0)"), "asked"
			})
			direct.must(w.make)
			l := r.line(t, true)
			l.must(w.write) // its session may not be known to have changed yet
			l.close()
			until(t, "a session that knows of its own change", func() (bool, string) {
				l := r.line(t, true)
				defer l.close()
				l.must(w.write)
				said := l.ask(looks[5])
				return strings.Contains(said, "German"), said
			})
			for range 6 {
				if got := r.line(t, true).look(); got != clean {
					t.Errorf("%s: got\n%swant\n%s", w.name, got, clean)
				}
			}
			direct.must(w.undo)
		}
	})
}

// unasked tells whether a link's last statement is the given one.
func (r *rig) unasked(text string) bool {
	var n int
	err := r.direct.QueryRow("select count(*) from pg_stat_activity where state = 'idle' and query = $1", text).Scan(&n)
	return err == nil && n > 0
}

// Ordinary code costs nothing: the session is not asked after its writes.
func TestOrdinaryTriggersAreFree(t *testing.T) {
	inPostgres(t, func(t *testing.T, r *rig) {
		admin := r.line(t, true)
		admin.must(`drop table if exists plain cascade; create table plain (id int, a text default 'x' check (length(a) < 9), updated_at timestamp);
			create or replace function plainf() returns trigger language plpgsql as $$begin new.updated_at := now(); return new; end$$;
			create trigger t before insert or update on plain for each row execute function plainf()`)
		t.Cleanup(func() { r.line(t, false).must("drop table plain; drop function plainf") })
		l := r.line(t, true)
		// The feed sees the new definitions in its own time. From then on, the
		// writes of two seconds, over several comparisons of the code.
		var since time.Time
		for i, deadline := 0, time.Now().Add(patience); since.IsZero() || time.Since(since) < 2*time.Second; i++ {
			text := fmt.Sprintf("insert into plain values (%d)", i)
			l.must(text)
			switch {
			case !r.unasked(text):
				since = time.Time{}
			case since.IsZero():
				since = time.Now()
			}
			if time.Now().After(deadline) {
				t.Fatal("the session is asked again and again")
			}
		}
	})
}
