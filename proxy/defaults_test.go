package proxy

import "testing"

// What moves by itself must not cost the links for ever, and what answers depend
// on must never be overlooked.
func TestDefaultsCompare(t *testing.T) {
	d := defaults{decisive: func(name string) bool { return decisive[name] }}
	look := func(pairs ...string) (differ, answers bool) {
		now := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			now[pairs[i]] = pairs[i+1]
		}
		return d.compare(now)
	}
	steps := []struct {
		now             []string
		differ, answers bool
	}{
		{[]string{"sql_mode", "a", "wait_timeout", "1", "gtid_executed", "x"}, false, false},
		{[]string{"sql_mode", "a", "wait_timeout", "1", "gtid_executed", "y"}, false, false},
		{[]string{"sql_mode", "a", "wait_timeout", "2", "gtid_executed", "z"}, true, false},
		{[]string{"sql_mode", "b", "wait_timeout", "2", "gtid_executed", "z"}, true, true},
		{[]string{"sql_mode", "b", "wait_timeout", "2", "gtid_executed", "z"}, false, false},
		{[]string{"sql_mode", "b", "wait_timeout", "2"}, false, false},
		{[]string{"sql_mode", "b"}, true, false},
		{[]string{"wait_timeout", "2"}, true, true},
	}
	for i, s := range steps {
		if differ, answers := look(s.now...); differ != s.differ || answers != s.answers {
			t.Errorf("look %d: differ %v, answers %v, want %v, %v", i, differ, answers, s.differ, s.answers)
		}
	}
	for range 3 * maxDefaultChanges {
		look("clock", "1")
		look("clock", "2")
	}
	if differ, _ := look("clock", "1"); differ {
		t.Error("what moves by itself still counts")
	}
	if differ, answers := look("clock", "1", "max_allowed_packet", "5"); !differ || !answers {
		t.Error("max_allowed_packet does not count")
	}
}
