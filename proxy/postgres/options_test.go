package postgres_test

import (
	"testing"

	"freshet/proxy"
)

// Freshet's options end like PostgreSQL's own, but for ROLLBACK.
func TestOptionsAreTakenBack(t *testing.T) {
	r := newRig(t, proxy.Config{})
	p := r.peer(t, true)
	for _, turn := range []struct{ text, want string }{
		{"set freshet.cache = off; ", "off"},
		{"reset freshet.cache", "on"},
		{"set freshet.cache = off", "off"},
		{"reset all", "on"},
		{"set freshet.cache = off", "off"},
		{"discard all", "on"},
		{"set local freshet.cache = off", "on"}, // there is no transaction
		{"begin", "on"},
		{"set local freshet.cache = off", "off"},
		{"commit", "on"},
		{"begin", "on"},
		{"create temp table options_t (a int)", "on"},
		{"set local freshet.cache = off", "off"},
		{"rollback", "on"},
		{"set session freshet.cache = off", "off"},
		{"set freshet.cache to default", "on"},
	} {
		if got := p.ask(turn.text); len(got) < 2 || got[0][:8] != "Complete" {
			t.Errorf("%s: %q", turn.text, got)
		}
		if got := p.value("show freshet.cache"); got != `Data ["`+turn.want+`"]` {
			t.Errorf("after %s: got %s, want %s", turn.text, got, turn.want)
		}
	}
}
