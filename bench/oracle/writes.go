package oracle

import (
	"fmt"
	"slices"
	"strings"
)

// write is one change, or several that belong together, after which every
// statement is checked.
type write struct {
	kind  string
	steps []step
	undo  string // ends what the write leaves open, which else the next one ends
	ends  string // the undo of the write before
	// late are statements that nobody has read before; they are first read
	// while the commit of the last step is in the log and not readable yet.
	late []*read
}

func (w *write) String() string {
	var b strings.Builder
	for i, s := range w.steps {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(s.sql)
		if s.file != nil {
			fmt.Fprintf(&b, " <%q>", s.file)
		}
	}
	return b.String()
}

// renames tells whether the write gives a name, or who the reader is, another
// meaning behind the back of
// statements that PostgreSQL has parsed. It keeps their old meaning until
// something else makes it look again, on each connection for itself; a client
// that wants to know prepares again, and so do the lanes.
func (w *write) renames() bool {
	return slices.ContainsFunc(w.steps, func(s step) bool {
		return strings.Contains(s.sql, frontName) || strings.Contains(s.sql, "RENAME VALUE") || strings.Contains(s.sql, "BYPASSRLS")
	})
}

// writeKinds are the sorts of write with their weights; where a sort has no
// meaning (no such table, another dialect) it gives no steps, and another is
// drawn.
var writeKinds = []struct {
	name   string
	weight int
	make   func(g *gen) []step
}{
	{"insert", 12, (*gen).insert},
	{"insert many", 5, (*gen).insertMany},
	{"insert select", 4, (*gen).insertSelect},
	{"upsert", 6, (*gen).upsert},
	{"replace", 4, (*gen).replace},
	{"update one", 14, (*gen).updateOne},
	{"update some", 8, (*gen).updateSome},
	{"update key", 5, (*gen).updateKey},
	{"update unread", 4, (*gen).updateUnread},
	{"update nothing", 2, (*gen).updateNothing},
	{"delete one", 7, (*gen).deleteOne},
	{"delete some", 3, (*gen).deleteSome},
	{"parent key", 6, (*gen).parentKey},
	{"parent delete", 4, (*gen).parentDelete},
	{"update join", 4, (*gen).updateJoin},
	{"delete join", 2, (*gen).deleteJoin},
	{"truncate", 1, (*gen).truncate},
	{"load", 3, (*gen).load},
	{"transaction", 4, (*gen).transaction},
	{"savepoint", 4, (*gen).savepoint},
	{"rollback", 3, (*gen).rollback},
	{"prepared", 4, (*gen).prepared},
	{"hidden", 4, (*gen).hidden},
	{"ddl", 8, (*gen).ddl},
	{"policies", 2, (*gen).policies},
	{"family", 3, (*gen).family},
}

// write draws a write; some come as two, with a check between.
func (g *gen) write() {
	total := 0
	for _, k := range writeKinds {
		total += k.weight
	}
	for {
		n := g.rng.IntN(total)
		switch {
		case g.focus == "families" && g.chance(35):
			n = total - 1 // the last
		case g.focus == "policies" && g.chance(25):
			n = total - 4 // the one before
		}
		for _, k := range writeKinds {
			if n -= k.weight; n >= 0 {
				continue
			}
			before := len(g.out.writes)
			if steps := k.make(g); len(steps) > 0 {
				w := write{kind: k.name, steps: steps}
				if len(g.out.writes) > before {
					w.ends = g.out.writes[before].undo
				}
				g.out.writes = append(g.out.writes, w)
				return
			}
			break
		}
	}
}

func sqls(texts ...string) []step {
	var out []step
	for _, s := range texts {
		out = append(out, step{sql: s})
	}
	return out
}

func one(format string, a ...any) []step { return sqls(fmt.Sprintf(format, a...)) }

func (g *gen) anyBase() *table { return pick(g, g.base()) }

// unique tells whether n is declared unique by itself.
func (t *table) unique() bool { return t.key == keyPrimary || t.key == keyUnique }

func (g *gen) insert() []step {
	t := g.anyBase()
	columns := t.written()
	if g.chance(20) { // leave what may be left to its default
		columns = nil
		for _, c := range t.written() {
			if !c.null || g.chance(50) {
				columns = append(columns, c)
			}
		}
	}
	return one("INSERT INTO %s (%s) VALUES %s", t.name, names(columns), g.row(t, columns))
}

func (g *gen) insertMany() []step {
	t := g.anyBase()
	var rows []string
	for range 2 + g.rng.IntN(4) {
		rows = append(rows, g.row(t, t.written()))
	}
	return one("INSERT INTO %s (%s) VALUES %s", t.name, names(t.written()), strings.Join(rows, ", "))
}

func (g *gen) insertSelect() []step {
	t := g.anyBase()
	if t.column("k") != nil {
		return nil // its copies would collide
	}
	// The copies' n are past all that were drawn.
	shift := t.rows + 1
	var from []string
	for _, c := range t.written() {
		if c.name == "n" {
			from = append(from, fmt.Sprintf("n + %d", shift))
			continue
		}
		from = append(from, c.name)
	}
	lowest := g.rng.Int64N(t.rows + 1)
	t.rows += shift
	return one("INSERT INTO %s (%s) SELECT %s FROM %s WHERE n BETWEEN %d AND %d", t.name, names(t.written()), strings.Join(from, ", "),
		t.name, t.first+lowest, t.first+lowest+4)
}

func (g *gen) upsert() []step {
	t := g.anyBase()
	if !t.unique() || t.parted {
		return nil
	}
	c := pick(g, t.written())
	if c.name == "n" || c.name == "k" {
		return nil
	}
	row := g.row(t, t.written())
	if g.chance(60) { // a row that may be there
		row = strings.Replace(row, "("+fmt.Sprint(t.first+t.rows), "("+g.someN(t), 1)
	}
	insert := fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", t.name, names(t.written()), row)
	switch {
	case g.d.mysql && g.chance(15):
		return sqls(strings.Replace(insert, "INSERT", "INSERT IGNORE", 1))
	case g.d.mysql:
		return one("%s ON DUPLICATE KEY UPDATE %s = VALUES(%s)", insert, c.name, c.name)
	case g.chance(15):
		return sqls(insert + " ON CONFLICT DO NOTHING")
	case g.chance(15) && t.inherits == nil:
		return one("MERGE INTO %s t USING (SELECT %s::bigint AS n) q ON t.n = q.n WHEN MATCHED THEN UPDATE SET %s = %s", t.name, g.someN(t), c.name, g.value(c))
	}
	return one("%s ON CONFLICT (n) DO UPDATE SET %s = EXCLUDED.%s", insert, c.name, c.name)
}

func (g *gen) replace() []step {
	if !g.d.mysql {
		return nil
	}
	t := g.anyBase()
	row := g.row(t, t.written())
	if g.chance(70) && t.unique() {
		row = strings.Replace(row, "("+fmt.Sprint(t.first+t.rows), "("+g.someN(t), 1)
	}
	return one("REPLACE INTO %s (%s) VALUES %s", t.name, names(t.written()), row)
}

// assigned is `c = value` for one to three columns that are not n.
func (g *gen) assigned(t *table, most int) string {
	var out []string
	for _, c := range some(g, t.written(), 1+g.rng.IntN(most)) {
		if c.name != "n" && (c.name != "k" || g.chance(30)) {
			out = append(out, fmt.Sprintf("%s = %s", c.name, g.value(c)))
		}
	}
	if len(out) == 0 {
		return fmt.Sprintf("u = %s", g.value(t.column("u")))
	}
	return strings.Join(out, ", ")
}

func (g *gen) updateOne() []step {
	t := g.anyBase()
	return one("UPDATE %s SET %s WHERE n = %s", t.name, g.assigned(t, 3), g.someN(t))
}

// condition is a condition for a write, in text.
func (g *gen) condition(t *table) string {
	b := &builder{gen: g, deep: 2}
	return strings.ReplaceAll(b.condition(named{alias: t.name, table: t}), t.name+".", "")
}

func (g *gen) updateSome() []step {
	t := g.anyBase()
	return one("UPDATE %s SET %s WHERE %s", t.name, g.assigned(t, 2), g.condition(t))
}

// updateKey moves a row to another n: one that no row ever had.
func (g *gen) updateKey() []step {
	t := g.anyBase()
	if k := t.column("k"); k != nil && g.chance(50) {
		return one("UPDATE %s SET k = %s WHERE n = %s", t.name, g.value(k), g.someN(t))
	}
	from := g.someN(t)
	return one("UPDATE %s SET n = %s WHERE n = %s", t.name, g.newN(t), from)
}

func (g *gen) updateUnread() []step {
	t := g.anyBase()
	return one("UPDATE %s SET u = %s WHERE n = %s", t.name, g.value(t.column("u")), g.someN(t))
}

func (g *gen) updateNothing() []step {
	t := g.anyBase()
	c := pick(g, t.written())
	return one("UPDATE %s SET %s = %s WHERE n = %s", t.name, c.name, c.name, g.someN(t))
}

func (g *gen) deleteOne() []step {
	t := g.anyBase()
	return one("DELETE FROM %s WHERE n = %s", t.name, g.someN(t))
}

func (g *gen) deleteSome() []step {
	t := g.anyBase()
	return one("DELETE FROM %s WHERE n IN (%s, %s, %s)", t.name, g.someN(t), g.someN(t), g.someN(t))
}

// parents are the tables that others refer to.
func (g *gen) parents() []*table {
	var out []*table
	for _, t := range g.base() {
		if len(t.children) > 0 {
			out = append(out, t)
		}
	}
	return out
}

func (g *gen) parentKey() []step {
	p := g.parents()
	if len(p) == 0 {
		return nil
	}
	t := pick(g, p)
	k := t.column("k")
	if g.chance(40) {
		return one("UPDATE %s SET k = %s WHERE k = %s", t.name, g.value(k), g.value(k))
	}
	return one("UPDATE %s SET k = %s WHERE n = %s", t.name, g.value(k), g.someN(t))
}

func (g *gen) parentDelete() []step {
	p := g.parents()
	if len(p) == 0 {
		return nil
	}
	t := pick(g, p)
	if g.chance(40) {
		return one("DELETE FROM %s WHERE k = %s", t.name, g.value(t.column("k")))
	}
	// A new row for the deleted one, so that the table does not run empty.
	return append(one("DELETE FROM %s WHERE n = %s", t.name, g.someN(t)), g.insertInto(t)...)
}

func (g *gen) insertInto(t *table) []step {
	return one("INSERT INTO %s (%s) VALUES %s", t.name, names(t.written()), g.row(t, t.written()))
}

// assignable is a column that two tables' joint update may set.
func (g *gen) assignable(t *table) *column {
	for {
		if c := pick(g, t.written()); c.name != "n" && c.name != "k" {
			return c
		}
	}
}

func (g *gen) updateJoin() []step {
	x, y := g.anyBase(), g.anyBase()
	if x == y || x.inherits != nil || y.inherits != nil {
		return nil
	}
	b := &builder{gen: g, deep: 2}
	a, o := named{alias: "x", table: x}, named{alias: "y", table: y}
	c := g.assignable(x)
	if g.d.mysql {
		set := fmt.Sprintf("x.%s = %s", c.name, g.value(c))
		if g.chance(50) {
			d := g.assignable(y)
			set += fmt.Sprintf(", y.%s = %s", d.name, g.value(d))
		}
		return one("UPDATE %s x JOIN %s y ON %s SET %s WHERE %s", x.name, y.name, b.link(a, o), set, b.condition(o))
	}
	return one("UPDATE %s x SET %s = %s FROM %s y WHERE %s AND %s", x.name, c.name, g.value(c), y.name, b.link(a, o), b.condition(o))
}

func (g *gen) deleteJoin() []step {
	x, y := g.anyBase(), g.anyBase()
	if x == y {
		return nil
	}
	b := &builder{gen: g, deep: 2}
	a, o := named{alias: "x", table: x}, named{alias: "y", table: y}
	on := fmt.Sprintf("%s AND x.n IN (%s, %s)", b.link(a, o), g.someN(x), g.someN(x))
	if g.d.mysql {
		return one("DELETE %s FROM %s x JOIN %s y ON %s", pick(g, []string{"x", "x, y"}), x.name, y.name, on)
	}
	return one("DELETE FROM %s x USING %s y WHERE %s", x.name, y.name, on)
}
