package planner

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
	"freshet/cache"
	"freshet/cache/canon"
)

// recorded makes a planner on a recorded catalog.
func recorded(t testing.TB, corpus int) (*Planner, *fakeFollower, *replay) {
	t.Helper()
	d := dialects[corpus]
	raw, err := os.ReadFile(filepath.Join(corpusDir(d.name), "catalog.json"))
	if err != nil {
		t.Fatal(err)
	}
	r := &replay{rows: map[string][][]*string{}}
	if err := json.Unmarshal(raw, &r.rows); err != nil {
		t.Fatal(err)
	}
	f := newFakeFollower()
	return New(Config{Dialect: d.dialect, Version: d.version, Querier: r, Tracker: f}), f, r
}

func planned(t testing.TB, p *Planner, scope Scope, text string, declared []uint32) *Plan {
	t.Helper()
	st := p.Statement(p.Scope(scope), []byte(text), declared)
	if plan := st.Plan(); plan != nil {
		return plan
	}
	done := make(chan struct{})
	p.Make(st, func() { close(done) })
	<-done
	plan := st.Plan()
	if plan == nil {
		t.Fatalf("%s: no plan", text)
	}
	return plan
}

func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, seed))
}

// corpusStatements are all statements of a corpus, without their expectations.
func corpusStatements(t testing.TB, corpus int) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpusDir(dialects[corpus].name), "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	var out []string
	for _, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split(string(raw), "\n\n") {
			var lines []string
			for _, line := range strings.Split(block, "\n") {
				if line != "" && !strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "%") {
					lines = append(lines, line)
				}
			}
			if len(lines) > 0 {
				out = append(out, strings.Join(lines, "\n"))
			}
		}
	}
	return out
}

// TestTemplateIsTheParse binds every statement of the corpora to the template
// of a sibling that differs in literals, and holds the result to the plan that
// the statement gets by a parse of its own, in a planner that saw nothing else.
func TestTemplateIsTheParse(t *testing.T) {
	r := seeded(t)
	for corpus, d := range dialects {
		warm, _, _ := recorded(t, corpus)
		for _, text := range corpusStatements(t, corpus) {
			sibling := otherLiterals(r, text)
			planned(t, warm, d.scope, sibling, nil)
			got := planned(t, warm, d.scope, text, nil)
			cold, _, _ := recorded(t, corpus)
			want := planned(t, cold, d.scope, text, nil)
			a, b := *got, *want
			a.deps, b.deps, a.basis, b.basis = nil, nil, nil, nil
			if x, y := fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b); x != y {
				t.Errorf("%s\nafter %s\ngot  %s\nwant %s", text, sibling, x, y)
			}
		}
	}
}

// otherLiterals changes the digits of numbers that stand alone.
func otherLiterals(r *rand.Rand, text string) string {
	out := []byte(text)
	for i, c := range out {
		alone := i > 0 && (out[i-1] == ' ' || out[i-1] == '(') && (i+1 == len(out) || bytes.IndexByte([]byte(" ,)"), out[i+1]) >= 0)
		if c >= '2' && c <= '9' && alone {
			out[i] = '2' + byte(r.IntN(8))
		}
	}
	return string(out)
}

// TestTextAndPrepared holds the dependencies of a text query to those of the
// same query prepared, in every form its parameter can take.
func TestTextAndPrepared(t *testing.T) {
	u64 := func(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }
	be64 := func(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }
	be32 := func(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }
	for _, c := range []struct {
		corpus         int
		text, prepared string
		declared       []uint32
		param          Param
	}{
		{0, "SELECT * FROM users WHERE id = 5", "SELECT * FROM users WHERE id = ?", nil, Param{Binary: true, Type: 8, Data: u64(5)}},
		{0, "SELECT * FROM users WHERE id = 5", "SELECT * FROM users WHERE id = ?", nil, Param{Binary: true, Type: 0x8008, Data: u64(5)}},
		{0, "SELECT * FROM users WHERE id = 5", "SELECT * FROM users WHERE id = ?", nil, Param{Binary: true, Type: 0xfd, Data: []byte("5")}},
		{0, "SELECT * FROM users WHERE email = 'A@b'", "SELECT * FROM users WHERE email = ?", nil, Param{Binary: true, Type: 0xfe, Data: []byte("a@B  ")}},
		{0, "SELECT * FROM users WHERE balance = 1.190", "SELECT * FROM users WHERE balance = ?", nil, Param{Binary: true, Type: 0xf6, Data: []byte("1.19")}},
		{1, "SELECT * FROM users WHERE id = 5", "SELECT * FROM users WHERE id = $1", nil, Param{Data: []byte("5")}},
		{1, "SELECT * FROM users WHERE id = 5", "SELECT * FROM users WHERE id = $1", nil, Param{Binary: true, Data: be64(5)}},
		{1, "SELECT * FROM users WHERE id = 5", "SELECT * FROM users WHERE id = $1", []uint32{canon.OIDInt4}, Param{Binary: true, Type: canon.OIDInt4, Data: be32(5)}},
		{1, "SELECT * FROM users WHERE name = 'x'", "SELECT * FROM users WHERE name = $1", []uint32{canon.OIDVarchar}, Param{Type: canon.OIDVarchar, Data: []byte("x")}},
		{1, "SELECT * FROM users WHERE active = true AND id = 1", "SELECT * FROM users WHERE active = true AND id = $1", nil, Param{Data: []byte("1")}},
	} {
		p, _, _ := recorded(t, c.corpus)
		scope := dialects[c.corpus].scope
		text, prepared := planned(t, p, scope, c.text, nil), planned(t, p, scope, c.prepared, c.declared)
		if text.QueryID != prepared.QueryID {
			t.Errorf("%s, %s: two query ids, of %q and %q", c.text, c.prepared, text.Query, prepared.Query)
		}
		want, since, ok := text.Deps(nil, nil)
		got, since2, ok2 := prepared.Deps(nil, []Param{c.param})
		if !ok || !ok2 || since != since2 || len(want) != 2 || !slices.Equal(got, want) {
			t.Errorf("%s: deps %x, %v; prepared with %+v: %x, %v", c.text, want, ok, c.param, got, ok2)
		}
	}
}

// TestRangeParameters holds the blocks of a range in a text query to those of the
// same query prepared.
func TestRangeParameters(t *testing.T) {
	u64 := func(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }
	be64 := func(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }
	for _, c := range []struct {
		corpus         int
		text, prepared string
		params         []Param
		deps           int // the blocks, and one for each width; 0: not known
	}{
		{0, "SELECT * FROM orders WHERE id BETWEEN 10 AND 109", "SELECT * FROM orders WHERE id BETWEEN ? AND ?",
			[]Param{{Type: 8, Data: u64(10)}, {Type: 8, Data: u64(109)}}, 16},
		{0, "SELECT * FROM orders WHERE id BETWEEN '10' AND '109'", "SELECT * FROM orders WHERE id BETWEEN ? AND ?",
			[]Param{{Type: 0xfd, Data: []byte("10")}, {Type: 0xfd, Data: []byte("109")}}, 16},
		{0, "SELECT * FROM clocks WHERE since >= '2024-01-01' AND since < '2024-02-01 12:00:00'", "SELECT * FROM clocks WHERE since >= ? AND since < ?",
			[]Param{{Type: 0x0a, Data: []byte{0xe8, 7, 1, 1}}, {Type: 0x0c, Data: []byte{0xe8, 7, 2, 1, 12, 0, 0}}}, 10},
		{1, "SELECT * FROM orders WHERE id >= 10 AND 109 >= id", "SELECT * FROM orders WHERE id >= $1 AND $2 >= id",
			[]Param{{Data: []byte("10")}, {Data: []byte("109")}}, 0},
		{1, "SELECT * FROM orders WHERE id >= 10 AND id <= 109", "SELECT * FROM orders WHERE id >= $1 AND $2 >= id",
			[]Param{{Data: []byte("10")}, {Data: []byte("109")}}, 16},
		{1, "SELECT * FROM users WHERE id BETWEEN 0 AND 9223372036854775807", "SELECT * FROM users WHERE id BETWEEN $1 AND $2",
			[]Param{{Binary: true, Data: be64(0)}, {Binary: true, Data: be64(1<<63 - 1)}}, 9},
		{1, "SELECT * FROM users WHERE born BETWEEN '2024-01-01' AND '2024-01-03'", "SELECT * FROM users WHERE born BETWEEN $1 AND $2",
			[]Param{{Data: []byte("2024-01-01")}, {Data: []byte("2024-01-03")}}, 4},
	} {
		p, f, _ := recorded(t, c.corpus)
		scope := dialects[c.corpus].scope
		want, _, ok := planned(t, p, scope, c.text, nil).Deps(nil, nil)
		got, _, ok2 := planned(t, p, scope, c.prepared, nil).Deps(nil, c.params)
		if c.deps == 0 {
			want = got // a literal on the left stays in the tree
		}
		if !ok || !ok2 || !slices.Equal(got, want) || c.deps > 0 && len(want) != c.deps {
			t.Errorf("%s: %s; prepared %s", c.text, f.describe(want), f.describe(got))
		}
	}
}

// TestNoRange gives up ranges whose bounds prove nothing, or are the wrong way
// round.
func TestNoRange(t *testing.T) {
	p, f, _ := recorded(t, 1)
	plan := planned(t, p, dialects[1].scope, "SELECT id FROM orders WHERE user_id = $1 AND id BETWEEN $2 AND $3", nil)
	for _, c := range []struct {
		user, low, high Param
		want            string
	}{
		{Param{Data: []byte("1")}, Param{Data: []byte("2")}, Param{Data: []byte("3")}, "(user_id) range id level 0 reads id, user_id; 2 keys"},
		{Param{Data: []byte("1")}, Param{Data: []byte("3")}, Param{Data: []byte("2")}, "(user_id) reads id, user_id; 1 keys"},
		{Param{Data: []byte("1")}, Param{Null: true}, Param{Data: []byte("2")}, "(user_id) reads id, user_id; 1 keys"},
		{Param{Data: []byte("1")}, Param{Data: []byte("1e3")}, Param{Data: []byte("2")}, "(user_id) reads id, user_id; 1 keys"},
		{Param{Null: true}, Param{Data: []byte("2")}, Param{Data: []byte("3")}, "range id level 0 reads id, user_id; 2 keys"},
		{Param{Null: true}, Param{Null: true}, Param{Data: []byte("3")}, "reads id, user_id; 1 keys"},
	} {
		deps, _, ok := plan.Deps(nil, []Param{c.user, c.low, c.high})
		if got := f.describe(deps); !ok || got != "shape public.orders "+c.want {
			t.Errorf("%+v: %s, want %s", c, got, c.want)
		}
	}
}

// TestDepsDoNotAllocate asks for dependencies of every kind.
func TestDepsDoNotAllocate(t *testing.T) {
	p, _, _ := recorded(t, 1)
	number := Param{Data: []byte("12")}
	for text, params := range map[string][]Param{
		"SELECT id FROM users WHERE id = $1":                                                                 {number},
		"SELECT id FROM users WHERE id = ANY ($1)":                                                           {{Data: []byte(`{1,2,"3",NULL}`)}},
		"SELECT id FROM orders WHERE id BETWEEN $1 AND $2 AND user_id IN ($3, $4)":                           {number, {Data: []byte("500")}, number, {Data: []byte("7")}},
		"SELECT count(*) FROM orders o JOIN items i ON i.order_id = o.id WHERE o.id = $1 AND o.user_id = $2": {number, {Null: true}},
		"SELECT * FROM open_orders":                                                                          nil,
	} {
		plan := planned(t, p, dialects[1].scope, text, nil)
		deps, _, ok := plan.Deps(nil, params)
		if !ok || len(deps) == 0 {
			t.Errorf("%s: no dependencies", text)
		}
		if n := testing.AllocsPerRun(200, func() { deps, _, _ = plan.Deps(deps[:0], params) }); n > 0 && !underRace {
			t.Errorf("%s: %v allocations", text, n)
		}
	}
}

// TestUnprovenRuns holds runs whose parameter proves nothing to the whole table.
func TestUnprovenRuns(t *testing.T) {
	for _, c := range []struct {
		corpus   int
		prepared string
		declared []uint32
		params   []Param
	}{
		{0, "SELECT * FROM users WHERE id = ?", nil, []Param{{Null: true, Type: 8}}},
		{0, "SELECT * FROM users WHERE id = ?", nil, []Param{{Type: 5, Data: make([]byte, 8)}}},
		{0, "SELECT * FROM users WHERE email = ?", nil, []Param{{Type: 8, Data: make([]byte, 8)}}},
		{0, "SELECT * FROM users WHERE email = ?", nil, []Param{{Type: 0xfe, Data: []byte("ß")}}},
		{0, "SELECT * FROM users WHERE id IN (?, ?)", nil, []Param{{Type: 8, Data: make([]byte, 8)}, {Type: 0xfe, Data: []byte("5")}}},
		{1, "SELECT * FROM users WHERE id = $1", nil, []Param{{Null: true}}},
		{1, "SELECT * FROM users WHERE id = $1", []uint32{701}, []Param{{Binary: true, Type: 701, Data: make([]byte, 8)}}},
		{1, "SELECT * FROM users WHERE id = $1", []uint32{1700}, []Param{{Type: 1700, Data: []byte("5")}}},
		{1, "SELECT * FROM users WHERE id = $1", nil, []Param{{Binary: true, Data: make([]byte, 3)}}},
		{1, "SELECT * FROM users WHERE id = $1 AND $1 > 3", nil, []Param{{Data: []byte("5")}}},
	} {
		p, f, _ := recorded(t, c.corpus)
		plan := planned(t, p, dialects[c.corpus].scope, c.prepared, c.declared)
		deps, _, ok := plan.Deps(nil, c.params)
		if got := f.describe(deps); !ok || !strings.HasPrefix(got, "table ") || len(deps) != 1 {
			t.Errorf("%s with %+v: %s, %v; want the whole table", c.prepared, c.params, got, ok)
		}
	}
}

// TestTimeParameters refuses runs whose parameter may be read as the time.
func TestTimeParameters(t *testing.T) {
	p, _, _ := recorded(t, 1)
	scope := dialects[1].scope
	for _, c := range []struct {
		text  string
		param string
		want  bool
	}{
		{"SELECT * FROM users WHERE born = $1", "2024-01-01", true},
		{"SELECT * FROM users WHERE born = $1", "today", false},
		{"SELECT * FROM users WHERE at > $1", " Now ", false},
		{"SELECT * FROM users WHERE at > $1", "2024-01-01 12:00", true},
		{"SELECT * FROM users WHERE name = $1", "now", true},
		{"SELECT * FROM users WHERE name > $1", "know", true},
	} {
		_, _, ok := planned(t, p, scope, c.text, nil).Deps(nil, []Param{{Data: []byte(c.param)}})
		if ok != c.want {
			t.Errorf("%s with %q: ok = %v, want %v", c.text, c.param, ok, c.want)
		}
	}
}

// TestTimeOfDayParameters refuses runs that complete a time with today's date.
func TestTimeOfDayParameters(t *testing.T) {
	p, _, _ := recorded(t, 0)
	for _, sql := range []string{"SELECT COALESCE(?, since) FROM clocks", "SELECT DATE(?) FROM clocks"} {
		dated := planned(t, p, dialects[0].scope, sql, nil)
		if _, _, ok := dated.Deps(nil, []Param{{Binary: true, Type: 0x0b, Data: make([]byte, 8)}}); ok {
			t.Errorf("%s keeps what a time becomes today", sql)
		}
		if _, _, ok := dated.Deps(nil, []Param{{Binary: true, Type: 0xfd, Data: []byte("2024-01-01")}}); !ok {
			t.Errorf("%s keeps nothing", sql)
		}
	}
	plan := planned(t, p, dialects[0].scope, "SELECT * FROM clocks WHERE alarm > ?", nil)
	for typ, want := range map[uint32]bool{0xfd: true, 0x0b: true, 0x0c: false, 0x07: false, 0x0a: false} {
		data := []byte("10:00:00")
		if typ != 0xfd {
			data = make([]byte, 8)
		}
		if _, _, ok := plan.Deps(nil, []Param{{Binary: true, Type: typ, Data: data}}); ok != want {
			t.Errorf("type %#x: ok = %v, want %v", typ, ok, want)
		}
	}
}

// TestDefaultSearchPath asks real servers what search_path a role begins with.
func TestDefaultSearchPath(t *testing.T) {
	for _, kind := range []upstream.Kind{"postgres15", "postgres18"} {
		server := upstream.Own(t, kind)
		db := server.DB(t)
		k := newCatalog(Config{Dialect: Postgres, Querier: sqlQuerier{db}})
		for _, c := range []struct{ change, user, want string }{
			{"CREATE ROLE bob", "bob", "[pg_catalog bob public]"},
			{"ALTER DATABASE " + server.Database + ` SET search_path = app, "My Schema"`, "bob", "[pg_catalog app My Schema]"},
			{"ALTER ROLE bob SET search_path = pg_temp, bobs, pg_catalog", "bob", "[pg_temp bobs pg_catalog]"},
			{"ALTER ROLE bob IN DATABASE " + server.Database + " SET search_path = here", "bob", "[pg_catalog here]"},
			{"SELECT 1", "nobody", "[pg_catalog app My Schema]"},
		} {
			if _, err := db.Exec(c.change); err != nil {
				t.Fatal(err)
			}
			k.changed("", "")
			path, _, err := k.searchPath(t.Context(), Scope{Database: server.Database, User: c.user})
			if err != nil || fmt.Sprint(path) != c.want {
				t.Errorf("%s: after %s, %s has %v, %v; want %s", kind, c.change, c.user, path, err, c.want)
			}
		}
	}
}

// TestBoundKeys gives up on keys when an answer would have too many.
func TestBoundKeys(t *testing.T) {
	p, f, _ := recorded(t, 0)
	list := func(n int) string {
		out := make([]string, n)
		for i := range out {
			out[i] = strconv.Itoa(i)
		}
		return strings.Join(out, ",")
	}
	for _, c := range []struct {
		a, b, want int // keys
	}{{63, 1, 63}, {64, 1, 1}, {7, 9, 63}, {8, 8, 8}, {9, 8, 8}} {
		text := fmt.Sprintf("SELECT * FROM items WHERE order_id IN (%s) AND line IN (%s)", list(c.a), list(c.b))
		deps, _, ok := planned(t, p, dialects[0].scope, text, nil).Deps(nil, nil)
		if !ok || len(deps) != c.want+1 {
			t.Errorf("%d times %d: %d dependencies (%s), want %d keys", c.a, c.b, len(deps), f.describe(deps), c.want)
		}
	}
}

// TestSchemaChanged outdates the plans of a table, those that are not interned
// any more too, and no others.
func TestSchemaChanged(t *testing.T) {
	p, f, _ := recorded(t, 0)
	scope := p.Scope(dialects[0].scope)
	one := p.Statement(scope, []byte("SELECT * FROM users WHERE id = 1"), nil)
	two := p.Statement(scope, []byte("SELECT * FROM orders WHERE id = 1"), nil)
	view := p.Statement(scope, []byte("SELECT * FROM big_open"), nil)
	none := p.Statement(scope, []byte("SELECT * FROM missing"), nil)
	write := p.Statement(scope, []byte("INSERT INTO users (id) VALUES (1)"), nil)
	all := []*Statement{one, two, view, none, write}
	replan := func() {
		for _, st := range all {
			done := make(chan struct{})
			p.Make(st, func() { close(done) })
			<-done
		}
	}
	expect := func(step string, want ...bool) {
		t.Helper()
		for i, st := range all {
			if got := st.Plan() != nil; got != want[i] {
				t.Errorf("%s: %s has a plan: %v, want %v", step, st.Text, got, want[i])
			}
		}
	}
	replan()
	expect("planned", true, true, true, true, true)
	p.SchemaChanged("shop", "users")
	expect("users changed", false, true, true, true, true)
	replan()
	for _, table := range []string{"big_open", "open_orders"} {
		p.SchemaChanged("shop", table)
		expect("the view "+table+" changed", true, true, false, true, true)
		replan()
	}
	p.SchemaChanged("shop", "orders")
	expect("orders changed", true, false, false, true, true)
	replan()
	p.SchemaChanged("shop", "missing")
	expect("missing appeared", true, true, true, false, true)
	replan()
	p.SchemaChanged("shop", "")
	expect("shop changed", false, false, false, false, true)
	replan()
	p.SchemaChanged("", "")
	expect("everything changed", false, false, false, false, true)
	replan()
	setField[gone](f.tables["shop.users"], "gone").Store(true)
	expect("the feed lost users", false, true, true, true, true)
	if deps, _, ok := one.plan.Load().Deps(nil, nil); ok {
		t.Errorf("a plan of a table that is gone gave %x", deps)
	}
	replan()
	expect("planned again", true, true, true, true, true)
}

// TestSchemaChangedWhileLoading drops what is read from the catalog at the
// very moment that it changes.
func TestSchemaChangedWhileLoading(t *testing.T) {
	p, _, r := recorded(t, 0)
	asked := 0
	p.catalog.config.Querier = queryFunc(func(ctx context.Context, q string) ([][]*string, error) {
		rows, err := r.Query(ctx, q)
		if strings.Contains(q, "TABLE_TYPE") {
			if asked++; asked == 1 {
				p.SchemaChanged("shop", "users")
			}
		}
		return rows, err
	})
	plan := planned(t, p, dialects[0].scope, "SELECT * FROM users", nil)
	if !plan.Cacheable || asked != 2 {
		t.Errorf("the table was read %d times, want 2; %+v", asked, plan)
	}
}

type queryFunc func(context.Context, string) ([][]*string, error)

func (f queryFunc) Query(ctx context.Context, q string) ([][]*string, error) { return f(ctx, q) }

// TestCatalogFailure refuses for a while, then tries again.
func TestCatalogFailure(t *testing.T) {
	p, _, r := recorded(t, 0)
	failing := true
	p.catalog.config.Querier = queryFunc(func(ctx context.Context, q string) ([][]*string, error) {
		if failing {
			return nil, fmt.Errorf("connection refused")
		}
		return r.Query(ctx, q)
	})
	st := p.Statement(p.Scope(dialects[0].scope), []byte("SELECT * FROM users"), nil)
	plan := p.settle(t.Context(), st)
	if plan.Cacheable || !strings.Contains(plan.Reason, "connection refused") || plan.basis.until.IsZero() {
		t.Fatalf("%+v", plan)
	}
	failing = false
	plan.basis.until = time.Now().Add(-time.Second)
	st.plan.Store(plan)
	if st.Plan() != nil {
		t.Fatal("a plan that failed for a passing reason stays")
	}
	if plan := planned(t, p, dialects[0].scope, st.Text, nil); !plan.Cacheable {
		t.Fatalf("%+v", plan)
	}
}

// TestFeedOff plans without a tracker: nothing to depend on.
func TestFeedOff(t *testing.T) {
	d := dialects[0]
	_, _, r := recorded(t, 0)
	p := New(Config{Dialect: d.dialect, Version: d.version, Querier: r})
	plan := planned(t, p, d.scope, "SELECT * FROM users WHERE id = 1", nil)
	if _, _, ok := plan.Deps([]cache.Dep{}, nil); ok || !plan.Cacheable {
		t.Errorf("ok = %v, %+v", ok, plan)
	}
}
