package oracle

import (
	"fmt"
	"strings"
)

func (b *builder) union() (string, bool) {
	x, y := b.anyTable(), b.anyTable()
	part := func(list string, t named) string {
		return fmt.Sprintf("SELECT %s FROM %s%s", list, t.from(), b.where(t))
	}
	switch b.rng.IntN(4) {
	case 0: // equal texts may print differently, so not s
		return part(x.n()+", "+x.alias+".u", x) + " UNION " + part(y.n()+", "+y.alias+".u", y), false
	case 1:
		op := pick(b.gen, []string{"INTERSECT", "EXCEPT"})
		return part(x.alias+".u", x) + " " + op + " " + part(y.alias+".u", y), false
	case 2:
		return part("1 AS tag, "+x.n()+", "+x.alias+".s", x) + " UNION ALL " + part("2, "+y.n()+", "+y.alias+".s", y) + " ORDER BY tag, n", true
	}
	return part(x.n()+", "+x.alias+".s", x) + " UNION ALL " + part(y.n()+", "+y.alias+".s", y), false
}

// through compares a column with a value that comes out of a query of its own.
func (b *builder) through() (string, bool) {
	x := b.anyTable()
	c := b.eqColumn(x)
	value := pick(b.gen, c.pool) // a literal, for PostgreSQL could not tell a parameter's type
	if !b.d.mysql {
		value = fmt.Sprintf("CAST(%s AS %s)", value, bare(c.kind))
	}
	list, op := b.list(x), pick(b.gen, []string{"=", "=", ">=", "<"})
	if strings.HasPrefix(strings.ToLower(c.kind.name), "json") || c.kind.traits&ranked == 0 {
		op = "="
	}
	switch b.rng.IntN(4) {
	case 0:
		return fmt.Sprintf("SELECT %s FROM %s JOIN (SELECT %s AS v) q ON %s %s q.v", list, x.from(), value, x.dot(c), op), false
	case 1:
		return fmt.Sprintf("WITH p AS (SELECT %s AS v), q AS (SELECT * FROM p) SELECT %s FROM %s, q WHERE %s %s q.v", value, list, x.from(), x.dot(c), op), false
	case 2:
		return fmt.Sprintf("SELECT %s FROM %s WHERE %s %s (SELECT v FROM (SELECT %s AS v) q)", list, x.from(), x.dot(c), op, value), false
	}
	return fmt.Sprintf("WITH q (v) AS (SELECT %s UNION ALL SELECT %s) SELECT %s FROM %s JOIN q ON %s = q.v", value, value, list, x.from(), x.dot(c)), false
}

// ofDay looks at the time of day of moments (MySQL).
func (b *builder) ofDay(t named) string {
	for _, c := range t.columns {
		if strings.HasPrefix(c.kind.name, "DATETIME") || strings.HasPrefix(c.kind.name, "TIMESTAMP") {
			return pick(b.gen, []string{"TIME(" + t.dot(c) + ") = '02:30:00'", "TIME(" + t.dot(c) + ") BETWEEN '00:00' AND '12:00'",
				t.dot(c) + " >= STR_TO_DATE('2024-01-01', '%Y-%m-%d')", t.dot(c) + " < STR_TO_DATE('01.02.2024 10:00', '%d.%m.%Y %H:%i')"})
		}
	}
	return b.equality(t)
}

func (b *builder) cte() (string, bool) {
	x, y := b.anyTable(), b.anyTable()
	switch b.rng.IntN(4) {
	case 0:
		return fmt.Sprintf("WITH RECURSIVE r (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM r WHERE i < 4) SELECT r.i, COUNT(%s) FROM r LEFT JOIN %s ON %s.u = r.i GROUP BY r.i",
			x.n(), x.from(), x.alias), false
	case 1:
		return fmt.Sprintf("WITH q AS (SELECT %s.n, %s.u FROM %s%s) SELECT q.n, p.n AS m FROM q JOIN q p ON q.u = p.u", x.alias, x.alias, x.from(), b.where(x)), false
	}
	body := fmt.Sprintf("SELECT %s.n, %s.s, %s.u FROM %s%s", x.alias, x.alias, x.alias, x.from(), b.where(x))
	return fmt.Sprintf("WITH q AS (%s) SELECT q.n, q.s, %s FROM q JOIN %s ON q.%s = %s.%s%s", body, b.list(y), y.from(),
		"u", y.alias, "u", b.where(y)), false
}

func (b *builder) derived() (string, bool) {
	x, y := b.anyTable(), b.anyTable()
	switch b.rng.IntN(3) {
	case 0:
		return fmt.Sprintf("SELECT q.u, q.c FROM (SELECT %s.u, COUNT(*) AS c FROM %s%s GROUP BY %s.u) q WHERE q.c > %s", x.alias, x.from(), b.where(x), x.alias, b.literalN(3)), false
	case 1:
		inner := fmt.Sprintf("SELECT %s.n, %s.s FROM %s%s ORDER BY %s LIMIT 5", x.alias, x.alias, x.from(), b.where(x), x.n())
		return fmt.Sprintf("SELECT q.n, q.s FROM (%s) q", inner), false
	}
	return fmt.Sprintf("SELECT %s, q.n AS m FROM %s LEFT JOIN (SELECT * FROM %s%s) q ON q.s = %s.s%s", b.list(y), y.from(), x.from(), b.where(x), y.alias, b.where(y)), false
}

func (b *builder) distinct() (string, bool) {
	t := b.anyTable()
	list := t.alias + ".u"
	for _, c := range some(b.gen, t.of(exact), b.rng.IntN(2)) {
		list += ", " + t.dot(c)
	}
	return fmt.Sprintf("SELECT DISTINCT %s FROM %s%s", list, t.from(), b.where(t)), false
}

func (b *builder) top() (string, bool) {
	t := []named{b.anyTable()}
	from := t[0].from()
	if b.chance(25) {
		t = b.related()[:2]
		from = b.joined(pick(b.gen, []string{"JOIN", "LEFT JOIN"}), t)
	}
	by := byN(t...)
	if b.chance(60) {
		by = t[0].dot(pick(b.gen, t[0].of(ranked))) + pick(b.gen, []string{"", " DESC"}) + ", " + by
	} else if b.chance(50) {
		by = t[0].n() + " DESC"
		if len(t) > 1 {
			by += ", " + t[1].n()
		}
	}
	sql := fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %s LIMIT %s", b.list(t...), from, b.where(t...), by, b.value(fmt.Sprint(1+b.rng.IntN(6))))
	if b.chance(30) {
		sql += " OFFSET " + b.value(fmt.Sprint(b.rng.IntN(4)))
	}
	return sql, true
}

// lateral is a derived table that sees the tables before it, where the server
// knows that, and else a grouping with subtotals.
func (b *builder) lateral() (string, bool) {
	x, y := b.anyTable(), b.anyTable()
	switch {
	case b.d.maria:
		return fmt.Sprintf("SELECT %s.u, COUNT(*) FROM %s%s GROUP BY %s.u WITH ROLLUP", x.alias, x.from(), b.where(x), x.alias), false
	case !b.d.mysql && b.chance(30):
		return fmt.Sprintf("SELECT DISTINCT ON (%s.u) %s.u, %s FROM %s%s ORDER BY %s.u, %s", x.alias, x.alias, b.list(x), x.from(), b.where(x), x.alias, x.n()), true
	}
	return fmt.Sprintf("SELECT %s, q.n AS m FROM %s, LATERAL (SELECT %s.n FROM %s WHERE %s ORDER BY %s LIMIT 2) q%s", b.list(x), x.from(),
		y.alias, y.from(), b.link(x, y), y.n(), b.where(x)), false
}

// slow takes some ten milliseconds, so that a write can come and be applied while
// it runs, and shows every row of a table.
func (g *gen) slow() *read {
	t := some(g, g.base(), 4)
	for len(t) < 4 {
		t = append(t, t[0])
	}
	part := 3 // of the last table
	if !g.d.mysql {
		part = 12 // PostgreSQL takes longer for as many
	}
	return &read{kind: "slow", sql: fmt.Sprintf("SELECT a.*, (SELECT COUNT(*) FROM %s b, %s c, %s d WHERE a.u + b.u > c.u + d.u AND d.n %% %d = 0) AS m FROM %s a",
		t[1].name, t[2].name, t[3].name, part, t[0].name)}
}
