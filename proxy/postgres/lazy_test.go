package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"freshet/proxy"
)

// beginnings are the ways in which drivers open a transaction for a read.
var beginnings = map[string]struct {
	begin []group // "" stands for none: the BEGIN is a part of the read
	read  func(sql string) []group
	end   []group
}{
	"simple": {
		begin: []group{g(q("begin"))}, end: []group{g(q("COMMIT;"))},
		read: func(sql string) []group { return []group{g(q(sql))} },
	},
	"extended": {
		begin: []group{g(parse("", "START TRANSACTION READ ONLY"), bind("", ""), descP(""), execute("", 0), sync)},
		end:   []group{g(parse("", "rollback"), bind("", ""), descP(""), execute("", 0), sync)},
		read: func(sql string) []group {
			return []group{g(parse("", sql), bind("", ""), descP(""), execute("", 0), sync)}
		},
	},
	"in one batch": {
		end: []group{g(parse("", "COMMIT"), bind("", ""), execute("", 1), sync)},
		read: func(sql string) []group {
			return []group{g(parse("", "BEGIN"), bind("", ""), execute("", 1), parse("", sql), bind("", ""), descP(""), execute("", 0), sync)}
		},
	},
}

// A transaction that only reads what is kept takes no link: here another
// session has the only one.
func TestHeldBeginTakesNoLink(t *testing.T) {
	for name, way := range beginnings {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, proxy.Config{Loops: 1, MaxLinks: 1, LinkWait: 300 * time.Millisecond})
			setUp(t, r)
			const sql = "select name from wire where id = 1"
			direct, p := r.peer(t, false), r.peer(t, true)
			whole := script{groups: slices.Concat(way.begin, way.read(sql), way.end)}
			want := direct.play(whole)
			// Also the first read of a transaction fills the cache.
			await(t, "a hit", func() bool {
				before := script{groups: slices.Concat(way.begin, way.read(sql))}
				p.play(before)
				last := p.value("explain last statement")
				p.play(script{groups: way.end})
				return strings.HasPrefix(last, `Data ["cache`)
			})
			hog := r.peer(t, true)
			hog.ask("begin; create temp table hog (a int)")
			if got := p.play(whole); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got %q, want %q", got, want)
			}
			// A write needs the link, and there is none: the transaction is over.
			p.ask("begin")
			if got := strings.Join(p.ask("update wire set name = name"), " "); !strings.Contains(got, "FATAL 53300") {
				t.Error("without a link:", got)
			}
		})
	}
}

// The end of a transaction that had to go upstream to read makes no later read
// wait for the feed: a client that opens one for every read, and asks faster than
// the feed proves, would else never hit.
func TestEndOfReadingHoldsNothingUp(t *testing.T) {
	for name, way := range beginnings {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, proxy.Config{})
			setUp(t, r)
			const kept = "select name from wire where id = 1"
			p := r.peer(t, true)
			p.untilHit("the read", g(q(kept)))
			hits, rounds := 0, 20
			for i := range rounds {
				other := fmt.Sprintf("select name from wire where id = %d", 1000+i)
				p.play(script{groups: slices.Concat(way.begin, way.read(other), way.end)})
				p.ask(kept) // before any probe can have been answered, as a rule
				if strings.HasPrefix(p.value("explain last statement"), `Data ["cache`) {
					hits++
				}
			}
			if hits < rounds/2 {
				t.Errorf("only %d of %d reads were hits", hits, rounds)
			}
		})
	}
}

// What a transaction reads after BEGIN is what the server says, at every
// isolation level, after changes of others and its own.
func TestReadsInTransactions(t *testing.T) {
	r := newRig(t, proxy.Config{})
	admin := setUp(t, r)
	const read = "select name from wire where id = 1"
	cases := map[string][]string{
		"read committed":     {"begin"},
		"asked for":          {"begin isolation level read committed, read only"},
		"repeatable read":    {"begin isolation level repeatable read"},
		"serializable":       {"start transaction isolation level serializable"},
		"set later":          {"begin", "set transaction isolation level repeatable read"},
		"by default":         {"set default_transaction_isolation = 'repeatable read'", "begin"},
		"back by default":    {"set default_transaction_isolation = 'serializable'", "begin read write isolation level read committed"},
		"by characteristics": {"set session characteristics as transaction isolation level repeatable read", "begin"},
	}
	for name, opening := range cases {
		t.Run(name, func(t *testing.T) {
			admin.ask("update wire set name = 'one' where id = 1")
			through, direct := r.peer(t, true), r.peer(t, false)
			through.untilHit("the read", g(q(read)))
			both := func(sql string) {
				t.Helper()
				want, got := direct.ask(sql), through.ask(sql)
				if strings.Join(got, "\n") != strings.Join(want, "\n") {
					t.Errorf("%s: got %q, want %q", sql, got, want)
				}
			}
			for _, sql := range opening {
				both(sql)
			}
			both(read)
			admin.ask("update wire set name = 'other' where id = 1")
			bystander := r.peer(t, true)
			await(t, "the change", func() bool { return bystander.value(read) == `Data ["other"]` })
			both(read)
			both("savepoint a")
			both("select name from wire where id = 2")
			through.ask("update wire set name = 'mine' where id = 3")
			both("rollback to a")
			both("rollback")
			both(read)
		})
	}
	t.Run("its own writes", func(t *testing.T) {
		p := r.peer(t, true)
		p.untilHit("the read", g(q("select name from wire where id = 3")))
		p.ask("begin")
		before := p.value("select name from wire where id = 3")
		p.ask("update wire set name = 'written' where id = 3")
		if got := p.value("select name from wire where id = 3"); got != `Data ["written"]` {
			t.Error("got", got)
		}
		p.ask("rollback")
		if got := p.value("select name from wire where id = 3"); got != before {
			t.Errorf("after the rollback: got %s, want %s", got, before)
		}
	})
}

// A link that is lost takes the transaction with it.
func TestHeldBeginWithoutUpstream(t *testing.T) {
	r := rigOn(t, ownServer(t), proxy.Config{})
	p := r.peer(t, true)
	p.ask("begin")
	if err := r.server.Kill(); err != nil {
		t.Fatal(err)
	}
	p.send(&pgproto3.Query{String: "create table never (a int)"})
	if got := strings.Join(p.read(2, nil), " "); !strings.Contains(got, "FATAL 08") {
		t.Error("got", got)
	}
}

// A query from memory is a query: after it the server refuses to have the
// transaction changed, and a transaction that reads only stays so.
func TestCharacteristicsAfterHit(t *testing.T) {
	r := newRig(t, proxy.Config{})
	setUp(t, r)
	const read = "select name from wire where id = 1"
	p, direct := r.peer(t, true), r.peer(t, false)
	p.untilHit("the read", g(q(read)))
	for _, change := range []string{"set transaction read write", "set transaction isolation level serializable", "begin isolation level repeatable read",
		"set transaction deferrable", "set local transaction_isolation = 'serializable'", "select set_config('transaction_isolation', 'serializable', false)"} {
		for name, way := range beginnings {
			play := func(p *peer) (out []string) {
				out = p.play(script{groups: slices.Concat(way.begin, way.read(read))})
				out = append(out, p.ask(change)...)
				out = append(out, p.ask("insert into wire (id) values (999)")...)
				return append(out, p.ask("rollback")...)
			}
			if got, want := play(p), play(direct); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%s, %s:\n%s", name, change, difference(got, want))
			}
		}
	}
}

// A notification tells of a commit: what is read upon it is not older.
func TestReadUponNotification(t *testing.T) {
	r := newRig(t, proxy.Config{})
	admin := setUp(t, r)
	const read = "select name from wire where id = 1"
	p := r.peer(t, true)
	p.ask("listen news")
	for i := range 100 {
		p.untilHit("the read", g(q(read)))
		admin.ask(fmt.Sprintf("update wire set name = 'news %d' where id = 1; notify news", i))
		p.read(1, &pgproto3.NotificationResponse{})
		if got, want := p.value(read), fmt.Sprintf(`Data ["news %d"]`, i); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}
