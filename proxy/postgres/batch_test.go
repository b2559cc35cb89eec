package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"freshet/bench/seed"
	"freshet/bench/upstream"
	"freshet/proxy"
)

// onBoth runs one body on the oldest and the newest PostgreSQL there is.
func onBoth(t *testing.T, body func(t *testing.T, r *rig)) {
	t.Helper()
	for _, kind := range []upstream.Kind{upstream.Postgres15, upstream.Postgres18} {
		t.Run(string(kind), func(t *testing.T) {
			body(t, rigOn(t, upstream.Need(t, kind), proxy.Config{Loops: 1, MaxLinks: 4}))
		})
	}
}

// run is a Parse, Bind and Execute of a text.
func run(text string) []pgproto3.FrontendMessage {
	return []pgproto3.FrontendMessage{parse("", text), bind("", ""), execute("", 0)}
}

// pipeline puts messages and runs of messages one behind the other.
func pipeline(parts ...any) (out []pgproto3.FrontendMessage) {
	for _, p := range parts {
		switch p := p.(type) {
		case pgproto3.FrontendMessage:
			out = append(out, p)
		case []pgproto3.FrontendMessage:
			out = append(out, p...)
		}
	}
	return out
}

// lostTransaction is what PostgreSQL 18 says after a simple query in the middle
// of a batch, to the statement after the Sync; what the batch did is then lost.
const lostTransaction = "StartTransactionCommand: unexpected state"

// playPipeline sends everything at once, and behind it what gets any server
// back to where it takes a query, and one that fails wherever it stands: its
// answer is the last.
func playPipeline(p *peer, n int, messages []pgproto3.FrontendMessage) []string {
	p.t.Helper()
	last := fmt.Sprintf("fin%d", n)
	messages = append(slices.Clone(messages), &pgproto3.CopyFail{Message: "over"}, sync, q(last))
	if p.trySend(messages...) != nil {
		return []string{"cut"}
	}
	var got []string
	for {
		more := p.read(1, &pgproto3.ReadyForQuery{})
		got = append(got, more...)
		if s := more[len(more)-1]; s == "EOF" || strings.HasPrefix(s, "error: ") {
			return append(got[:len(got)-1], "cut")
		}
		if said := strings.Join(more, "\n"); strings.Contains(said, last) {
			return got
		} else if strings.Contains(said, lostTransaction) && p.trySend(q(last)) != nil {
			return append(got, "cut")
		}
	}
}

// What the server skips to a Sync must not run, whatever is sent behind.
func TestSkippedStatementsDoNotRun(t *testing.T) {
	failing := run("select 1/0")
	cases := []struct {
		name     string
		messages []pgproto3.FrontendMessage
	}{
		{"prepare by text", pipeline(failing, q("select 1"), parse("x", "prepare pq as select 1"), run("insert into skipped values (1)"), sync)},
		{"deallocate by query", pipeline(failing, q("select 1"), q("deallocate zz"), q("insert into skipped values (2)"), sync)},
		{"deallocate by run", pipeline(parse("", "select * from nosuch"), q("select 1"), run("deallocate b"), run("insert into skipped values (3)"), sync)},
		{"execute by query", pipeline(failing, q("select 1"), q("execute b"), q("insert into skipped values (4)"), sync)},
		{"a prepared statement", pipeline(failing, q("select 1"), bind("", "b"), execute("", 0), q("insert into skipped values (5)"), sync)},
		{"a function call", pipeline(failing, &pgproto3.FunctionCall{Function: 1598}, q("deallocate b"), q("insert into skipped values (6)"), sync)},
		{"many queries", pipeline(failing, q("select 1"), q("select 2"), q("prepare pq as select 1"), q("select 3"), q("insert into skipped values (7)"), sync)},
		{"a query that is reached", pipeline(run("select 1"), q("select 1"), q("deallocate b"), q("insert into skipped values (8)"), sync)},
		{"a copy that swallows the sync", pipeline(run("copy skipped from stdin"), sync, copyData("9\n"), copyDone, run("select 1/0"), q("insert into skipped values (10)"), sync)},
		{"a copy and SQL's own names", pipeline(run("copy skipped from stdin"), sync, q("deallocate b"), q("insert into skipped values (11)"), sync)},
		{"a copy that fails", pipeline(run("copy skipped from stdin"), sync, copyData("x\n"), copyDone, q("deallocate b"), q("insert into skipped values (12)"), sync)},
	}
	onBoth(t, func(t *testing.T, r *rig) {
		admin := r.peer(t, false)
		admin.ask("drop table if exists skipped; create table skipped (id int)")
		for i, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				var want []string
				for _, through := range []bool{false, true} {
					admin.ask("truncate skipped")
					p := r.peer(t, through)
					p.send(parse("b", "select 1"), sync)
					p.read(1, &pgproto3.ReadyForQuery{})
					said := append(playPipeline(p, i, c.messages), admin.ask("select id from skipped order by id")...)
					if !through {
						want = said
					} else if !strings.Contains(strings.Join(want, "\n"), lostTransaction) && !slices.Equal(said, want) {
						t.Error(difference(said, want))
					}
				}
			})
		}
	})
}

// A COPY swallows the Sync sent before it was known to be one. Until the next,
// the server is in the middle of a batch, and what it ran is not committed.
func TestCopyKeepsItsBatchOpen(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		admin := r.peer(t, false)
		admin.ask("drop table if exists copied; create table copied (id int)")
		for _, through := range []bool{false, true} {
			p, other := r.peer(t, through), r.peer(t, through)
			p.send(parse("", "copy copied from stdin"), bind("", ""), execute("", 0), sync)
			p.read(3, nil)
			p.send(copyData("1\n"), copyDone, flush)
			if got := p.read(1, nil); got[0] != "Complete COPY 1" {
				t.Fatal(got)
			}
			for range 5 { // were the link given back, these would be in its transaction
				other.ask("select 1")
				if got := other.value("select count(*) from copied"); got != `Data ["0"]` {
					t.Fatalf("through %v: rows of a batch without its Sync: %s", through, got)
				}
			}
			p.send(run("select 1/0")...)
			p.send(sync)
			p.read(1, &pgproto3.ReadyForQuery{})
			if got := admin.value("select count(*) from copied"); got != `Data ["0"]` {
				t.Fatalf("through %v: rows of a batch that failed: %s", through, got)
			}
		}
	})
}

// TestRandomPipelines sends random messages of every kind in one go, direct and
// through, and compares every answer and the rows that were written.
// FRESHET_SEED plays one seed again.
func TestRandomPipelines(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		admin := r.peer(t, false)
		for _, seed := range seeds(t, 60) {
			want := playPipelines(t, r, admin, seed, false)
			got := playPipelines(t, r, admin, seed, true)
			for i := range want {
				if incomparable(r, strings.Join(want[i], "\n")) {
					break
				}
				if i >= len(got) || !slices.Equal(got[i], want[i]) {
					t.Fatalf("FRESHET_SEED=%d, pipeline %d\n%s\nbefore: %s", seed, i, difference(got[i], want[i]), sentBefore(want[:i+1]))
				}
			}
		}
	})
}

// incomparable tells whether what a server said leaves nothing to compare with:
// a message in the middle of a COPY made it end the connection; it described a
// statement in a failed transaction, see describesAborted; or it is PostgreSQL
// 18 and may have lost a transaction.
func incomparable(r *rig, said string) bool {
	return strings.Contains(said, "\ncut\n") || strings.Contains(said, "NoData") && strings.Contains(said, "Ready E") ||
		strings.Contains(said, lostTransaction) || r.server.Kind == upstream.Postgres18 && strings.Contains(said, "Ready T")
}

// seeds are FRESHET_SEED, or as many new ones as FRESHET_ROUNDS says, or the
// first n: the same for every run, so that a change to the code is what a
// failure speaks of.
func seeds(t *testing.T, n int) (out []uint64) {
	t.Helper()
	if os.Getenv("FRESHET_SEED") != "" {
		return []uint64{seed.Of(t, "FRESHET_SEED", 0)}
	}
	start := uint64(1)
	if m, err := strconv.Atoi(os.Getenv("FRESHET_ROUNDS")); err == nil {
		n, start = m, uint64(time.Now().UnixNano())/1000
	}
	for i := range uint64(n) {
		out = append(out, start+i)
	}
	return out
}

func sentBefore(said [][]string) string {
	var b strings.Builder
	for _, s := range said {
		b.WriteString("\n  " + s[0])
	}
	return b.String()
}

// playPipelines plays one seed with one client.
func playPipelines(t *testing.T, r *rig, admin *peer, seed uint64, through bool) (said [][]string) {
	t.Helper()
	now := ""
	defer func() {
		if t.Failed() {
			t.Logf("FRESHET_SEED=%d through %v: %s\nbefore:%s", seed, through, now, sentBefore(said))
		}
	}()
	admin.ask("drop table if exists piped; create table piped (id int, v text)")
	m := &piper{rng: rand.New(rand.NewPCG(seed, 2))}
	p := r.peer(t, through)
	for i := range 8 {
		messages := m.messages()
		turn := []string{sent(messages)}
		now = turn[0]
		turn = append(turn, playPipeline(p, i, messages)...)
		for j := range turn {
			if strings.HasPrefix(turn[j], "Error ERROR 25P02") {
				turn[j] = turn[j][:strings.LastIndex(turn[j], " at ")] // see TestRandomSessions
			}
		}
		over := turn[len(turn)-1] == "cut"
		if over {
			// What the server has read before it closed is chance.
			turn = append(turn[:1], "cut")
		}
		turn = append(turn, admin.ask("select id, v from piped order by id, v")...)
		said = append(said, turn)
		if over {
			break
		}
		p.ask("rollback")
	}
	p.line.Close()
	return said
}

// piper makes random pipelines.
type piper struct {
	rng  *rand.Rand
	next int // of the rows
}

func (m *piper) pick(s ...string) string { return s[m.rng.IntN(len(s))] }

func (m *piper) text() string {
	m.next++
	row := strconv.Itoa(m.next)
	switch m.rng.IntN(12) {
	case 0, 1:
		return "insert into piped values (" + row + ", 'x')"
	case 2:
		return "insert into piped values (" + row + ", 'y') returning id"
	case 3:
		return m.pick("select 1/0", "selec", "select nothing from piped", "select * from nosuch", "insert into piped values (1/0)")
	case 4:
		return m.pick("prepare pa as select count(*) from piped", "prepare s1 as select 5", "deallocate s1", "deallocate pa", "deallocate all", "execute pa", "execute s1", "discard all")
	case 5:
		return m.pick("begin", "commit", "rollback", "savepoint a", "rollback to a", "begin; insert into piped values ("+row+", 'b')", "commit; select 1")
	case 6:
		return m.pick("set my.x = 'one'", "show my.x", "set datestyle = 'German'", "reset datestyle", "select '2024-02-03'::date", "")
	case 7:
		return m.pick("copy piped from stdin", "copy (select 1) to stdout", "insert into piped values ("+row+", 'c'); select 1/0", "insert into piped values ("+row+", 'd'); select 1")
	default:
		return m.pick("select 1", "select id from piped order by id limit 2", "select count(*) from piped", "select v from piped where id = 1")
	}
}

func (m *piper) messages() (out []pgproto3.FrontendMessage) {
	for range 2 + m.rng.IntN(14) {
		name, portal := m.pick("", "s1", "s2"), m.pick("", "", "p1")
		switch m.rng.IntN(16) {
		case 0, 1, 2, 3:
			out = append(out, q(m.text()))
		case 4, 5, 6, 7:
			out = append(out, parse(name, m.text()), bind(portal, name), execute(portal, uint32(m.rng.IntN(8)/7)))
		case 8:
			out = append(out, parse(name, m.text()))
		case 9:
			out = append(out, bind(portal, name), descP(portal), execute(portal, 0))
		case 10:
			out = append(out, descS(name))
		case 11:
			out = append(out, closeS(name))
		case 12:
			out = append(out, m.copied()...)
		case 13:
			out = append(out, flush)
		default:
			out = append(out, sync)
		}
	}
	return out
}

// copied is a COPY with its data, as a query or as a run with its Sync sent
// ahead or not.
func (m *piper) copied() []pgproto3.FrontendMessage {
	m.next++
	out := pipeline(q("copy piped from stdin"))
	if m.rng.IntN(2) == 0 {
		out = run("copy piped from stdin")
		if m.rng.IntN(2) == 0 {
			out = append(out, sync)
		}
	}
	switch m.rng.IntN(4) {
	case 0:
		return append(out, copyData("no row\n"), copyDone)
	case 1:
		return append(out, copyData(strconv.Itoa(m.next)+"\te\n"), &pgproto3.CopyFail{Message: "no"})
	}
	return append(out, copyData(strconv.Itoa(m.next)+"\te\n"), copyDone)
}
