package postgres_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"freshet/proxy"
)

// A script is what one client sends, group by group; after each group it waits
// for the answers. The right answers are those of the server itself: each
// script runs on a direct connection and then, several times, through Freshet,
// cold and warm, and every message must be the same.
type script struct {
	name   string
	groups []group
}

type group struct {
	messages []pgproto3.FrontendMessage
	readies  int // ReadyForQuery to wait for
	count    int // or, if above 0, messages
}

func g(messages ...pgproto3.FrontendMessage) group {
	n := 0
	for _, m := range messages {
		switch m.(type) {
		case *pgproto3.Query, *pgproto3.Sync, *pgproto3.FunctionCall:
			n++
		}
	}
	return group{messages: messages, readies: n}
}

// ready sets how often the server says that it is ready.
func (g group) ready(n int) group { g.readies = n; return g }

// take waits for n messages.
func (g group) take(n int) group { g.count = n; return g }

func q(text string) *pgproto3.Query { return &pgproto3.Query{String: text} }
func parse(name, text string, oids ...uint32) *pgproto3.Parse {
	return &pgproto3.Parse{Name: name, Query: text, ParameterOIDs: oids}
}
func bind(portal, name string, params ...string) *pgproto3.Bind {
	b := &pgproto3.Bind{DestinationPortal: portal, PreparedStatement: name}
	for _, p := range params {
		b.Parameters = append(b.Parameters, []byte(p))
	}
	return b
}
func inBinary(b *pgproto3.Bind, formats ...int16) *pgproto3.Bind {
	b.ResultFormatCodes = formats
	return b
}
func descS(name string) *pgproto3.Describe { return &pgproto3.Describe{ObjectType: 'S', Name: name} }
func descP(name string) *pgproto3.Describe { return &pgproto3.Describe{ObjectType: 'P', Name: name} }
func execute(portal string, rows uint32) *pgproto3.Execute {
	return &pgproto3.Execute{Portal: portal, MaxRows: rows}
}
func closeS(name string) *pgproto3.Close   { return &pgproto3.Close{ObjectType: 'S', Name: name} }
func closeP(name string) *pgproto3.Close   { return &pgproto3.Close{ObjectType: 'P', Name: name} }
func copyData(s string) *pgproto3.CopyData { return &pgproto3.CopyData{Data: []byte(s)} }

var (
	sync     = &pgproto3.Sync{}
	flush    = &pgproto3.Flush{}
	copyDone = &pgproto3.CopyDone{}
)

var scripts = []script{
	{name: "simple", groups: []group{g(q("select * from wire order by id")), g(q("select 1 as a; select 2 as b")), g(q("")), g(q("select nothing")), g(q("selec"))}},
	{name: "simple pipelined", groups: []group{g(q("select id from wire where id = 1"), q("select 1/0"), q("select id from wire where id = 2"))}},
	{name: "unnamed", groups: []group{
		g(parse("", "select id, name from wire where id = $1"), bind("", "", "1"), descP(""), execute("", 0), sync),
		g(bind("", "", "2"), execute("", 0), sync),
		g(bind("", "", "x"), execute("", 0), sync),
		g(bind("", "", "2"), execute("", 0), sync)}},
	{name: "named", groups: []group{
		g(parse("s", "select id, name from wire where id = $1", 23), descS("s"), sync),
		g(inBinary(bind("", "s", "1"), 1), execute("", 0), sync),
		g(inBinary(bind("", "s", "1"), 1, 0), descP(""), execute("", 0), sync),
		g(inBinary(bind("", "s", "3"), 1, 0), descP(""), execute("", 0), sync),
		g(descS("s"), sync),
		g(closeS("s"), sync),
		g(bind("", "s", "1"), execute("", 0), sync)}},
	{name: "describe and flush", groups: []group{
		g(parse("s", "select name from wire where id = $1"), descS("s"), flush).take(3),
		g(bind("", "s", "2"), execute("", 0), flush).take(3),
		g(sync),
		g(parse("", "select name from wire where id = $1"), descS(""), flush).take(3),
		g(bind("", "", "2"), execute("", 0), sync)}},
	{name: "pipeline of many syncs", groups: []group{g(
		parse("", "select id from wire where id = $1"), bind("", "", "1"), execute("", 0), sync,
		parse("", "select 1/$1::int"), bind("", "", "0"), execute("", 0), sync,
		parse("", "select id from wire where id = $1"), bind("", "", "2"), execute("", 0), sync)}},
	{name: "error in the middle", groups: []group{g(
		parse("a", "select 1"), bind("", "a"), execute("", 0),
		parse("b", "select nonsense"), bind("", "b"), execute("", 0), sync,
		bind("", "a"), execute("", 0), sync, bind("", "b"), sync, closeS("a"), sync)}},
	{name: "a query while skipping", groups: []group{
		g(parse("", "selec"), q("select 1"), sync).ready(1), g(q("select 2"))}},
	{name: "name in use", groups: []group{
		g(parse("dup", "select 1"), sync), g(parse("dup", "select 2"), bind("", "dup"), execute("", 0), sync),
		g(bind("", "dup"), execute("", 0), sync), g(parse("dup", "selec"), sync), g(closeS("dup"), sync), g(parse("dup", "select 3"), bind("", "dup"), execute("", 0), sync)}},
	{name: "failed parse leaves nothing", groups: []group{
		g(parse("f", "selec"), sync), g(parse("f", "select 1"), bind("", "f"), execute("", 0), sync), g(parse("", "selec"), sync), g(bind("", ""), sync)}},
	{name: "unnamed is gone after a simple query", groups: []group{
		g(parse("", "select 1"), sync), g(q("select 2")), g(bind("", ""), execute("", 0), sync)}},
	{name: "close", groups: []group{
		g(parse("c", "select 1"), bind("p", "c"), closeP("p"), execute("p", 0), sync),
		g(closeS("nothing"), closeP("nothing"), sync),
		g(closeS("c"), bind("", "c"), sync)}},
	{name: "rows in parts", groups: []group{
		g(parse("", "select generate_series(1, 5)"), bind("p", ""), execute("p", 2), execute("p", 2), execute("p", 2), sync),
		g(q("begin")), g(parse("", "select generate_series(1, 5)"), bind("p", ""), execute("p", 2), sync),
		g(execute("p", 2), sync), g(q("select 7")), g(execute("p", 0), sync), g(q("commit")), g(execute("p", 1), sync)}},
	{name: "transaction", groups: []group{
		g(q("begin")), g(q("select name from wire where id = 1")), g(q("update wire set name = 'changed' where id = 1")),
		g(q("select name from wire where id = 1")), g(parse("", "select name from wire where id = $1"), bind("", "", "1"), execute("", 0), sync),
		g(q("rollback")), g(q("select name from wire where id = 1"))}},
	{name: "failed transaction", groups: []group{
		g(q("begin")), g(q("select 1/0")), g(q("select 1")), g(parse("", "select 1"), sync), g(parse("", "rollback"), bind("", ""), execute("", 0), sync), g(q("select 1"))}},
	{name: "begin in one text with more", groups: []group{
		g(q("begin; select name from wire where id = 1")), g(q("select name from wire where id = 1")), g(q("commit; select 1"))}},
	{name: "settings", groups: []group{
		g(q("set datestyle = 'SQL, DMY'")), g(q("select '2024-02-03'::date, name from wire where id = 1")), g(q("show datestyle")),
		g(q("begin; set local datestyle = 'German'; select '2024-02-03'::date")), g(q("rollback")), g(q("select '2024-02-03'::date")),
		g(q("begin; set datestyle = 'German'")), g(q("rollback")), g(q("show datestyle")), g(q("reset datestyle")), g(q("show datestyle")),
		g(q("select set_config('datestyle', 'SQL', false)")), g(q("select '2024-02-03'::date")), g(q("reset all")), g(q("show datestyle"))}},
	{name: "custom settings", groups: []group{
		g(q("set my.tenant = 'a'")), g(q("select current_setting('my.tenant')")), g(q("select id from wire where id = 1")), g(q("select current_setting('my.tenant')")),
		g(parse("", "select set_config($1, $2, false)"), bind("", "", "my.other", "b"), execute("", 0), sync), g(q("select id from wire where id = 1")), g(q("select current_setting('my.other')"))}},
	{name: "search path", groups: []group{
		g(q("select name from wire where id = 1")), g(q("set search_path = other, public")), g(q("select name from wire where id = 1")),
		g(parse("n", "select name from wire where id = 1"), bind("", "n"), execute("", 0), sync),
		g(q("set search_path = public")), g(bind("", "n"), execute("", 0), sync), g(q("select name from wire where id = 1"))}},
	{name: "temporary table hides another", groups: []group{
		g(q("select name from wire where id = 1")), g(q("create temp table wire (id int, name text)")), g(q("select name from wire where id = 1")),
		g(q("insert into wire values (1, 'temporary')")), g(q("select name from wire where id = 1")),
		g(parse("", "select name from wire where id = $1"), bind("", "", "1"), execute("", 0), sync), g(q("drop table wire")), g(q("select name from wire where id = 1"))}},
	{name: "prepare by text", groups: []group{
		g(q("prepare x (int) as select name from wire where id = $1")), g(q("execute x(1)")), g(q("select name from wire where id = 2")), g(q("execute x(2)")),
		g(bind("", "x", "1"), execute("", 0), sync), g(q("deallocate x")), g(q("execute x(1)")), g(bind("", "x", "1"), sync)}},
	{name: "protocol statements by text", groups: []group{
		g(parse("y", "select name from wire where id = 2"), sync), g(q("execute y")), g(q("deallocate y")), g(bind("", "y"), execute("", 0), sync), g(q("execute y"))}},
	{name: "deallocate all in a pipeline", groups: []group{
		g(parse("z", "select 1"), parse("", "deallocate all"), bind("", ""), execute("", 0), parse("z", "select 2"), bind("", "z"), execute("", 0), sync),
		g(bind("", "z"), execute("", 0), sync)}},
	{name: "discard all", groups: []group{
		g(parse("z", "select 1"), sync), g(q("set datestyle = 'German'")), g(q("discard all")), g(bind("", "z"), execute("", 0), sync), g(q("show datestyle"))}},
	{name: "copy out", groups: []group{g(q("copy (select * from wire order by id) to stdout")),
		g(parse("", "copy (select 1) to stdout"), bind("", ""), execute("", 0), sync)}},
	{name: "copy in", groups: []group{
		g(q("begin")), g(q("copy wire from stdin"), copyData("100\tcopied\n"), copyData("101\t\\N\n"), copyDone),
		g(q("select * from wire where id >= 100 order by id")),
		g(q("copy wire from stdin"), &pgproto3.CopyFail{Message: "changed my mind"}), g(q("rollback")),
		g(q("copy wire from stdin"), copyData("bad\n"), copyDone), g(q("select count(*) from wire")),
		g(parse("", "copy wire from stdin"), bind("", ""), execute("", 0), sync, copyData("102\tx\n"), &pgproto3.CopyFail{Message: "no"}, sync).ready(1),
		g(q("select count(*) from wire"))}},
	{name: "notices", groups: []group{g(q("do $$ begin raise notice 'hello %', 1; raise warning 'watch'; end $$")), g(q("select noisy(1)")), g(q("select noisy(1)")), g(q("drop table if exists not_there"))}},
	{name: "listen and notify", groups: []group{
		g(q("listen ch")), g(q("notify ch, 'one'")), g(q("select id from wire where id = 1")), g(q("notify ch, 'two'")), g(q("unlisten *")), g(q("notify ch, 'three'"))}},
	{name: "function call", groups: []group{g(&pgproto3.FunctionCall{Function: 1598}), g(&pgproto3.FunctionCall{Function: 4}),
		g(&pgproto3.FunctionCall{Function: 1317 /* length */, ArgFormatCodes: []uint16{0}, Arguments: [][]byte{[]byte("abc")}})}},
	{name: "writes and reads", groups: []group{
		g(q("insert into scratch values (1, 'a')")), g(q("select v from scratch where id = 1")), g(q("update scratch set v = 'b' where id = 1")),
		g(q("select v from scratch where id = 1")), g(parse("", "select v from scratch where id = $1"), bind("", "", "1"), execute("", 0), sync),
		g(parse("", "update scratch set v = $1 where id = 1 returning v"), bind("", "", "c"), descP(""), execute("", 0), sync),
		g(parse("", "select v from scratch where id = $1"), bind("", "", "1"), execute("", 0), sync), g(q("delete from scratch")), g(q("select v from scratch where id = 1"))}},
	{name: "batch sees its own writes", groups: []group{g(
		parse("", "insert into scratch values (2, 'x')"), bind("", ""), execute("", 0), parse("", "select v from scratch where id = 2"), bind("", ""), execute("", 0), sync,
		parse("", "delete from scratch"), bind("", ""), execute("", 0), sync, parse("", "select v from scratch where id = 2"), bind("", ""), execute("", 0), sync)}},
	{name: "sequences", groups: []group{g(q("select setval('seq', 41)")), g(q("select nextval('seq')")), g(q("select id from wire where id = 1")), g(q("select currval('seq'), lastval()"))}},
	{name: "cursors", groups: []group{
		g(q("declare c cursor with hold for select id from wire order by id")), g(q("fetch 1 from c")), g(q("select id from wire where id = 1")), g(q("fetch 1 from c")), g(closeP("c"), sync), g(q("fetch 1 from c")),
		g(q("begin")), g(q("declare d cursor for select id from wire order by id")), g(q("fetch 2 from d")), g(q("commit")), g(q("fetch 1 from d"))}},
	{name: "advisory lock", groups: []group{g(q("select pg_advisory_lock(77)")), g(q("select id from wire where id = 1")), g(q("select pg_advisory_unlock(77)")), g(q("select pg_advisory_unlock(77)"))}},
	{name: "role", groups: []group{g(q("set role reader")), g(q("select current_user")), g(q("select name from wire where id = 1")), g(q("select * from secret")), g(q("reset role")), g(q("select * from secret"))}},
	{name: "wrong number of parameters", groups: []group{
		g(parse("", "select id from wire where id = $1"), bind("", ""), execute("", 0), sync), g(parse("", "select id from wire where id = $1"), bind("", "", "1", "2"), execute("", 0), sync),
		g(parse("", "select id from wire where id = $1"), &pgproto3.Bind{ParameterFormatCodes: []int16{7}, Parameters: [][]byte{[]byte("1")}}, execute("", 0), sync)}},
	{name: "changed columns", groups: []group{
		g(q("create table shifting (a int)")), g(parse("sh", "select * from shifting"), descS("sh"), sync), g(bind("", "sh"), execute("", 0), sync),
		g(q("alter table shifting add b int default 5")), g(bind("", "sh"), execute("", 0), sync), g(parse("", "select * from shifting"), bind("", ""), descP(""), execute("", 0), sync),
		g(closeS("sh"), parse("sh", "select * from shifting"), descS("sh"), sync), g(bind("", "sh"), execute("", 0), sync), g(q("drop table shifting")), g(bind("", "sh"), execute("", 0), sync)}},
	{name: "a large row and a large parameter", groups: []group{
		g(q("select repeat('x', 300000)")), g(parse("", "select length($1::text)"), bind("", "", strings.Repeat("y", 3<<20)), execute("", 0), sync),
		g(q("select length('" + strings.Repeat("z", 2<<20) + "')"))}},
	{name: "sync alone", groups: []group{g(sync), g(sync, sync), {messages: []pgproto3.FrontendMessage{flush}}, g(q("select 1"))}},
}

const wireSetUp = `
drop schema if exists other cascade; drop table if exists wire, scratch, secret; drop function if exists noisy; drop sequence if exists seq;
create table wire (id int primary key, name text); insert into wire values (1, 'one'), (2, 'two'), (3, null);
create schema other; create table other.wire (id int primary key, name text); insert into other.wire values (1, 'other one');
create table scratch (id int primary key, v text); create sequence seq; create table secret (a int);
create function noisy(int) returns int language plpgsql stable as $$ begin raise notice 'noise %', $1; return $1; end $$;
do $$ begin create role reader; exception when duplicate_object then null; end $$; grant select on wire to reader;`

func (p *peer) play(s script) []string {
	p.t.Helper()
	var all []string
	for i, g := range s.groups {
		p.send(g.messages...)
		if g.count > 0 {
			all = append(all, p.read(g.count, nil)...)
		} else {
			all = append(all, p.read(g.readies, &pgproto3.ReadyForQuery{})...)
		}
		all = append(all, "-- "+string(rune('a'+i)))
	}
	return all
}

func TestWire(t *testing.T) {
	r := newRig(t, proxy.Config{})
	admin := r.peer(t, false)
	if out := admin.ask(wireSetUp); strings.Contains(strings.Join(out, "\n"), "Error") {
		t.Fatal(out)
	}
	for _, s := range scripts {
		t.Run(s.name, func(t *testing.T) {
			want := r.peer(t, false).play(s)
			for round := range 3 {
				got := r.peer(t, true).play(s)
				if !slices.Equal(got, want) {
					t.Fatalf("round %d\n%s", round, difference(got, want))
				}
			}
		})
	}
}

// difference shows both sides around the first line that differs.
func difference(got, want []string) string {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	cut := func(s []string) string {
		from, to := max(0, i-4), min(len(s), i+6)
		out := strings.Join(s[min(from, len(s)):to], "\n  ")
		if len(out) > 3000 {
			out = out[:3000]
		}
		return out
	}
	return "through Freshet:\n  " + cut(got) + "\ndirect:\n  " + cut(want)
}
