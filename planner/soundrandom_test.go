package planner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// randomSQL writes random queries over three tables of one form, with small
// values, so that most conditions hold now and then. What a server does not take
// (an ambiguous name, a FULL JOIN it cannot do) is passed over by the caller.
type randomSQL struct {
	*rand.Rand
	postgres, lateral bool
	depth, aliases    int
}

// soundTables all have the columns id, k, j (numbers), s (text), d (a day) and
// m (a moment).
var soundTables = []string{"t1", "t2", "t3"}

// soundViews have the same columns.
var soundViews = []string{
	"v1 AS SELECT a.id, a.k, b.j, a.s, b.d, a.m FROM t1 a LEFT JOIN t2 b ON a.k = b.id AND b.j = 2 WHERE a.s <> 'c'",
	"v2 AS SELECT v.id, t.k, count(*) AS j, max(t.s) AS s, min(v.d) AS d, max(t.m) AS m FROM v1 v JOIN t3 t ON t.k = v.k GROUP BY v.id, t.k",
}

// sight are the aliases whose columns can be named, the innermost last.
type sight []string

func (in sight) and(more ...string) sight { return slices.Concat(in, more) }

func pick[T any](r *randomSQL, list ...T) T { return list[r.IntN(len(list))] }

func (r *randomSQL) chance(percent int) bool { return r.IntN(100) < percent }

// value writes a literal of a column's type.
func (r *randomSQL) value(column string) string {
	switch column {
	case "s":
		return "'" + pick(r, "a", "A", "b", "c") + "'"
	case "d":
		return fmt.Sprintf("'2024-01-%02d'", 1+r.IntN(9))
	case "m":
		return fmt.Sprintf("'2024-01-01 %02d:00:00'", r.IntN(6))
	}
	return fmt.Sprint(r.IntN(6))
}

// column writes a column in sight, mostly of the inner tables, mostly with its
// table.
func (r *randomSQL) column(in sight, name string) string {
	if r.chance(8) {
		return name
	}
	return in[len(in)-1-min(r.IntN(len(in)), r.IntN(len(in)))] + "." + name
}

func (r *randomSQL) name() string { return pick(r, "id", "k", "k", "j", "s", "d", "m") }

// like is a column of the same type.
func (r *randomSQL) like(name string) string {
	if name == "s" || name == "d" || name == "m" {
		return name
	}
	return pick(r, "id", "k", "j")
}

// comparison writes one condition.
func (r *randomSQL) comparison(in sight) string {
	name := r.name()
	c := r.column(in, name)
	switch r.IntN(12) {
	case 0, 1, 2:
		return c + " = " + r.value(name)
	case 3, 4, 5:
		return c + " = " + r.column(in, r.like(name))
	case 6:
		return c + " IN (" + r.value(name) + ", " + r.value(name) + ")"
	case 7:
		return c + " BETWEEN " + r.value(name) + " AND " + r.value(name)
	case 8:
		return c + " >= " + r.value(name) + " AND " + r.column(in, name) + " < " + r.value(name)
	case 9:
		return r.value(name) + " = " + c
	case 10:
		return c + " <> " + r.value(name)
	}
	return c + pick(r, " IS NULL", " IS NOT NULL")
}

// condition writes a condition that may have subqueries.
func (r *randomSQL) condition(in sight) string {
	switch n := r.IntN(20); {
	case n < 9:
		return r.comparison(in)
	case n < 14:
		return r.condition(in) + " AND " + r.condition(in)
	case n < 15:
		return "(" + r.condition(in) + " OR " + r.condition(in) + ")"
	case n < 16:
		return "NOT (" + r.condition(in) + ")"
	case r.depth > 1:
		return r.comparison(in)
	case n < 18:
		return pick(r, "", "NOT ") + "EXISTS (" + r.inner(in, pick(r, "*", "1")) + ")"
	case n < 19:
		name := pick(r, "id", "k", "j")
		return r.column(in, name) + pick(r, " IN (", " NOT IN (") + r.inner(in, r.like(name)) + ")"
	}
	return pick(r, "1", "0", "2") + " = (" + r.inner(in, "count(*)") + ")"
}

// inner writes a subquery that returns one column.
func (r *randomSQL) inner(in sight, what string) string {
	r.depth++
	defer func() { r.depth-- }()
	from, names := r.from(in, 1+r.IntN(2))
	if what == "id" || what == "k" || what == "j" {
		what = names[0] + "." + what
	}
	q := "SELECT " + what + " FROM " + from
	if r.chance(85) {
		q += " WHERE " + r.condition(in.and(names...))
	}
	return q
}

// from writes FROM items joined by commas and JOIN, and the aliases they go by.
func (r *randomSQL) from(outside sight, n int) (string, []string) {
	text, names := r.joined(outside, nil, n)
	if r.chance(15) {
		more, other := r.joined(outside, names, 1)
		return text + ", " + more, append(names, other...)
	}
	return text, names
}

func (r *randomSQL) joined(outside sight, before []string, n int) (string, []string) {
	if n == 1 {
		return r.item(outside, before)
	}
	left := 1 + r.IntN(n-1)
	a, as := r.joined(outside, before, left)
	b, bs := r.joined(outside, slices.Concat(before, as), n-left)
	if n-left > 1 {
		b = "(" + b + ")"
	}
	names := slices.Concat(as, bs)
	join := pick(r, "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "CROSS JOIN")
	if r.postgres && r.chance(15) {
		join = "FULL JOIN"
	}
	switch {
	case join == "CROSS JOIN":
		return a + " CROSS JOIN " + b, names
	case r.chance(12):
		return a + " " + join + " " + b + " USING (" + pick(r, "id", "k", "s") + ")", names
	case r.chance(3):
		return a + " NATURAL " + join + " " + b, names
	}
	in := sight(names)
	if r.chance(10) {
		in = outside.and(names...)
	}
	on := r.comparison(in)
	if r.chance(80) || join == "FULL JOIN" {
		on = pick(r, as...) + "." + pick(r, "k", "j", "id") + " = " + pick(r, bs...) + "." + pick(r, "k", "j", "id")
	}
	switch {
	case join == "FULL JOIN" && !r.chance(40):
		// The server cannot do it with much more than an equality.
	case join == "FULL JOIN":
		c := pick(r, "id", "k", "j")
		on += " AND " + r.column(in, c) + " = " + r.value(c)
	case r.chance(50):
		on += " AND " + r.condition(in)
	}
	return a + " " + join + " " + b + " ON " + on, names
}

// item writes a table or a derived one.
func (r *randomSQL) item(outside sight, before []string) (string, []string) {
	r.aliases++
	alias := fmt.Sprintf("x%d", r.aliases)
	if r.depth > 1 || r.chance(80) {
		if r.chance(8) {
			return pick(r, "v1 ", "v2 ") + alias, []string{alias}
		}
		return pick(r, soundTables...) + " " + alias, []string{alias}
	}
	lateral := ""
	in := sight(nil)
	if r.lateral && r.chance(50) {
		lateral, in = "LATERAL ", outside.and(before...)
	}
	r.depth++
	defer func() { r.depth-- }()
	from, names := r.from(in, 1)
	q := "SELECT " + r.columns(names[0]) + " FROM " + from
	if r.chance(80) {
		q += " WHERE " + r.condition(in.and(names...))
	}
	if r.chance(30) {
		q += fmt.Sprintf(" ORDER BY %s.j, %[1]s.id LIMIT %d", names[0], 1+r.IntN(3))
	}
	return lateral + "(" + q + ") " + alias, []string{alias}
}

func (r *randomSQL) columns(alias string) string {
	if r.chance(40) {
		return alias + ".*"
	}
	return strings.ReplaceAll("@.id, @.k, @.j, @.s, @.d, @.m", "@", alias)
}

// query writes a whole statement.
func (r *randomSQL) query() string {
	r.depth, r.aliases = 0, 0
	if r.chance(10) {
		return r.query1("id") + pick(r, " UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT ") + r.query1("k")
	}
	if r.chance(12) {
		alias := "c"
		return "WITH " + alias + " AS (" + r.query1("*") + ") SELECT c.id, x.s FROM c JOIN t2 x ON x.k = c.k WHERE " + r.condition(sight{"x"})
	}
	return r.query1("")
}

// query1 writes one SELECT: of all columns of its first table, of one of them,
// or of what luck brings.
func (r *randomSQL) query1(what string) string {
	from, names := r.from(nil, 1+r.IntN(3))
	in := sight(names)
	tail := ""
	if r.chance(90) {
		tail = " WHERE " + r.condition(in)
		for r.chance(60) {
			c := r.name()
			tail += " AND " + r.column(in, c) + " = " + pick(r, r.value(c), r.value(c), r.column(in, r.like(c)))
		}
	}
	switch {
	case what == "*":
		what = names[0] + ".*"
	case what != "":
		what = names[0] + "." + what
	case r.chance(15):
		what = "count(*)"
	case r.chance(15):
		c := r.column(in, "k")
		what = c + ", count(*), max(" + r.column(in, "j") + ")"
		tail += " GROUP BY " + c
		if r.chance(50) {
			tail += " HAVING count(*) > 1 AND max(" + r.column(in, "id") + ") > 2"
		}
	case r.chance(15):
		what = "*"
	default:
		what = pick(r, "", "", "DISTINCT ") + r.column(in, r.name()) + " AS p, " + r.column(in, r.name()) + " AS q"
		if r.chance(25) {
			what += ", (" + r.inner(in, "count(*)") + ") AS n"
		}
		if r.chance(20) {
			tail += fmt.Sprintf(" ORDER BY 1, 2 LIMIT %d", 1+r.IntN(4))
		}
	}
	return "SELECT " + what + " FROM " + from + tail
}
