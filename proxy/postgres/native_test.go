package postgres_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"freshet/proxy"
)

// Statements that no longer parse must not cost the client a transaction in
// which it speaks of others by name.
func TestDeadStatementsInTransaction(t *testing.T) {
	r := newRig(t, proxy.Config{})
	for name, c := range map[string]struct{ kill, speak string }{
		"dropped table, deallocate": {"drop table dead", "deallocate s4"},
		"dropped table, prepare":    {"drop table dead", "prepare pp as select 1"},
		"dropped table, execute":    {"drop table dead", "execute s4"},
		"dropped column":            {"alter table dead drop column n", "deallocate s4"},
	} {
		t.Run(name, func(t *testing.T) {
			play := func(through bool) (all []string) {
				admin, p := r.peer(t, false), r.peer(t, through)
				admin.ask("drop table if exists dead, alive; create table dead (n int); create table alive (n int)")
				p.play(script{groups: []group{g(parse("s3", "select n from dead where n = $1"), sync), g(parse("s4", "select 4"), sync),
					g(bind("", "s3", "1"), execute("", 0), sync), g(bind("", "s4"), execute("", 0), sync)}})
				admin.ask(c.kill)
				for _, text := range []string{"begin", "insert into alive values (1)", c.speak, "select 1", "commit", "select count(*) from alive"} {
					all = append(all, text+": "+strings.Join(p.ask(text), " "))
				}
				return all
			}
			direct, through := play(false), play(true)
			if d, th := strings.Join(direct, "\n"), strings.Join(through, "\n"); d != th {
				t.Errorf("direct:\n%s\nthrough:\n%s", d, th)
			}
		})
	}
}

// A column that was added and dropped again leaves a prepared statement as it
// was, also on a link that parsed it in between.
func TestColumnsComeBack(t *testing.T) {
	r := newRig(t, proxy.Config{Loops: 1, MaxLinks: 2})
	admin, p, hog := r.peer(t, false), r.peer(t, true), r.peer(t, true)
	admin.ask("drop table if exists back; create table back (id int primary key, n text); insert into back values (1, 'a')")
	run := func() string {
		p.send(bind("", "s", "1"), execute("", 0), sync)
		return strings.Join(p.read(1, &pgproto3.ReadyForQuery{}), " ")
	}
	p.play(script{groups: []group{g(parse("s", "select * from back where id = $1"), descS("s"), sync)}})
	want := run()
	if !strings.Contains(want, `"a"`) {
		t.Fatal(want)
	}
	admin.ask("alter table back add column ex int default 3")
	hog.ask("begin")
	hog.ask("select pg_backend_pid()") // has the link on which the statement was parsed first
	await(t, "the server's refusal", func() bool { return strings.Contains(run(), "0A000") })
	admin.ask("alter table back drop column ex")
	await(t, "the answer again", func() bool { return run() == want })
	hog.ask("rollback")
}

// What Freshet sends for itself when a link is to be given back must not keep
// it from answering what is its own to answer.
func TestConsoleWhileLinkIsTidied(t *testing.T) {
	r := newRig(t, proxy.Config{})
	p := r.peer(t, true)
	p.send(parse("x", "select 1"), sync)
	p.read(1, &pgproto3.ReadyForQuery{})
	for i := range 300 {
		p.send(parse("x", "select 2"), sync) // the name is in use: the link gets a statement of nobody else's
		if got := strings.Join(p.read(1, &pgproto3.ReadyForQuery{}), " "); !strings.Contains(got, "42P05") {
			t.Fatal(got)
		}
		if got := p.value("explain last statement"); strings.HasPrefix(got, "Error") {
			t.Fatalf("in round %d: %s", i, got)
		}
	}
}
