package postgres_test

import (
	"strings"
	"testing"

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
