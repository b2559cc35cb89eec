package oracle

import (
	"fmt"
	"strings"
)

// maxSQL bounds a statement's length.
const maxSQL = 4000

// readKinds are the sorts of statement with their weights.
var readKinds = []struct {
	name   string
	weight int
	make   func(b *builder) (sql string, ordered bool)
}{
	{"point", 12, (*builder).point},
	{"star", 5, (*builder).star},
	{"filter", 14, (*builder).filter},
	{"range", 8, (*builder).rangeRead},
	{"join", 14, (*builder).join},
	{"outer", 8, (*builder).outer},
	{"using", 3, (*builder).using},
	{"subquery", 8, (*builder).subqueries},
	{"scalar", 3, (*builder).scalar},
	{"aggregate", 7, (*builder).aggregate},
	{"group", 7, (*builder).group},
	{"window", 4, (*builder).window},
	{"union", 5, (*builder).union},
	{"cte", 5, (*builder).cte},
	{"through", 4, (*builder).through},
	{"derived", 4, (*builder).derived},
	{"distinct", 3, (*builder).distinct},
	{"top", 7, (*builder).top},
	{"lateral", 2, (*builder).lateral},
}

// read draws one statement.
func (g *gen) read() *read {
	total := 0
	for _, k := range readKinds {
		total += k.weight
	}
	for {
		n := g.rng.IntN(total)
		for _, k := range readKinds {
			if n -= k.weight; n >= 0 {
				continue
			}
			b := &builder{gen: g, how: g.drawHow()}
			sql, ordered := k.make(b)
			if len(sql) > maxSQL || strings.Count(sql, "?") != len(b.args) {
				break
			}
			return &read{kind: k.name, sql: sql, args: b.args, how: b.how, ordered: ordered, views: b.views}
		}
	}
}

func (g *gen) drawHow() how {
	switch {
	case g.chance(50):
		return asText
	case g.chance(50) && !g.d.mysql:
		return asBinary
	}
	return asPrepared
}

// list is a select list over the tables: n of each, and some columns.
func (b *builder) list(t ...named) string {
	var out []string
	for _, x := range t {
		out = append(out, x.n())
		for _, c := range some(b.gen, x.columns, 1+b.rng.IntN(3)) {
			out = append(out, x.dot(c))
		}
	}
	return strings.Join(out, ", ")
}

// byN orders rows of the tables totally.
func byN(t ...named) string {
	var out []string
	for _, x := range t {
		out = append(out, x.n())
	}
	return strings.Join(out, ", ")
}

// maybeOrdered adds a total order now and then.
func (b *builder) maybeOrdered(t ...named) (string, bool) {
	if !b.chance(25) {
		return "", false
	}
	return " ORDER BY " + byN(t...), true
}

func (b *builder) point() (string, bool) {
	t := b.anyTable()
	by := ""
	if b.chance(50) {
		by = fmt.Sprintf("%s = %s", t.n(), b.value(b.someN(t.table)))
	} else {
		by = b.equality(t)
	}
	for b.chance(25) {
		by += " AND " + b.equality(t)
	}
	return fmt.Sprintf("SELECT %s FROM %s WHERE %s", b.list(t), t.from(), by), false
}

func (b *builder) star() (string, bool) {
	t := b.anyTable()
	if !b.d.maria && b.chance(6) {
		return "TABLE " + t.name, false
	}
	sql := "SELECT * FROM " + t.from() + b.where(t)
	order, total := b.maybeOrdered(t)
	return sql + order, total
}

func (b *builder) filter() (string, bool) {
	t := b.anyTable()
	sql := fmt.Sprintf("SELECT %s FROM %s%s", b.list(t), t.from(), b.where(t))
	order, total := b.maybeOrdered(t)
	return sql + order, total
}

func (b *builder) rangeRead() (string, bool) {
	t := b.anyTable()
	sql := ""
	if b.chance(60) {
		sql = fmt.Sprintf("SELECT %s FROM %s WHERE %s", b.list(t), t.from(), b.span(t))
	} else {
		sql = fmt.Sprintf("SELECT %s FROM %s WHERE %s BETWEEN %s AND %s", b.list(t), t.from(), t.n(), b.value(b.someN(t.table)), b.value(b.someN(t.table)))
	}
	if b.chance(30) {
		sql += " AND " + b.equality(t)
	}
	order, total := b.maybeOrdered(t)
	return sql + order, total
}

// related are two or three tables, along foreign keys where there are some.
func (b *builder) related() []named {
	x := b.anyTable()
	out := []named{x}
	for len(out) < 2 || len(out) < 3 && b.chance(25) {
		from := pick(b.gen, out)
		near := append([]*table(nil), from.children...)
		if from.parent != nil {
			near = append(near, from.parent)
		}
		if len(near) == 0 || b.chance(30) {
			near = b.tables
		}
		out = append(out, b.as(pick(b.gen, near)))
	}
	return out
}

func (b *builder) joined(how string, t []named) string {
	sql := t[0].from()
	for i, y := range t[1:] {
		on := b.link(pick(b.gen, t[:i+1]), y)
		if b.chance(20) {
			on += " AND " + b.condition(y)
		}
		sql += fmt.Sprintf(" %s %s ON %s", how, y.from(), on)
	}
	return sql
}

func (b *builder) join() (string, bool) {
	t := b.related()
	sql := ""
	if len(t) == 3 || b.chance(75) {
		sql = fmt.Sprintf("SELECT %s FROM %s%s", b.list(t...), b.joined("JOIN", t), b.where(t...))
	} else {
		sql = fmt.Sprintf("SELECT %s FROM %s, %s WHERE %s AND %s", b.list(t...), t[0].from(), t[1].from(), b.link(t[0], t[1]), b.conditions(t...))
	}
	order, total := b.maybeOrdered(t...)
	return sql + order, total
}

func (b *builder) outer() (string, bool) {
	t := b.related()
	side := pick(b.gen, []string{"LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "LEFT OUTER JOIN"})
	if !b.d.mysql && b.chance(15) {
		side = "FULL JOIN"
	}
	sql := ""
	if b.chance(80) {
		sql = fmt.Sprintf("SELECT %s FROM %s%s", b.list(t...), b.joined(side, t), b.where(t...))
	} else {
		sql = fmt.Sprintf("SELECT %s FROM %s WHERE %s IS NULL", b.list(t[0]), b.joined("LEFT JOIN", t[:2]), t[1].n())
	}
	return sql, false
}

func (b *builder) using() (string, bool) {
	x, y := b.anyTable(), b.anyTable()
	by := pick(b.gen, []string{"n", "s", "u", "n, u"})
	if b.chance(10) {
		return fmt.Sprintf("SELECT %s FROM %s NATURAL JOIN %s", b.list(x, y), x.from(), y.from()), false
	}
	return fmt.Sprintf("SELECT %s FROM %s %sJOIN %s USING (%s)%s", b.list(x, y), x.from(), pick(b.gen, []string{"", "LEFT "}), y.from(), by, b.where(x, y)), false
}

func (b *builder) subqueries() (string, bool) {
	t := b.anyTable()
	sql := fmt.Sprintf("SELECT %s FROM %s WHERE %s", b.list(t), t.from(), b.subquery(t))
	if b.chance(40) {
		sql += " AND " + b.condition(t)
	}
	return sql, false
}

func (b *builder) scalar() (string, bool) {
	t, o := b.anyTable(), b.anyTable()
	return fmt.Sprintf("SELECT %s.n, (SELECT COUNT(*) FROM %s WHERE %s) AS c, (SELECT MAX(m.n) FROM %s m) AS m FROM %s%s",
		t.alias, o.from(), b.link(t, o), pick(b.gen, b.tables).name, t.from(), b.where(t)), false
}

// total is an aggregate whose value is the same in whatever order rows come.
func (b *builder) total(t named) string {
	if c := t.of(number); len(c) > 0 && b.chance(40) {
		return fmt.Sprintf("%s(%s)", pick(b.gen, []string{"SUM", "AVG"}), t.dot(pick(b.gen, c)))
	}
	if c := t.of(exact | ranked | indexed); len(c) > 0 && b.chance(50) {
		c := pick(b.gen, c)
		if agg := pick(b.gen, []string{"MIN", "MAX"}); b.d.mysql || hasExtreme(c.kind) {
			return fmt.Sprintf("%s(%s)", agg, t.dot(c))
		}
	}
	return pick(b.gen, []string{"COUNT(*)", "COUNT(" + t.dot(pick(b.gen, t.columns)) + ")", "COUNT(DISTINCT " + t.dot(b.eqColumn(t)) + ")"})
}

// hasExtreme tells whether PostgreSQL 15 has min and max for a type.
func hasExtreme(k *kind) bool {
	switch k.name {
	case "boolean", "uuid", "bit(3)", "varbit", "name", `"char"`, "bytea", "int4range":
		return false
	}
	return true
}

func (b *builder) aggregate() (string, bool) {
	t := b.anyTable()
	if b.chance(30) {
		j := b.related()
		return fmt.Sprintf("SELECT COUNT(*), %s FROM %s%s", b.total(j[0]), b.joined("JOIN", j), b.where(j...)), false
	}
	return fmt.Sprintf("SELECT %s, %s FROM %s%s", b.total(t), b.total(t), t.from(), b.where(t)), false
}

func (b *builder) group() (string, bool) {
	t := b.anyTable()
	by := t.n() + " % 3"
	if c := t.of(exact); len(c) > 0 && b.chance(75) {
		by = t.dot(pick(b.gen, c))
	}
	sql := ""
	if b.chance(85) {
		sql = fmt.Sprintf("SELECT %s, COUNT(*), %s FROM %s%s GROUP BY %s", by, b.total(t), t.from(), b.where(t), by)
	} else { // equal values that print differently: only how many
		by = t.dot(b.eqColumn(t))
		sql = fmt.Sprintf("SELECT COUNT(*), SUM(%s.u) FROM %s%s GROUP BY %s", t.alias, t.from(), b.where(t), by)
	}
	if b.chance(30) {
		sql += fmt.Sprintf(" HAVING COUNT(*) %s %d", pick(b.gen, []string{">", "=", "<"}), 1+b.rng.IntN(4))
	}
	return sql, false
}

func (b *builder) window() (string, bool) {
	t := b.anyTable()
	over := pick(b.gen, []string{
		"ROW_NUMBER() OVER (PARTITION BY %[1]s.u ORDER BY %[1]s.n)", "RANK() OVER (ORDER BY %[1]s.u)", "SUM(%[1]s.u) OVER (ORDER BY %[1]s.n)",
		"COUNT(*) OVER (PARTITION BY %[1]s.u)", "LAG(%[1]s.n) OVER (ORDER BY %[1]s.n)", "FIRST_VALUE(%[1]s.n) OVER (PARTITION BY %[1]s.u ORDER BY %[1]s.n DESC)",
	})
	return fmt.Sprintf("SELECT %s, %s AS w FROM %s%s", b.list(t), fmt.Sprintf(over, t.alias), t.from(), b.where(t)), false
}
