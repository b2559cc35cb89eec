package planner

import (
	"database/sql"
	"encoding/binary"
	"flag"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
	"freshet/cache"
	"freshet/cache/canon"
	"freshet/cache/feed"
)

// TestSound holds the dependencies of random queries to the servers: whenever
// the write of one row changes a query's answer, the feed's marks for that row
// must touch what the query depends on.
func TestSound(t *testing.T) {
	for _, kind := range []upstream.Kind{"mariadb", "mysql", "postgres15", "postgres18"} {
		t.Run(string(kind), func(t *testing.T) {
			s := newSound(t, kind)
			for start := time.Now(); time.Since(start) < *soundFor || !s.enough() && time.Since(start) < time.Minute; {
				s.round()
			}
			t.Logf("%d checks, %d answers changed; %d of %d marked for nothing; %d queries, %d wholly by key or range, %d refused",
				s.checks, s.changed, s.needless, s.marked, s.queries, s.exact, s.refused)
			if !s.enough() {
				t.Error("what was drawn proves nothing")
			}
		})
	}
}

// soundFor is how long each server is asked.
var soundFor = flag.Duration("sound", time.Second, "how long TestSound asks each server, at least")

// enough tells whether a fault would have had its chance to show.
func (s *sound) enough() bool { return s.changed >= 50 && s.exact >= 10 && s.checks >= 1000 }

type sound struct {
	t        *testing.T
	db       *sql.DB
	sql      *randomSQL
	planner  *Planner
	follower *fakeFollower
	scope    Scope
	rows     map[string]map[int]soundRow // what each table holds

	checks, changed, marked, needless, queries, exact, refused int
}

// soundRow is a row's values as text, by column; "" is NULL.
type soundRow map[string]string

func newSound(t *testing.T, kind upstream.Kind) *sound {
	server := upstream.Need(t, kind)
	s := &sound{t: t, db: server.DB(t), follower: newFakeFollower(), rows: map[string]map[int]soundRow{}}
	postgres := strings.HasPrefix(string(kind), "postgres")
	s.sql = &randomSQL{Rand: seeded(t), postgres: postgres, lateral: kind != "mariadb"}
	c := Config{Dialect: MySQL, Version: server.Version, Querier: sqlQuerier{s.db}, Tracker: s.follower}
	s.scope = Scope{Database: server.Database, User: server.User, Charset: "utf8mb4"}
	switch {
	case postgres:
		c.Dialect = Postgres
		s.scope.SearchPath, s.scope.Charset = "public", "UTF8"
	case kind == "mariadb":
		c.Dialect = MariaDB
	}
	s.planner = New(c)
	moment := "datetime"
	if postgres {
		moment = "timestamp" // nothing here outlives the servers
		s.exec("ALTER DATABASE " + server.Database + " SET synchronous_commit = off")
		s.exec("ALTER DATABASE " + server.Database + " SET jit = off")
	} else {
		s.exec("SET GLOBAL innodb_flush_log_at_trx_commit = 0")
		s.exec("SET GLOBAL sync_binlog = 0")
	}
	s.db.SetMaxIdleConns(0)
	s.exec("SELECT 1")
	s.db.SetMaxIdleConns(2)
	s.exec("DROP VIEW IF EXISTS v2")
	s.exec("DROP VIEW IF EXISTS v1")
	for _, table := range soundTables {
		s.exec("DROP TABLE IF EXISTS " + table)
		s.exec("CREATE TABLE " + table + " (id int PRIMARY KEY, k int, j bigint, s varchar(5), d date, m " + moment + ")")
		s.rows[table] = map[int]soundRow{}
		for range 8 {
			s.write(table)
		}
	}
	for _, view := range soundViews {
		s.exec("CREATE VIEW " + view)
	}
	return s
}

func (s *sound) exec(q string) {
	s.t.Helper()
	if _, err := s.db.Exec(q); err != nil {
		s.t.Fatalf("%s: %v", q, err)
	}
}

// random makes a row; one value in six is NULL.
func (s *sound) random(id int) soundRow {
	row := soundRow{"id": fmt.Sprint(id)}
	for _, c := range []string{"k", "j", "s", "d", "m"} {
		if !s.sql.chance(16) {
			row[c] = strings.Trim(s.sql.value(c), "'")
		}
	}
	return row
}

func quoted(v string) string {
	if v == "" {
		return "NULL"
	}
	return "'" + v + "'"
}

// write inserts, updates or deletes one row, and returns it as it was and as it is.
func (s *sound) write(table string) (before, after soundRow, text string) {
	id := s.sql.IntN(12)
	before = s.rows[table][id]
	switch {
	case before == nil:
		after = s.random(id)
		text = fmt.Sprintf("INSERT INTO %s VALUES (%d, %s, %s, %s, %s, %s)", table, id,
			quoted(after["k"]), quoted(after["j"]), quoted(after["s"]), quoted(after["d"]), quoted(after["m"]))
	case s.sql.chance(35):
		text = fmt.Sprintf("DELETE FROM %s WHERE id = %d", table, id)
	default:
		other := s.random(id)
		after = soundRow{}
		var sets []string
		for c, v := range before {
			after[c] = v
		}
		for _, c := range []string{"k", "j", "s", "d", "m"} {
			if s.sql.chance(40) || len(sets) == 0 && c == "m" {
				after[c] = other[c]
				sets = append(sets, c+" = "+quoted(other[c]))
			}
		}
		text = fmt.Sprintf("UPDATE %s SET %s WHERE id = %d", table, strings.Join(sets, ", "), id)
	}
	s.exec(text)
	if after == nil {
		delete(s.rows[table], id)
	} else {
		s.rows[table][id] = after
	}
	return before, after, text
}

// soundQuery is a query under test with its newest answer.
type soundQuery struct {
	text, answer string
	deps         []cache.Dep
	explain      []string
}

// round draws some queries, then writes and asks them again.
func (s *sound) round() {
	var queries []*soundQuery
	for range 40 {
		q := &soundQuery{text: s.sql.query()}
		answer, err := s.ask(q.text)
		if err != nil {
			continue
		}
		plan := planned(s.t, s.planner, s.scope, q.text, nil)
		if !plan.Cacheable {
			s.refused++
			continue
		}
		var ok bool
		if q.deps, _, ok = plan.Deps(nil, nil); !ok || len(q.deps) == 0 || len(q.deps) > maxDeps {
			s.t.Fatalf("%s: %d dependencies, %v", q.text, len(q.deps), ok)
		}
		q.answer, q.explain = answer, plan.Explain
		s.queries++
		if plan.Tracking > TrackTable {
			s.exact++
		}
		queries = append(queries, q)
	}
	for range 12 {
		table := pick(s.sql, soundTables...)
		before, after, text := s.write(table)
		marks := s.marks(table, before, after)
		for _, q := range queries {
			s.check(q, text, marks)
		}
	}
}

func (s *sound) check(q *soundQuery, write string, marks []cache.Dep) {
	answer, err := s.ask(q.text)
	if err != nil {
		return // a subquery that found two rows, say; errors are not kept
	}
	s.checks++
	touched := slices.ContainsFunc(q.deps, func(d cache.Dep) bool { return slices.Contains(marks, d) })
	if touched {
		s.marked++
	}
	switch {
	case answer != q.answer && !touched:
		s.t.Fatalf("%s\nchanges the answer of\n%s\nwhich depends on\n%s\n%s\nfrom %s\nto   %s",
			write, q.text, strings.Join(q.explain, "\n"), s.follower.describe(q.deps), q.answer, answer)
	case answer != q.answer:
		s.changed++
	case touched:
		s.needless++
	}
	q.answer = answer
}

// ask returns an answer's rows, sorted unless the query orders them.
func (s *sound) ask(q string) (string, error) {
	rows, err := sqlQuerier{s.db}.Query(s.t.Context(), q)
	if err != nil {
		return "", err
	}
	lines := make([]string, len(rows))
	for i, row := range rows {
		for _, cell := range row {
			lines[i] += fmt.Sprintf("%v|", textOrNull(cell))
		}
	}
	sort.Strings(lines)
	return strings.Join(lines, " "), nil
}

func textOrNull(cell *string) string {
	if cell == nil {
		return "NULL"
	}
	return *cell
}

// marks are the dependencies that the feed marks for a change of one row: the
// table, and for each shape that reads a changed column the keys of both images.
func (s *sound) marks(table string, before, after soundRow) []cache.Dep {
	s.follower.mu.Lock()
	defer s.follower.mu.Unlock()
	var out []cache.Dep
	for _, tb := range s.follower.tables {
		if tb.Spec.Name != table {
			continue
		}
		out = append(out, cache.DepOfTable(tb.ID))
		for _, sh := range s.follower.of[tb] {
			if before != nil && after != nil && !reads(tb, sh.spec, before, after) {
				continue
			}
			for _, row := range []soundRow{before, after} {
				if row == nil {
					continue
				}
				if key, found, ok := rowKeyOf(tb, sh, row); !ok {
					out = append(out, cache.DepOfShape(sh.shape.ID))
				} else if found {
					out = append(out, key)
				}
			}
		}
	}
	return out
}

// reads tells whether an update changed what a shape reads or compares.
func reads(tb *feed.Table, spec feed.ShapeSpec, before, after soundRow) bool {
	if spec.Reads == nil {
		return true
	}
	list := append(slices.Clone(spec.Reads), spec.Equal...)
	if spec.Range >= 0 {
		list = append(list, spec.Range)
	}
	return slices.ContainsFunc(list, func(i int) bool { name := tb.Spec.Columns[i].Name; return before[name] != after[name] })
}

func rowKeyOf(tb *feed.Table, sh fakeShape, row soundRow) (key cache.Dep, found, ok bool) {
	var h cache.KeyHasher
	h.Begin(sh.shape.ID)
	value := func(i int) (canonical []byte, found, ok bool) {
		c := tb.Spec.Columns[i]
		v := row[c.Name]
		if v == "" {
			return nil, false, true
		}
		canonical, ok = canon.AppendText(c.Kind, nil, []byte(v))
		return canonical, ok, ok
	}
	for _, i := range sh.spec.Equal {
		v, found, ok := value(i)
		if !found || !ok {
			return 0, false, ok
		}
		h.Value(v)
	}
	if i := sh.spec.Range; i >= 0 {
		v, found, ok := value(i)
		if !found || !ok {
			return 0, false, ok
		}
		ordinal, ok := canon.Ordinal(tb.Spec.Columns[i].Kind, v)
		if !ok {
			return 0, false, false
		}
		h.Value(binary.BigEndian.AppendUint64(nil, ordinal>>sh.spec.Level))
	}
	return h.Dep(), true, true
}
