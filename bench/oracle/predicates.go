package oracle

import (
	"fmt"
	"strings"
)

// named is a table in a FROM clause.
type named struct {
	alias string
	only  string // "ONLY ": without heirs
	*table
}

// builder makes one statement.
type builder struct {
	*gen
	how   how
	args  []any
	deep  int // nesting of subqueries
	last  int // of the aliases given
	views bool
}

// value writes a literal, or a parameter in its place.
func (b *builder) value(literal string) string {
	if b.how == asText || !b.chance(75) {
		return literal
	}
	a, ok := b.d.argument(literal)
	if !ok {
		return literal
	}
	b.args = append(b.args, a)
	return "?"
}

// drawn draws a value to compare a column with.
func (b *builder) drawn(c *column) string {
	switch {
	case b.chance(12) && len(c.kind.probes) > 0:
		return b.value(pick(b.gen, c.kind.probes))
	case b.chance(5):
		return b.value(pick(b.gen, c.kind.values))
	}
	return b.value(pick(b.gen, c.pool))
}

// as names a table in a FROM clause.
func (b *builder) as(t *table) named {
	b.last++
	b.views = b.views || t.over != nil
	return named{alias: string(rune('a' + (b.last-1)%26)), table: t}
}

func (b *builder) anyTable() named {
	t := b.as(pick(b.gen, b.tables))
	if !b.d.mysql && t.over == nil && (t.name == "parts" || b.hasHeir(t.table)) && b.chance(15) {
		t.only = "ONLY "
	}
	return t
}

func (t named) from() string                { return t.only + t.name + " " + t.alias }
func (t named) dot(c *column) string        { return t.alias + "." + c.name }
func (t named) n() string                   { return t.alias + ".n" }
func (b *builder) eqColumn(t named) *column { return pick(b.gen, t.of(0)) }

// where is a WHERE clause of one to three conditions, or now and then none.
func (b *builder) where(t ...named) string {
	if b.chance(8) {
		return ""
	}
	return " WHERE " + b.conditions(t...)
}

func (b *builder) conditions(t ...named) string {
	out := b.condition(pick(b.gen, t))
	for b.chance(40) && len(out) < 400 {
		joint := pick(b.gen, []string{" AND ", " AND ", " AND ", " OR "})
		out += joint + b.condition(pick(b.gen, t))
	}
	if strings.Contains(out, " OR ") {
		out = "(" + out + ")"
		if b.chance(20) {
			out = "NOT " + out
		}
	}
	return out
}

// condition is one condition on t.
func (b *builder) condition(t named) string {
	switch n := b.rng.IntN(100); {
	case n < 22:
		return b.onN(t)
	case n < 50:
		return b.equality(t)
	case n < 62:
		return b.membership(t)
	case n < 76:
		return b.span(t)
	case n < 84:
		return b.nullness(t)
	case n < 88:
		return b.pattern(t)
	case n < 92:
		return b.expression(t)
	}
	if b.deep > 1 {
		return b.equality(t)
	}
	return b.subquery(t)
}

func (b *builder) onN(t named) string {
	switch b.rng.IntN(5) {
	case 4:
		if b.d.mysql || b.how == asText {
			break
		}
		b.args = append(b.args, fmt.Sprintf("{%s,%s}", b.someN(t.table), b.someN(t.table)))
		return t.n() + " = ANY (?)"
	case 0:
		return fmt.Sprintf("%s IN (%s, %s, %s)", t.n(), b.value(b.someN(t.table)), b.value(b.someN(t.table)), b.value(b.someN(t.table)))
	case 1:
		from := t.first + b.rng.Int64N(t.rows+1)
		return fmt.Sprintf("%s BETWEEN %s AND %s", t.n(), b.value(fmt.Sprint(from)), b.value(fmt.Sprint(from+b.rng.Int64N(12))))
	}
	return fmt.Sprintf("%s = %s", t.n(), b.value(b.someN(t.table)))
}

func (b *builder) equality(t named) string {
	c := b.eqColumn(t)
	switch {
	case b.chance(8):
		return fmt.Sprintf("%s <> %s", t.dot(c), b.drawn(c))
	case b.chance(8) && b.d.mysql:
		return fmt.Sprintf("%s <=> %s", t.dot(c), b.drawn(c))
	case b.chance(8):
		if b.d.mysql {
			return fmt.Sprintf("%s = %s", b.drawn(c), t.dot(c))
		}
		return fmt.Sprintf("%s IS NOT DISTINCT FROM %s", t.dot(c), b.drawn(c))
	case b.chance(6):
		d := b.eqColumn(t)
		return fmt.Sprintf("(%s, %s) = (%s, %s)", t.dot(c), t.dot(d), b.drawn(c), b.drawn(d))
	}
	return fmt.Sprintf("%s = %s", t.dot(c), b.drawn(c))
}

func (b *builder) membership(t named) string {
	c := b.eqColumn(t)
	var in []string
	for range 1 + b.rng.IntN(4) {
		in = append(in, b.drawn(c))
	}
	if b.chance(15) {
		in = append(in, "NULL")
	}
	not := ""
	if b.chance(20) {
		not = "NOT "
	}
	if !b.d.mysql && b.chance(10) && not == "" && !strings.HasSuffix(c.kind.ddl, "[]") {
		return fmt.Sprintf("%s = ANY (ARRAY[%s]::%s[])", t.dot(c), strings.Join(in, ", "), bare(c.kind))
	}
	return fmt.Sprintf("%s %sIN (%s)", t.dot(c), not, strings.Join(in, ", "))
}

// bare is a type's name without its collation.
func bare(k *kind) string {
	name, _, _ := strings.Cut(k.ddl, " COLLATE")
	return name
}

func (b *builder) span(t named) string {
	ranks := t.of(ranked)
	c := pick(b.gen, ranks)
	switch b.rng.IntN(3) {
	case 0:
		return fmt.Sprintf("%s BETWEEN %s AND %s", t.dot(c), b.drawn(c), b.drawn(c))
	case 1:
		return fmt.Sprintf("%s >= %s AND %s < %s", t.dot(c), b.drawn(c), t.dot(c), b.drawn(c))
	}
	return fmt.Sprintf("%s %s %s", t.dot(c), pick(b.gen, []string{"<", "<=", ">", ">="}), b.drawn(c))
}

func (b *builder) nullness(t named) string {
	c := pick(b.gen, t.columns)
	return fmt.Sprintf("%s IS %sNULL", t.dot(c), pick(b.gen, []string{"", "NOT "}))
}

func (b *builder) pattern(t named) string {
	texts := t.of(textual)
	if len(texts) == 0 {
		return b.equality(t)
	}
	c := pick(b.gen, texts)
	return fmt.Sprintf("%s LIKE %s", t.dot(c), b.value(pick(b.gen, []string{"'a%'", "'%b'", "'_'", "'A'", "'%é%'", "''"})))
}

func (b *builder) expression(t named) string {
	u := t.alias + ".u"
	if b.d.mysql && b.chance(25) {
		return b.ofDay(t)
	}
	if b.functions && b.chance(40) {
		return pick(b.gen, []string{"twice(" + u + ") = " + b.literalN(7), u + " < tally()", t.n() + " % 7 < tally()"})
	}
	if c := t.json(); c != nil && b.chance(60) {
		if b.d.mysql {
			return fmt.Sprintf("JSON_EXTRACT(%s, '$.a') = %s", t.dot(c), b.literalN(3))
		}
		return fmt.Sprintf("%s ->> 'a' = %s", t.dot(c), b.value(pick(b.gen, []string{"'1'", "'2'", "'1.0'"})))
	}
	if texts := t.of(textual); len(texts) > 0 && b.chance(40) {
		return fmt.Sprintf("LOWER(%s) = %s", t.dot(pick(b.gen, texts)), b.value("'a'"))
	}
	return pick(b.gen, []string{
		u + " + 1 = " + b.literalN(4), "COALESCE(" + u + ", 0) = " + b.literalN(4), u + " * 2 > " + b.literalN(5),
		"CASE WHEN " + u + " IS NULL THEN 1 ELSE " + u + " END = " + b.literalN(4), t.n() + " % 4 = " + b.literalN(4),
	})
}

// json is a column of JSON objects, if there is one.
func (t *table) json() *column {
	for _, c := range t.columns {
		if strings.HasPrefix(strings.ToLower(c.kind.name), "json") {
			return c
		}
	}
	return nil
}

// literalN is a small number, never a parameter: PostgreSQL could not tell its type.
func (b *builder) literalN(below int) string { return fmt.Sprint(b.rng.IntN(below)) }

// subquery is a condition with a SELECT inside, correlated or not.
func (b *builder) subquery(t named) string {
	b.deep++
	defer func() { b.deep-- }()
	o := b.anyTable()
	not := pick(b.gen, []string{"", "", "NOT "})
	switch b.rng.IntN(6) {
	case 0, 1:
		return fmt.Sprintf("%sEXISTS (SELECT 1 FROM %s WHERE %s AND %s)", not, o.from(), b.link(t, o), b.condition(o))
	case 2:
		return fmt.Sprintf("%sEXISTS (SELECT 1 FROM %s WHERE %s)", not, o.from(), b.conditions(o))
	case 3:
		return fmt.Sprintf("%s.u %sIN (SELECT %s.u FROM %s%s)", t.alias, not, o.alias, o.from(), b.where(o))
	case 4:
		return fmt.Sprintf("%s.s %sIN (SELECT %s.s FROM %s WHERE %s)", t.alias, not, o.alias, o.from(), b.conditions(o))
	}
	return fmt.Sprintf("%s %s (SELECT %s(%s.n) FROM %s%s)", t.n(), pick(b.gen, []string{"<", "<=", ">=", "<>", "="}),
		pick(b.gen, []string{"MIN", "MAX", "COUNT"}), o.alias, o.from(), b.where(o))
}

// link is a condition that joins two tables: along a foreign key, or on
// columns of one type.
func (b *builder) link(x, y named) string {
	switch {
	case x.parent == y.table && b.chance(70):
		return fmt.Sprintf("%s.r = %s.k", x.alias, y.alias)
	case y.parent == x.table && b.chance(70):
		return fmt.Sprintf("%s.k = %s.r", x.alias, y.alias)
	case b.chance(35):
		return fmt.Sprintf("%s.s = %s.s", x.alias, y.alias)
	case b.chance(40):
		return fmt.Sprintf("%s.u = %s.u", x.alias, y.alias)
	case b.chance(40):
		return fmt.Sprintf("%s = %s AND %s", x.n(), y.n(), b.onN(x))
	}
	return fmt.Sprintf("%s = %s", x.n(), y.n())
}
