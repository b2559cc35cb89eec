package postgres_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"freshet/proxy"
)

// setUp makes the tables of these tests and gives a direct client.
func setUp(t *testing.T, r *rig) *peer {
	t.Helper()
	admin := r.peer(t, false)
	if out := strings.Join(admin.ask(wireSetUp), "\n"); strings.Contains(out, "Error") {
		t.Fatal(out)
	}
	return admin
}

// untilHit repeats groups until the last answer was a hit.
func (p *peer) untilHit(what string, groups ...group) {
	p.t.Helper()
	last := ""
	await(p.t, "a hit of "+what, func() bool {
		p.play(script{groups: groups})
		last = p.value("explain last statement")
		return strings.HasPrefix(last, `Data ["cache`)
	})
}

func TestHits(t *testing.T) {
	r := newRig(t, proxy.Config{})
	setUp(t, r)
	unit := func(m ...pgproto3.FrontendMessage) []group { return []group{g(m...)} }
	for name, groups := range map[string][]group{
		"simple":               {g(q("select name from wire where id = 1"))},
		"unnamed":              unit(parse("", "select name from wire where id = $1"), bind("", "", "1"), descP(""), execute("", 0), sync),
		"unnamed, undescribed": unit(parse("", "select name from wire where id = $1"), bind("", "", "1"), execute("", 0), sync),
		"binary":               unit(parse("", "select id from wire where id = $1"), inBinary(bind("", "", "1"), 1), execute("", 0), sync),
		"described first":      {g(parse("", "select name from wire where id = $1"), descS(""), sync), g(bind("", "", "2"), execute("", 0), sync)},
		"described by flush":   {g(parse("", "select name from wire where id = $1"), descS(""), flush).take(3), g(bind("", "", "3"), execute("", 0), sync)},
		"named":                {g(closeS("n"), parse("n", "select name from wire where id = $1"), sync), g(bind("", "n", "1"), execute("", 0), sync)},
		"portal with a name":   unit(parse("", "select name from wire where id = $1"), bind("p", "", "1"), descP("p"), execute("p", 0), sync),
	} {
		t.Run(name, func(t *testing.T) {
			r.peer(t, true).untilHit(name, groups...)
		})
	}
}
