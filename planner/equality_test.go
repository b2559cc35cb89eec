package planner

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"freshet/bench/upstream"
	"freshet/cache"
	"freshet/cache/canon"
	"freshet/cache/feed"
)

// TestServerEquality holds the whole way of a value to the server's own
// answers: for random rows and random literals and parameters, every row that
// `column = value` finds must have, by its row image, the key that the plan
// depends on; unless one of the two was refused, which makes it coarse.
func TestServerEquality(t *testing.T) {
	for _, kind := range []upstream.Kind{"mariadb", "mysql", "postgres15", "postgres18"} {
		t.Run(string(kind), func(t *testing.T) {
			e := newEquality(t, kind)
			for _, c := range e.columns {
				e.column(c)
			}
			t.Logf("%d comparisons, %d refused, %d matches by key, %d by table", e.compared, e.refused, e.byKey, e.byTable)
			if e.byKey < 300 || e.byTable < 30 {
				t.Error("the values drawn prove nothing")
			}
		})
	}
}

// equalityColumn is a column under test and what its values are drawn from.
type equalityColumn struct{ name, definition, pool string }

var (
	numbers = `0|1|-1|12|012|+12|1.0|1.19|1.190|-0|255|-128|65535|9007199254740991|9007199254740992|9007199254740993|18446744073709551615|9223372036854775807|1e2|100|0.5|.5`
	strs    = `a|A|a |A  |ab|aB|á|ä|ss|ß|| |12|012|1.19|12abc|a\tb|_|-|'|"|é|É|a` + "\u0301"
	moments = "2024-01-02|2024-01-02 00:00:00|2024-01-02T00:00:00|2024-01-02 03:04:05|2024-01-02 03:04:05.4|2024-01-02 03:04:05.5|2024-01-02 03:04:05.499|" +
		"2024-01-02 03:04:05.5004|2024-01-02 03:04:05.500400|2024-01-02 03:04:05.9999999|2024-01-02 03:04:06|2024-01-02 03:04|20240102030405|" +
		"1970-01-01 00:00:00|0001-01-01 00:00:00|9999-12-31 23:59:59.999999|2024-01-02 24:00:00|2024-01-02 03:04:60|infinity"
	zoned = "2024-01-02 03:04:05+00|2024-01-02 08:34:05+05:30|2024-01-02 03:04:05.4+00|2024-01-02 03:04:05.5+00|2024-01-02T03:04:05Z|2024-01-02 03:04:05|" +
		"2024-01-02 04:04:05+01:00:00|1800-01-01 00:00:00-00:01:15|1800-01-01 00:01:15+00|2024-01-02 03:04:05 UTC|infinity|0044-03-15 00:00:00+00 BC"
)

type equality struct {
	t                        *testing.T
	db                       *sql.DB
	planner                  *Planner
	follower                 *fakeFollower
	scope                    Scope
	postgres                 bool
	columns                  []equalityColumn
	rand                     *rand.Rand
	compared, byKey, byTable int
	refused                  int // compared in two ways
}

func newEquality(t *testing.T, kind upstream.Kind) *equality {
	server := upstream.Need(t, kind)
	e := &equality{t: t, db: server.DB(t), rand: seeded(t), follower: newFakeFollower()}
	e.postgres = strings.HasPrefix(string(kind), "postgres")
	c := Config{Dialect: MySQL, Version: server.Version, Querier: sqlQuerier{e.db}, Tracker: e.follower}
	switch {
	case e.postgres:
		c.Dialect = Postgres
		e.scope = Scope{Database: server.Database, User: server.User, SearchPath: "public", Charset: "UTF8"}
		e.columns = []equalityColumn{
			{"i", "int", numbers}, {"big", "bigint", numbers}, {"num", "numeric", numbers}, {"fix", "numeric(12,3)", numbers},
			{"txt", "text", strs}, {"vc", "varchar(20)", strs}, {"bp", "char(6)", strs}, {"yes", "boolean", "t|f|true|false|yes|1|0"},
			{"day", "date", "2024-01-02|2024-1-2|2024-02-29|0001-01-01|infinity|20240102"},
			{"at", "timestamp", moments}, {"at3", "timestamp(3)", moments}, {"tz", "timestamptz", zoned}, {"tz0", "timestamptz(0)", zoned},
			{"id", "uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|A0EEBC999C0B4EF8BB6D6BB9BD380A11|{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}"},
			{"raw", "bytea", `\x00ff|\x00FF|ab|\x6162`},
		}
	case kind == "mariadb":
		c.Dialect = MariaDB
		fallthrough
	default:
		e.scope = Scope{Database: server.Database, User: server.User, Charset: "utf8mb4"}
		e.columns = []equalityColumn{
			{"i", "INT", numbers}, {"ubig", "BIGINT UNSIGNED", numbers}, {"big", "BIGINT", numbers}, {"tiny", "TINYINT UNSIGNED", numbers},
			{"num", "DECIMAL(12,3)", numbers}, {"wide", "DECIMAL(40,20)", numbers},
			{"ci", "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", strs},
			{"uni", "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci", strs},
			{"sw", "VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci", strs},
			{"bin", "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", strs},
			{"lbin", "VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_bin", strs},
			{"ch", "CHAR(6) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", strs},
			{"vb", "VARBINARY(20)", strs}, {"b", "BINARY(6)", strs},
			{"day", "DATE", "2024-01-02|2024-1-2|2024-02-29|20240102|2024-01-02 00:00:00"},
			{"at", "DATETIME", moments}, {"at3", "DATETIME(3)", moments}, {"at6", "DATETIME(6)", moments}, {"stamp", "TIMESTAMP NULL", moments},
		}
	}
	e.planner = New(c)
	e.exec("DROP TABLE IF EXISTS equality")
	var columns []string
	for _, c := range e.columns {
		columns = append(columns, c.name+" "+c.definition)
	}
	e.exec("CREATE TABLE equality (" + strings.Join(columns, ", ") + ")")
	return e
}

func (e *equality) exec(q string) {
	e.t.Helper()
	if _, err := e.db.Exec(q); err != nil {
		e.t.Fatalf("%s: %v", q, err)
	}
}

// literal writes a pool value as a literal: bare if it is a number and luck has it.
func (e *equality) literal(v string) string {
	number := v != "" && strings.Trim(v, "0123456789.+-e") == "" && v != "-" && !strings.Contains(v, "2024-")
	if number && e.rand.IntN(2) == 0 {
		return v
	}
	v = strings.ReplaceAll(v, "'", "''")
	if !e.postgres {
		v = strings.ReplaceAll(v, `\`, `\\`)
	}
	return "'" + v + "'"
}

// arrayOf writes PostgreSQL's text form of an array.
func arrayOf(values ...string) string {
	for i, v := range values {
		values[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v) + `"`
	}
	return "{" + strings.Join(values, ",") + ",NULL}"
}

// column inserts random values into one column, then compares it with others.
func (e *equality) column(c equalityColumn) {
	pool := strings.Split(c.pool, "|")
	e.exec("DELETE FROM equality")
	for _, v := range pool {
		// What the type does not take is no row.
		if _, err := e.db.Exec(fmt.Sprintf("INSERT INTO equality (%s) VALUES (%s)", c.name, e.literal(v))); err != nil {
			continue
		}
	}
	for _, v := range pool {
		for range 2 {
			text := fmt.Sprintf("SELECT * FROM equality WHERE %s = %s", c.name, e.literal(v))
			e.compare(c, text, nil, nil)
		}
		if e.postgres {
			e.compare(c, "SELECT * FROM equality WHERE "+c.name+" = $1", []any{v}, &Param{Data: []byte(v)})
			array := arrayOf(v, pool[e.rand.IntN(len(pool))])
			e.compare(c, "SELECT * FROM equality WHERE "+c.name+" = ANY ($1)", []any{array}, &Param{Data: []byte(array)})
		} else {
			e.compare(c, "SELECT * FROM equality WHERE "+c.name+" = ?", []any{v}, &Param{Binary: true, Type: 0xfe, Data: []byte(v)})
		}
	}
}

// compare runs one comparison on the server and through the plan.
func (e *equality) compare(c equalityColumn, text string, args []any, param *Param) {
	e.t.Helper()
	rows, err := e.query(strings.Replace(text, "*", e.image(c), 1), args)
	if err != nil {
		return // the type does not take the value
	}
	e.compared++
	plan := planned(e.t, e.planner, e.scope, text, nil)
	if strings.Contains(plan.Reason, "in two ways") {
		e.refused++
		return
	}
	if !plan.Cacheable {
		e.t.Fatalf("%s: %s", text, plan.Reason)
	}
	var params []Param
	if param != nil {
		params = []Param{*param}
	}
	deps, _, ok := plan.Deps(nil, params)
	if plan.Refuses(params) != "" {
		e.refused++
		return
	}
	if !ok {
		e.t.Fatalf("%s: no dependencies", text)
	}
	if strings.HasPrefix(e.follower.describe(deps), "table ") {
		e.byTable++
		return
	}
	for _, row := range rows {
		key, ok := e.rowKey(c, row)
		if !ok {
			continue // the feed would mark the whole shape
		}
		e.byKey++
		if !slices.Contains(deps, key) {
			e.t.Errorf("%s with %v finds the row %q, whose key it does not depend on", text, args, row)
		}
	}
}

// image reads a column as the log writes it: drivers have their own way with
// moments.
func (e *equality) image(c equalityColumn) string {
	switch {
	case strings.HasPrefix(c.definition, "timestamp"):
		return c.name + "::text"
	case strings.HasPrefix(c.definition, "DATETIME"):
		return "CAST(" + c.name + " AS CHAR)"
	}
	return c.name
}

func (e *equality) query(q string, args []any) ([]string, error) {
	rows, err := e.db.Query(q, args...)
	if err != nil {
		return nil, err
	}
	var out []string
	for rows.Next() {
		var v sql.RawBytes
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		out = append(out, string(v))
	}
	return out, rows.Close()
}

// rowKey is the dependency that the feed would mark for a row with this value.
func (e *equality) rowKey(c equalityColumn, value string) (cache.Dep, bool) {
	rel, ordinal := e.relation(c.name)
	kind := rel.columns[ordinal].compare.Kind
	image := []byte(value)
	switch {
	case c.definition == "BINARY(6)":
		image = []byte(strings.TrimRight(value, "\x00")) // as the binlog has it
	case c.definition == "DATE" || c.definition == "date":
		image = image[:min(10, len(image))] // the driver adds a time
	case c.definition == "boolean":
		image = image[:1]
	case c.definition == "bytea":
		image = fmt.Appendf(nil, "\\x%x", value)
	case c.definition == "CHAR(6) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin":
		image = []byte(strings.TrimRight(value, " "))
	case strings.Contains(c.definition, "latin1") && !canon.ASCII(image):
		return 0, false // latin1 in the image, UTF-8 here
	}
	canonical, ok := canon.AppendText(kind, nil, image)
	if !ok {
		return 0, false
	}
	table := rel.table.Load()
	shape := e.follower.ShapeOf(table, feed.ShapeSpec{Equal: []int{ordinal}, Range: -1})
	var h cache.KeyHasher
	h.Begin(shape.ID)
	h.Value(canonical)
	return h.Dep(), true
}

func (e *equality) relation(column string) (*relation, int) {
	e.t.Helper()
	ctx := context.Background()
	var l *listing
	var err error
	if e.postgres {
		l, err = e.planner.catalog.postgresTables(ctx, "equality")
	} else {
		l, err = e.planner.catalog.mysqlTable(ctx, false, e.scope.Database, "equality")
	}
	if err != nil {
		e.t.Fatal(err)
	}
	return l.value[0], l.value[0].byName[column]
}
