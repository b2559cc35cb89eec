package mysql

import (
	"reflect"
	"testing"
)

func TestSettings(t *testing.T) {
	var s settings
	a := s.with("time_zone", "+01:00").with("sql_mode", "").with("autocommit", "ON")
	b := s.with("autocommit", "ON").with("time_zone", "+02:00").with("sql_mode", "").with("time_zone", "+01:00")
	if !reflect.DeepEqual(a, b) {
		t.Errorf("the order of changes shows: %v, %v", a, b)
	}
	if v, ok := a.get("time_zone"); !ok || v != "+01:00" {
		t.Error(v, ok)
	}
	c := a.without("sql_mode")
	if _, ok := c.get("sql_mode"); ok || len(a) != 3 || len(c) != 2 {
		t.Errorf("%v became %v", a, c)
	}
	if &a.with("time_zone", "+01:00")[0] != &a[0] || &a.without("nosuch")[0] != &a[0] {
		t.Error("no change made a copy")
	}
}

func TestSettingsStatement(t *testing.T) {
	initial := map[string]string{"character_set_client": "utf8mb4", "character_set_connection": "utf8mb4", "character_set_results": "utf8mb4",
		"collation_connection": "utf8mb4_general_ci", resultsCollation: "45"}
	collations := map[string]collation{"45": {"utf8mb4", "utf8mb4_general_ci"}, "46": {"utf8mb4", "utf8mb4_bin"}}
	for want, s := range map[string]settings{
		"SET SESSION sql_mode = 'A''B', SESSION sql_select_limit = 5": settings(nil).with("sql_select_limit", "5").with("sql_mode", "A'B"),
		"SET NAMES 'utf8mb4' COLLATE 'utf8mb4_bin', SESSION character_set_client = 'utf8mb4', SESSION character_set_connection = 'utf8mb4', SESSION collation_connection = 'utf8mb4_general_ci', SESSION time_zone = 'UTC'": settings(nil).with(resultsCollation, "46").with("time_zone", "UTC"),
		"SET SESSION character_set_client = 'utf8mb4', SESSION character_set_connection = 'utf8mb4', SESSION character_set_results = NULL, SESSION collation_connection = 'utf8mb4_general_ci'":                             settings(nil).with(resultsCollation, "").with("character_set_results", ""),
	} {
		got, err := s.whole(initial).statement(collations)
		if err != nil || got != want {
			t.Errorf("%v:\n got %s (%v)\nwant %s", s, got, err, want)
		}
	}
	if _, err := settings(nil).with(resultsCollation, "999").whole(initial).statement(collations); err == nil {
		t.Error("a collation that does not exist")
	}
}

func TestCanReplay(t *testing.T) {
	for _, c := range []struct {
		setting
		want bool
	}{
		{setting{"time_zone", "+01:00"}, true}, {setting{"sql_mode", ""}, true}, {setting{"sql_select_limit", "5"}, true},
		{setting{"sql_select_limit", "5; DROP"}, false}, {setting{"sql_select_limit", ""}, false}, {setting{"time_zone", "a\\"}, false},
		{setting{"time_zone", "ü"}, false}, {setting{"sql_log_bin", "OFF"}, false}, {setting{"nosuch", "1"}, false},
	} {
		if c.canReplay() != c.want {
			t.Errorf("%s = %q: not %t", c.name, c.value, c.want)
		}
	}
}

func TestLinkKey(t *testing.T) {
	keys := map[string]linkKey{}
	for _, k := range []linkKey{
		{}, {caps: 1}, {collation: 1}, {database: "ab"}, {database: "a"}, {user: "ab"}, {user: "a"}, {user: "a", database: "b"},
		{settings: settings{{"a", "b"}}}, {settings: settings{{"ab", ""}}}, {database: "a", settings: settings{{"b", "c"}, {"d", "e"}}},
	} {
		s := k.String()
		if other, ok := keys[s]; ok {
			t.Errorf("%+v and %+v have one key", k, other)
		}
		keys[s] = k
		got, err := parseLinkKey(s)
		if err != nil || !reflect.DeepEqual(got, k) {
			t.Errorf("%+v became %+v (%v)", k, got, err)
		}
		for n := range s {
			if got, err := parseLinkKey(s[:n]); err == nil && reflect.DeepEqual(got, k) {
				t.Errorf("%+v: %d of %d bytes were taken for a whole", k, n, len(s))
			}
		}
	}
}

func TestPreparedSet(t *testing.T) {
	var p preparedSet
	one, two := &statement{id: 1, text: "a"}, &statement{id: 2, text: "a"}
	if p.get(one, nil, false) != nil {
		t.Fatal("found in an empty set")
	}
	p.put(one.name(), &prepared{id: 10})
	fresh := p.get(two, []byte{3, 0}, false)
	if fresh == nil || fresh.id != 10 {
		t.Fatal("an equal statement does not share")
	}
	fresh.typed, fresh.types = true, []byte{3, 0}
	if p.get(one, []byte{8, 0}, false) != nil {
		t.Error("executed with other types")
	}
	if p.get(one, []byte{3, 0}, true) != nil {
		t.Error("private, and shared all the same")
	}
	p.put(one.name(), &prepared{id: 11, owner: one})
	if got := p.get(one, nil, true); got == nil || got.id != 11 || p.get(two, nil, true) != nil {
		t.Error("a private twin is not its owner's alone")
	}
	if closed := p.put(one.name(), &prepared{id: 12}); len(closed) != 0 {
		t.Error("closed ", closed)
	}
	if closed := p.put(one.name(), &prepared{id: 13}); len(closed) != 1 || closed[0] != 12 {
		t.Error("an unused twin was kept beside its like: ", closed)
	}
	for i := range uint32(3 * maxPrepared) {
		s := &statement{text: "s" + string(rune('0'+i))}
		p.put(s.name(), &prepared{id: 100 + i})
	}
	if p.count != maxPrepared || !p.has(100+3*maxPrepared-1) || p.has(100) {
		t.Errorf("%d kept", p.count)
	}
}
