package planner

import (
	"slices"
	"testing"
)

func TestChangesSession(t *testing.T) {
	in := func(body string) string { return "begin " + body + "; return new; end" }
	for _, tc := range []struct {
		source string
		want   bool
	}{
		{in("new.updated_at := now()"), false},
		{in("update t set a = 1 where id = new.id; insert into log select new.*"), false},
		{in("-- set it\n new.a = 1"), false},
		{in("/* reset; /* set x = 1; */ */ new.a = 1"), false},
		{in("raise notice 'please set_config(x); reset all'"), false},
		{in("if new.a then insert into t values (1) on conflict do nothing; end if"), false},
		{in("perform pg_notify('a', 'b'); perform nextval('s')"), false},
		{in("perform pg_advisory_xact_lock(1)"), false},
		{in("set local work_mem = '1MB'; set constraints all deferred"), false},
		{"declare temp int; " + in("temp := 1"), false},
		{in("perform set_config('DateStyle', 'German', false)"), true},
		{in("perform pg_catalog . set_config ('DateStyle', 'German', false)"), true},
		{in(`perform "set_config"('DateStyle', 'German', false)`), true},
		{in("SET datestyle = 'German'"), true},
		{in("if true then /* x */ set datestyle = 'German'; end if"), true},
		{in("<<here>> set datestyle = 'German'"), true},
		{in("-- it's\n set datestyle = 'German'"), true},
		{in("new.a = 'a--b'; set datestyle = 'German'"), true},
		{in(`new.a = E'it\'s'; set datestyle = 'German'; new.b = 'x'`), true},
		{in(`new.a = 'it\'; set datestyle = 'German'; new.b = 'x'`), true},
		{in("set local my.x = '1'"), true},
		{in("reset all"), true},
		{in("execute 'sel' || 'ect 1'"), true},
		{in("return query execute q"), true},
		{in("create temp table x as select 1"), true},
		{in("create or replace temporary view x as select 1"), true},
		{in("create table pg_temp.x (a int)"), true},
		{in("select 1 into temp x"), true},
		{in("listen c"), true},
		{in("perform pg_advisory_lock(1)"), true},
		{in("perform pg_try_advisory_lock_shared(1)"), true},
		{in("prepare p as select 1"), true},
		{in("deallocate all"), true},
		{in("update pg_settings set setting = 'German'"), true},
		{in("do $x$ begin end $x$"), true},
		{in("load 'x'"), true},
		{in(`perform U&"set\005fconfig"('a', 'b', false)`), true},
		{"begin 'no end", true},
	} {
		if got := changesSession(tc.source, false); got != tc.want {
			t.Errorf("%v for %s", got, tc.source)
		}
	}
	if !changesSession("declare c cursor with hold for select 1", true) || changesSession("declare c cursor for select 1; begin end", false) {
		t.Error("DECLARE is a statement in SQL alone")
	}
}

func TestSettingsIn(t *testing.T) {
	for _, tc := range []struct {
		source string
		names  []string
		all    bool
	}{
		{"perform set_config('my.x', 'y', false)", []string{"my.x"}, true},
		{"execute 'select set_config(''my.x'', ''y'', false)'", []string{"my.x"}, true},
		{"set my.x = 'y'; set local a.b to 'c'; execute 'set session d.e = 1'", []string{"my.x", "a.b", "d.e"}, true},
		{"perform set_config('DateStyle', 'German', false); update t set a = 1", nil, true},
		{"perform set_config('my.' || k, v, false)", nil, false},
		{"perform set_config(k, v, false)", nil, false},
		{"raise notice 'set_config'", nil, true},
	} {
		if names, all := settingsIn(tc.source); !slices.Equal(names, tc.names) || all != tc.all {
			t.Errorf("%v %v for %s", names, all, tc.source)
		}
	}
}
