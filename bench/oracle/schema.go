package oracle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// script is a round as text.
type script struct {
	setup  []step
	reads  []*read
	slow   []*read // take long enough for a write to come while they run
	writes []write
}

// column is one of a table's.
type column struct {
	name      string
	kind      *kind
	pool      []string // literals that rows and comparisons draw from
	null      bool
	generated string // the expression, "" for none
}

// stamped is a column that MySQL sets to the time of the last update.
const stamped = "now"

// table is a table as the generator knows it.
type table struct {
	name string
	key  keyMode
	// columns are what statements may name: n and u, s, k and r if there are,
	// then the others.
	columns  []*column
	parent   *table
	children []*table
	onDelete string
	onUpdate string
	triggers bool // it writes into another table, or is written by one
	parted   bool
	inherits *table // PostgreSQL: the table whose reads show this one's rows
	over     *table // what a view selects from; nil for a table
	frozen   bool   // a materialized view
	shielded bool   // it has policies for the reader
	spare    int    // columns added by ADD COLUMN and not dropped yet
	rows     int64  // values of n drawn so far
	first    int64  // n of its first row
}

// keyMode is how n is declared.
type keyMode uint8

const (
	keyPrimary   keyMode = iota
	keyComposite         // PRIMARY KEY (s, n)
	keyUnique            // UNIQUE (n), no primary key
	keyIndex             // an index on n
	keyNone
)

// gen draws a round. Everything it draws comes from rng.
type gen struct {
	rng    *rand.Rand
	d      *dialect
	out    script
	tables []*table // base tables and views
	shared *kind    // of every table's column s
	serial int
	// functions: there are twice(integer), which is immutable, and tally(),
	// which reads t0.
	functions bool
	focus     string // Config.Focus
}

func (g *gen) chance(percent int) bool { return g.rng.IntN(100) < percent }

// seldom is chance, but certain when the run is about it.
func (g *gen) seldom(percent int, what string) bool { return g.chance(percent) || g.focus == what }

func pick[T any](g *gen, from []T) T { return from[g.rng.IntN(len(from))] }

// some are n different members, in random order.
func some[T any](g *gen, from []T, n int) []T {
	out := slices.Clone(from)
	g.rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:min(n, len(out))]
}

func (g *gen) setup(format string, a ...any) {
	g.out.setup = append(g.out.setup, step{sql: fmt.Sprintf(format, a...)})
}

// next is a number that no other name of the round has.
func (g *gen) next() int { g.serial++; return g.serial }

// base are the tables that rows can be written to.
func (g *gen) base() []*table {
	var out []*table
	for _, t := range g.tables {
		if t.over == nil {
			out = append(out, t)
		}
	}
	return out
}

func (t *table) column(name string) *column {
	for _, c := range t.columns {
		if c.name == name {
			return c
		}
	}
	return nil
}

// written are the columns that an INSERT names.
func (t *table) written() []*column {
	var out []*column
	for _, c := range t.columns {
		if c.generated == "" {
			out = append(out, c)
		}
	}
	return out
}

// of are the columns with all of the traits, n and r excepted.
func (t *table) of(want trait) []*column {
	var out []*column
	for _, c := range t.columns {
		if c.name != "n" && c.kind.is(want) && !c.kind.is(unequal) {
			out = append(out, c)
		}
	}
	return out
}

// schema draws the round's tables: up to three that refer to each other, and
// some that stand alone, each with rows.
func (g *gen) schema() {
	g.prologue()
	g.shared = g.drawKind(ranked)
	for g.shared.is(unequal) || g.shared.rare {
		g.shared = g.drawKind(ranked)
	}
	family := g.rng.IntN(3) + 1
	alone := g.rng.IntN(2) + 1
	for i := range family + alone {
		t := &table{name: fmt.Sprintf("t%d", i), first: int64(i) * 1000, key: pick(g, []keyMode{keyPrimary, keyPrimary, keyPrimary, keyComposite, keyUnique, keyIndex, keyNone})}
		if i > 0 && i < family {
			g.refer(t, pick(g, g.tables))
		} else if i == 0 && g.chance(15) {
			g.refer(t, t)
		}
		g.tables = append(g.tables, t)
	}
	for i, t := range g.tables {
		g.drawColumns(t, i < family)
	}
	for _, t := range g.tables {
		g.create(t)
		g.identity(t)
	}
	for _, t := range g.tables {
		g.fill(t, 12+g.rng.IntN(30))
	}
	g.extras()
}

// refer makes t a child of parent.
func (g *gen) refer(t, parent *table) {
	t.parent = parent
	parent.children = append(parent.children, t)
	t.onDelete = pick(g, []string{"CASCADE", "CASCADE", "SET NULL", "RESTRICT", "NO ACTION"})
	t.onUpdate = pick(g, []string{"CASCADE", "CASCADE", "SET NULL", "NO ACTION"})
}

func (g *gen) drawKind(want trait) *kind {
	for {
		k := pick(g, g.d.kinds)
		if k.is(want) && (!k.rare || g.seldom(10, "extension")) {
			return k
		}
	}
}

// pool draws a few of a kind's values, so that comparisons find rows.
func (g *gen) pool(k *kind) []string { return some(g, k.values, 3+g.rng.IntN(5)) }

func (g *gen) drawColumns(t *table, family bool) {
	big := g.integer()
	add := func(name string, k *kind, null bool) *column {
		c := &column{name: name, kind: k, pool: g.pool(k), null: null}
		t.columns = append(t.columns, c)
		return c
	}
	add("n", big, false)
	add("u", g.small(), g.chance(60)).pool = []string{"0", "1", "2", "3", "4"}
	s := add("s", g.shared, g.chance(60))
	if t.key == keyComposite && g.shared.is(indexed) {
		s.null = false
	} else if t.key == keyComposite {
		t.key = keyPrimary
	}
	if family {
		k := pick(g, g.d.serials)
		c := add("k", k, false)
		c.pool = k.values
		if k.is(number) { // unique, so there must be enough of them
			for i := range 30 {
				c.pool = with(c.pool, fmt.Sprint(11+i))
			}
		}
	}
	if t.parent != nil {
		c := add("r", t.parent.column("k").kind, true)
		c.pool = t.parent.column("k").pool
	}
	for i := range 1 + g.rng.IntN(5) {
		add(fmt.Sprintf("c%d", i), g.drawKind(0), g.chance(60))
	}
	if g.chance(35) {
		g.drawGenerated(t)
	}
	if g.d.mysql && g.chance(12) {
		add("ts", g.named("TIMESTAMP(3) NULL", ""), true).generated = stamped
	}
}

// integer is the type of n, small that of u.
func (g *gen) integer() *kind { return g.named("BIGINT", "bigint") }
func (g *gen) small() *kind   { return g.named("INT", "integer") }

func (g *gen) named(mysql, postgres string) *kind {
	want := postgres
	if g.d.mysql {
		want = mysql
	}
	for _, k := range g.d.kinds {
		if k.name == want {
			return k
		}
	}
	panic("no column type " + want) // the lists of types lack it: a fault of this package
}

// drawGenerated adds a column that the server computes.
func (g *gen) drawGenerated(t *table) {
	c := &column{name: "g", kind: g.small(), null: true, pool: []string{"0", "1", "2", "3"}}
	c.generated = "u + 1"
	// What a foreign key changes may not be the base of a stored column, nor a
	// CHAR on MariaDB, whose value hangs on the session's sql_mode.
	texts := slices.DeleteFunc(t.of(textual), func(c *column) bool { return c.name == "k" || c.name == "r" || c.kind.name[:4] == "CHAR" })
	if len(texts) > 0 && g.chance(60) {
		from := pick(g, texts)
		c.kind, c.pool = from.kind, from.pool
		c.generated = "LOWER(" + from.name + ")"
	}
	t.columns = append(t.columns, c)
}

// create writes the CREATE TABLE of t and its indexes.
func (g *gen) create(t *table) { g.setup("%s", g.createText(t, t.name)) }

func (g *gen) createText(t *table, name string) string {
	var parts []string
	for _, c := range t.columns {
		parts = append(parts, g.columnText(t, c))
	}
	switch t.key {
	case keyPrimary:
		parts = append(parts, "PRIMARY KEY (n)")
	case keyComposite:
		parts = append(parts, "PRIMARY KEY (s, n)")
	case keyUnique:
		parts = append(parts, "UNIQUE (n)")
	}
	if t.column("k") != nil {
		parts = append(parts, "UNIQUE (k)")
	}
	if t.parent != nil {
		parts = append(parts, g.reference(t, name))
	}
	return fmt.Sprintf("CREATE TABLE %s (%s)", name, strings.Join(parts, ", "))
}

// reference is the foreign key of t in words; the key is named after the table
// that it is made with.
func (g *gen) reference(t *table, name string) string {
	to := t.parent.name
	if t.parent == t {
		to = name
	}
	return fmt.Sprintf("CONSTRAINT fk_%s FOREIGN KEY (r) REFERENCES %s (k) ON DELETE %s ON UPDATE %s", name, to, t.onDelete, t.onUpdate)
}

func (g *gen) columnText(t *table, c *column) string {
	text := c.name + " " + c.kind.ddl
	switch {
	case c.generated == stamped:
		return c.name + " TIMESTAMP(3) NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)"
	case c.generated != "" && g.d.mysql:
		return text + " GENERATED ALWAYS AS (" + c.generated + ") " + pick(g, []string{"STORED", "VIRTUAL"})
	case c.generated != "":
		how := "STORED"
		if g.d.version >= 18 && g.chance(40) && c.kind.ddl != "citext" {
			how = "VIRTUAL"
		}
		return text + " GENERATED ALWAYS AS (" + c.generated + ") " + how
	case !c.null && g.d.mysql && strings.HasSuffix(text, " NULL"):
		return strings.TrimSuffix(text, " NULL") + " NOT NULL DEFAULT '2001-01-01'"
	case !c.null:
		return text + " NOT NULL"
	}
	return text
}

// identity draws indexes, and what PostgreSQL logs of old rows.
func (g *gen) identity(t *table) {
	if t.key == keyIndex {
		g.setup("CREATE INDEX %s_n ON %s (n)", t.name, t.name)
	}
	for _, c := range t.of(indexed) {
		// An index on a virtual column makes MariaDB 10.11 and PostgreSQL trouble:
		// the one loses rows from reads while a change of them is prepared, the
		// other refuses it.
		if c.generated == "" && g.chance(35) {
			g.setup("CREATE INDEX %s_%s ON %s (%s)", t.name, c.name, t.name, c.name)
		}
	}
	if g.d.mysql {
		return
	}
	switch {
	case t.key >= keyIndex && g.chance(85), g.chance(30):
		g.setup("ALTER TABLE %s REPLICA IDENTITY FULL", t.name)
	case t.key == keyUnique:
		g.setup("ALTER TABLE %s REPLICA IDENTITY USING INDEX %s_n_key", t.name, t.name)
	}
}

// value draws what a row has in a column.
func (g *gen) value(c *column) string {
	if c.null && g.chance(15) {
		return "NULL"
	}
	if g.chance(5) {
		return pick(g, c.kind.values)
	}
	return pick(g, c.pool)
}

// newN is a value of n that the table has not had.
func (g *gen) newN(t *table) string {
	t.rows++
	return fmt.Sprint(t.first + t.rows)
}

// someN is a value of n that the table has or had; seldom one that it never had.
func (g *gen) someN(t *table) string {
	return fmt.Sprint(t.first + 1 + g.rng.Int64N(t.rows+2))
}

// row is a parenthesised row for the columns.
func (g *gen) row(t *table, columns []*column) string {
	var values []string
	for _, c := range columns {
		if c.name == "n" {
			values = append(values, g.newN(t))
			continue
		}
		values = append(values, g.value(c))
	}
	return "(" + strings.Join(values, ", ") + ")"
}

func names(columns []*column) string {
	var out []string
	for _, c := range columns {
		out = append(out, c.name)
	}
	return strings.Join(out, ", ")
}

// fill inserts rows one by one: keys that collide and references to nothing
// are refused, the others stay.
func (g *gen) fill(t *table, rows int) {
	for range rows {
		g.setup("INSERT INTO %s (%s) VALUES %s", t.name, names(t.written()), g.row(t, t.written()))
	}
}
