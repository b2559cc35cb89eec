package planner

import (
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"freshet/bench/upstream"
	"freshet/cache"
	"freshet/cache/feed"
)

var update = flag.Bool("update", false, "rewrite the corpora's expectations and the recorded catalogs (needs MariaDB and PostgreSQL 15)")

func TestMain(m *testing.M) { os.Exit(upstream.Main(m)) }

// fakeFollower follows everything at once, and remembers what it gave.
type fakeFollower struct {
	mu     sync.Mutex
	tables map[string]*feed.Table
	shapes map[string]*feed.Shape
	of     map[*feed.Table][]fakeShape
	names  map[cache.Dep]string
}

// fakeShape is a shape with what it was registered for.
type fakeShape struct {
	shape *feed.Shape
	spec  feed.ShapeSpec
}

func newFakeFollower() *fakeFollower {
	return &fakeFollower{tables: map[string]*feed.Table{}, shapes: map[string]*feed.Shape{}, of: map[*feed.Table][]fakeShape{}, names: map[cache.Dep]string{}}
}

// setField reaches a field that only a running feed sets.
func setField[T any](of any, name string) *T {
	f := reflect.ValueOf(of).Elem().FieldByName(name)
	return (*T)(unsafe.Pointer(f.UnsafeAddr()))
}

func (f *fakeFollower) Follow(spec feed.TableSpec) (*feed.Table, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := spec.Schema + "." + spec.Name
	if t := f.tables[name]; t != nil && !t.Gone() {
		return t, nil
	}
	t := &feed.Table{ID: cache.TableID(len(f.names) + 1), Spec: spec}
	setField[atomic.Uint64](t, "since").Store(7)
	f.tables[name] = t
	f.names[cache.DepOfTable(t.ID)] = "table " + name
	return t, nil
}

func (f *fakeFollower) ShapeOf(t *feed.Table, spec feed.ShapeSpec) *feed.Shape {
	f.mu.Lock()
	defer f.mu.Unlock()
	columns := func(list []int) string {
		if list == nil {
			return "all"
		}
		var out []string
		for _, i := range list {
			out = append(out, t.Spec.Columns[i].Name)
		}
		return strings.Join(out, ", ")
	}
	name := "shape " + t.Spec.Schema + "." + t.Spec.Name
	if len(spec.Equal) > 0 {
		name += " (" + columns(spec.Equal) + ")"
	}
	if spec.Range >= 0 {
		name += fmt.Sprintf(" range %s level %d", columns([]int{spec.Range}), spec.Level)
	}
	name += strings.TrimSuffix(" reads "+columns(spec.Reads), " ")
	key := fmt.Sprint(t.ID, name)
	if s := f.shapes[key]; s != nil {
		return s
	}
	s := &feed.Shape{ID: cache.ShapeID(len(f.shapes) + 1)}
	setField[atomic.Uint64](s, "since").Store(9)
	f.shapes[key] = s
	f.of[t] = append(f.of[t], fakeShape{s, spec})
	f.names[cache.DepOfShape(s.ID)] = name
	return s
}

// describe puts dependencies in words.
func (f *fakeFollower) describe(deps []cache.Dep) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	keys := 0
	for _, d := range deps {
		if name, ok := f.names[d]; ok {
			out = append(out, name)
		} else {
			keys++
		}
	}
	slices.Sort(out)
	if keys > 0 {
		out = append(out, fmt.Sprintf("%d keys", keys))
	}
	return strings.Join(out, "; ")
}

// replay answers catalog queries from a recording, or records them.
type replay struct {
	mu    sync.Mutex
	live  Querier
	rows  map[string][][]*string
	asked []string
}

func (r *replay) Query(ctx context.Context, q string) ([][]*string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, q)
	if rows, ok := r.rows[q]; ok && r.live == nil {
		return rows, nil
	}
	if r.live == nil {
		return nil, fmt.Errorf("not recorded: %s", q)
	}
	rows, err := r.live.Query(ctx, q)
	if err == nil {
		r.rows[q] = rows
	}
	return rows, err
}

// sqlQuerier asks a real server.
type sqlQuerier struct{ db *sql.DB }

func (s sqlQuerier) Query(ctx context.Context, q string) (out [][]*string, err error) {
	rows, err := s.db.QueryContext(ctx, q)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := rows.Close(); err == nil {
			err = e
		}
	}()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		cells := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		row := make([]*string, len(columns))
		for i := range cells {
			if cells[i].Valid {
				row[i] = &cells[i].String
			}
		}
		out = append(out, row)
	}
	return out, rows.Err()
}

// dialects are the two corpora.
var dialects = []struct {
	name    string
	dialect Dialect
	version string
	record  upstream.Kind
	scope   Scope
}{
	{"mysql", MariaDB, "10.11.6-MariaDB", "mariadb", Scope{Database: "shop", User: "freshet", Charset: "utf8mb4"}},
	{"postgres", Postgres, "15.5", "postgres15", Scope{User: "freshet", Charset: "UTF8"}},
}

func corpusDir(name string) string { return filepath.Join("..", "testdata", "sql", name) }

// TestCorpus holds every statement of the corpora to what is written under it,
// with catalogs recorded from real servers.
func TestCorpus(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			recording := filepath.Join(corpusDir(d.name), "catalog.json")
			r := &replay{rows: map[string][][]*string{}}
			if *update {
				db, _ := withSchema(t, d.record, d.name)
				r.live = sqlQuerier{db}
			} else {
				raw, err := os.ReadFile(recording)
				if err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(raw, &r.rows); err != nil {
					t.Fatal(err)
				}
			}
			runCorpus(t, d.name, Config{Dialect: d.dialect, Version: d.version, Querier: r}, d.scope, *update)
			if *update {
				writeRecording(t, recording, r.rows)
			}
		})
	}
}

// TestCorpusLive asks the four servers instead of the recordings.
func TestCorpusLive(t *testing.T) {
	for _, c := range []struct {
		kind    upstream.Kind
		corpus  int
		dialect Dialect
	}{{"mariadb", 0, MariaDB}, {"mysql", 0, MySQL}, {"postgres15", 1, Postgres}, {"postgres18", 1, Postgres}} {
		t.Run(string(c.kind), func(t *testing.T) {
			d := dialects[c.corpus]
			db, version := withSchema(t, c.kind, d.name)
			runCorpus(t, d.name, Config{Dialect: c.dialect, Version: version, Querier: sqlQuerier{db}}, d.scope, false)
		})
	}
}

func writeRecording(t *testing.T, path string, rows map[string][][]*string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("{")
	for i, q := range slices.Sorted(maps.Keys(rows)) {
		key, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		value, err := json.Marshal(rows[q])
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "\n%s:\n%s", key, value)
	}
	b.WriteString("\n}\n")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// withSchema gives a real server's database with the corpus's tables.
func withSchema(t *testing.T, kind upstream.Kind, name string) (db *sql.DB, version string) {
	t.Helper()
	server := upstream.Own(t, kind)
	db = server.DB(t)
	raw, err := os.ReadFile(filepath.Join(corpusDir(name), "schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range strings.Split(strings.TrimSpace(string(raw)), ";\n") {
		if _, err := db.Exec(strings.TrimSuffix(statement, ";")); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return db, server.Version
}

// runCorpus plans every statement of every file.
func runCorpus(t *testing.T, name string, c Config, scope Scope, rewrite bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpusDir(name), "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	follower := newFakeFollower()
	c.Tracker = follower
	p := New(c)
	for _, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		current := scope
		for i, block := range strings.Split(strings.TrimRight(string(raw), "\n"), "\n\n") {
			if i > 0 {
				out.WriteString("\n\n")
			}
			out.WriteString(runBlock(t, p, follower, &current, scope, block))
		}
		out.WriteString("\n")
		switch {
		case rewrite:
			if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		case out.String() != string(raw):
			t.Errorf("%s:\n%s", path, firstDifference(string(raw), out.String()))
		}
	}
}

// runBlock runs one block: comments, settings of the scope, a statement; its
// expectation is indented by a tab.
func runBlock(t *testing.T, p *Planner, f *fakeFollower, scope *Scope, initial Scope, block string) string {
	t.Helper()
	var kept, statement []string
	for _, line := range strings.Split(block, "\n") {
		switch {
		case strings.HasPrefix(line, "\t"):
			continue
		case strings.HasPrefix(line, "%"):
			*scope = readScope(t, initial, line[1:])
		case !strings.HasPrefix(line, "#"):
			statement = append(statement, line)
		}
		kept = append(kept, line)
	}
	if len(statement) > 0 {
		// So many statements would have more shapes than a table may have.
		p.shapes.of = make(map[*feed.Table]*shapeSet)
		kept = append(kept, outcome(t, p, f, *scope, strings.Join(statement, "\n"))...)
	}
	return strings.Join(kept, "\n")
}

func readScope(t *testing.T, s Scope, line string) Scope {
	t.Helper()
	for _, field := range strings.Fields(line) {
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case "database":
			s.Database = value
		case "user":
			s.User = value
		case "path":
			s.SearchPath = value
		case "mode":
			s.SQLMode = value
		case "charset":
			s.Charset = value
		default:
			t.Fatalf("unknown setting %q", field)
		}
	}
	return s
}

// outcome says what the planner makes of a statement.
func outcome(t *testing.T, p *Planner, f *fakeFollower, scope Scope, text string) []string {
	t.Helper()
	st := p.Statement(p.Scope(scope), []byte(text), nil)
	done := make(chan struct{})
	p.Make(st, func() { close(done) })
	<-done
	plan := st.Plan()
	if plan == nil {
		t.Fatalf("%s: no plan", text)
	}
	head := "\t" + plan.Class.String()
	if plan.CreatesTemp {
		head += ", makes a temporary table"
	}
	if plan.ReadsSession {
		head += ", reads the session"
	}
	if plan.NoCache || plan.TTLMillis > 0 {
		head += fmt.Sprintf(", hint no-cache=%v ttl=%d", plan.NoCache, plan.TTLMillis)
	}
	if !plan.Cacheable {
		return append([]string{head + ", not cacheable: " + plan.Reason}, "\t"+plan.Query)
	}
	lines := []string{head + ", cacheable by " + plan.Tracking.String(), "\t" + plan.Query, "\t" + strings.Join(plan.Explain, "; ")}
	deps, _, ok := plan.Deps(nil, make([]Param, plan.Params))
	if !ok {
		return append(lines, "\tno dependencies")
	}
	return append(lines, "\t"+f.describe(deps))
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, x, y)
		}
	}
	return "only the ends differ"
}
