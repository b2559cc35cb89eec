package postgres

import (
	"testing"

	pg "freshet/protocol/postgres"
)

type encoder interface{ Append([]byte) []byte }

func wire(messages ...encoder) (b []byte) {
	for _, m := range messages {
		b = m.Append(b)
	}
	return b
}

func text(s string) []byte { return []byte(s) }

func TestMatch(t *testing.T) {
	parse := &pg.Parse{Name: text("s"), Text: text("select $1"), OIDs: []uint32{23}}
	bind := &pg.Bind{Portal: text("p"), Statement: text("s"), Params: [][]byte{text("1")}}
	describeP := &pg.Describe{Target: pg.TargetPortal, Name: text("p")}
	describeS := &pg.Describe{Target: pg.TargetStatement, Name: text("s")}
	execute := &pg.Execute{Portal: text("p")}
	for _, tc := range []struct {
		name string
		in   []byte
		want shape
	}{
		{"whole", wire(parse, bind, describeP, execute, pg.Sync), shapeRun},
		{"without describe", wire(parse, bind, execute, pg.Sync), shapeRun},
		{"prepared", wire(bind, execute, pg.Sync), shapeRun},
		{"look", wire(parse, describeS, pg.Sync), shapeLook},
		{"look with flush", wire(parse, describeS, pg.Flush), shapeLook},
		{"parse alone", wire(parse, pg.Sync), shapeLook},
		{"describe alone", wire(describeS, pg.Sync), shapeLook},
		{"row limit", wire(bind, &pg.Execute{Portal: text("p"), MaxRows: 1}, pg.Sync), shapeOther},
		{"another portal", wire(bind, &pg.Execute{}, pg.Sync), shapeNone},
		{"another portal described", wire(bind, &pg.Describe{Target: 'P'}, execute, pg.Sync), shapeNone},
		{"another statement bound", wire(parse, &pg.Bind{}, execute, pg.Sync), shapeNone},
		{"another statement described", wire(parse, &pg.Describe{Target: 'S'}, pg.Sync), shapeNone},
		{"a portal described alone", wire(describeP, pg.Sync), shapeNone},
		{"no sync", wire(bind, execute, pg.Flush), shapeOther},
		{"two executes", wire(bind, execute, execute, pg.Sync), shapeOther},
		{"query in between", wire(bind, &pg.Query{Text: text("x")}), shapeNone},
		{"malformed bind", append(pg.Bodyless('B').Append(nil), pg.Sync.Append(nil)...), shapeNone},
		{"a length that lies", []byte("B\xff\xff\xff\xff"), shapeNone},
		{"longer than is waited for", []byte("B\x00\x20\x00\x00"), shapeNone},
	} {
		var u found
		if got := u.match(tc.in); got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.name, got, tc.want)
		} else if (got == shapeRun || got == shapeLook) && u.size != len(tc.in) {
			t.Errorf("%s: size %d of %d", tc.name, u.size, len(tc.in))
		}
	}
	whole := wire(parse, bind, describeP, execute, pg.Sync)
	var u found
	for n := 1; n < len(whole); n++ {
		if got := u.match(whole[:n]); got != shapeMore {
			t.Errorf("the first %d of %d bytes: %d, want more", n, len(whole), got)
		}
	}
	if u.match(append(whole, "Qmore"...)) != shapeRun || u.size != len(whole) || !u.hasParse || !u.describe {
		t.Errorf("followed by more: %+v", u)
	}
	if n := testing.AllocsPerRun(100, func() { u.match(whole) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzMatch(f *testing.F) {
	f.Add(wire(&pg.Parse{}, &pg.Bind{}, &pg.Describe{Target: 'P'}, &pg.Execute{}, pg.Sync))
	f.Add(wire(&pg.Parse{}, &pg.Describe{Target: 'S'}, pg.Flush))
	f.Fuzz(func(t *testing.T, in []byte) {
		var u found
		if got := u.match(in); (got == shapeRun || got == shapeLook) && u.size > len(in) {
			t.Errorf("size %d of %d", u.size, len(in))
		}
	})
}

func TestWordsThatMatter(t *testing.T) {
	for _, tc := range []struct {
		text            string
		speaks, forgets bool
		sequences       bool
		console         consoleWord
	}{
		{text: "select 1"},
		{text: "PREPARE a as select 1", speaks: true},
		{text: " /* x */ execute a(1)", speaks: true},
		{text: "deallocate a", speaks: true},
		{text: "deallocate prepare a", speaks: true},
		{text: "DEALLOCATE ALL", forgets: true},
		{text: "deallocate prepare all;", forgets: true},
		{text: "discard all", forgets: true},
		{text: "discard temp"},
		{text: "select 1; discard all", forgets: true},
		{text: "explain analyze execute a", speaks: true},
		{text: "create table t as execute a", speaks: true},
		{text: "begin; execute a", speaks: true},
		{text: "select union all select 1"},
		{text: "select currval('s')", sequences: true},
		{text: "select LASTVAL()", sequences: true},
		{text: "show caches", console: consoleRows},
		{text: "SHOW CACHES LIKE 'x'", console: consoleRows},
		{text: "create cache x from select 1", console: consoleTag},
		{text: "create cached"},
		{text: "set freshet.cache = off", console: consoleTag},
		{text: "show freshet status", console: consoleRows},
		{text: "drop all caches", console: consoleTag},
		{text: ""},
	} {
		b := text(tc.text)
		if speaksOfPrepared(b) != tc.speaks || forgetsPrepared(b) != tc.forgets || mentionsSequences(b) != tc.sequences || consoleKind(b) != tc.console {
			t.Errorf("%q: speaks %v, forgets %v, sequences %v, console %v", tc.text,
				speaksOfPrepared(b), forgetsPrepared(b), mentionsSequences(b), consoleKind(b))
		}
	}
}

func TestDottedNames(t *testing.T) {
	var got []string
	dottedNames(text("set my.a = 1.5; select set_config('b.c.d', x.y) from s . t, 1.x"), func(n []byte) { got = append(got, string(n)) })
	want := []string{"my.a", "b.c.d", "x.y"}
	if len(got) != len(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestPoolKey(t *testing.T) {
	m := func(o ...pg.Option) *pg.StartupMessage { return &pg.StartupMessage{Options: o} }
	a := poolKey(m(pg.Option{Name: "user", Value: "u"}, pg.Option{Name: "TimeZone", Value: "UTC"}, pg.Option{Name: "database", Value: "d"}, pg.Option{Name: "a", Value: "1"}), "")
	b := poolKey(m(pg.Option{Name: "a", Value: "1"}, pg.Option{Name: "user", Value: "other"}, pg.Option{Name: "database", Value: "d"}, pg.Option{Name: "TimeZone", Value: "UTC"}, pg.Option{Name: "_pq_.x", Value: "y"}), "")
	if a != b {
		t.Errorf("%q and %q", a, b)
	}
	database, parameters := splitKey(a)
	if database != "d" || len(parameters) != 2 || parameters["TimeZone"] != "UTC" || parameters["a"] != "1" {
		t.Errorf("split %q into %q and %v", a, database, parameters)
	}
	if d, _ := splitKey(poolKey(m(pg.Option{Name: "user", Value: "u"}), "")); d != "u" {
		t.Errorf("database %q: want the user's name", d)
	}
}

func TestLiteral(t *testing.T) {
	for in, want := range map[string]string{"a": "'a'", "a'b": "'a''b'", `a\'`: ` E'a\\'''`} {
		if got := literal(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}
