package oracle

import (
	"fmt"
	"slices"
)

// ddl draws a change of definitions.
func (g *gen) ddl() []step {
	if g.focus == "frozen" && g.chance(70) {
		return append(g.change(), g.refresh()...)
	}
	kinds := []func(*gen) []step{(*gen).addColumn, (*gen).addColumn, (*gen).dropColumn, (*gen).dropColumn, (*gen).index, (*gen).swap,
		(*gen).remake, (*gen).modify, (*gen).moveColumn, (*gen).renameTwice}
	if g.d.mysql {
		kinds = append(kinds, (*gen).exchange, (*gen).rerefer, (*gen).rerefer)
	} else {
		kinds = append(kinds, (*gen).reidentify, (*gen).detach, (*gen).rowless, (*gen).rerefer, (*gen).relabel, (*gen).shadow,
			(*gen).rewrite, (*gen).disinherit, (*gen).rights, (*gen).rights, (*gen).policy)
		if g.functions {
			kinds = append(kinds, (*gen).refunction, (*gen).refunction)
		}
	}
	if slices.ContainsFunc(g.tables, func(t *table) bool { return t.over != nil }) {
		kinds = append(kinds, (*gen).review)
	}
	return pick(g, kinds)(g)
}

// viewed tells whether a view is over the table: its columns are then fixed.
func (g *gen) viewed(t *table) bool {
	return slices.ContainsFunc(g.tables, func(v *table) bool { return v.over == t })
}

func (g *gen) addColumn() []step {
	t := g.anyBase()
	if t.inherits != nil || t.parted {
		return nil
	}
	t.spare++
	return one("ALTER TABLE %s ADD COLUMN x%d INT DEFAULT %d", t.name, t.spare, g.rng.IntN(9))
}

func (g *gen) dropColumn() []step {
	t := g.anyBase()
	if t.spare == 0 {
		return nil
	}
	t.spare--
	return one("ALTER TABLE %s DROP COLUMN x%d", t.name, t.spare+1)
}

func (g *gen) index() []step {
	t := g.anyBase()
	columns := slices.DeleteFunc(t.of(indexed), func(c *column) bool { return c.generated != "" })
	if len(columns) == 0 {
		return nil
	}
	name := fmt.Sprintf("i%d", g.next())
	g.out.writes = append(g.out.writes, write{kind: "ddl", steps: one("CREATE INDEX %s ON %s (%s)", name, t.name, pick(g, columns).name)})
	if g.d.mysql {
		return one("DROP INDEX %s ON %s", name, t.name)
	}
	return one("DROP INDEX %s", name)
}

// swap puts a copy with other rows in a table's place.
func (g *gen) swap() []step {
	t := g.plainTable()
	if t == nil || g.viewed(t) {
		return nil
	}
	n := g.next()
	if g.d.mysql {
		out := one("CREATE TABLE fresh%d LIKE %s", n, t.name)
		out = append(out, one("INSERT INTO fresh%d (%s) SELECT %s FROM %s WHERE n %% 2 = 0", n, names(t.written()), names(t.written()), t.name)...)
		out = append(out, one("UPDATE fresh%d SET %s", n, g.assigned(t, 1))...)
		return append(out, one("RENAME TABLE %s TO stale%d, fresh%d TO %s", t.name, n, n, t.name)...)
	}
	out := one("CREATE TABLE fresh%d (LIKE %s INCLUDING ALL)", n, t.name)
	out = append(out, one("INSERT INTO fresh%d (%s) SELECT %s FROM %s WHERE n %% 2 = 0", n, names(t.written()), names(t.written()), t.name)...)
	out = append(out, one("UPDATE fresh%d SET %s", n, g.assigned(t, 1))...)
	return append(out, enclosed("BEGIN", append(one("ALTER TABLE %s RENAME TO stale%d", t.name, n),
		one("ALTER TABLE fresh%d RENAME TO %s", n, t.name)...), "COMMIT")...)
}

// remake drops a table and makes it again, with other rows.
func (g *gen) remake() []step {
	t := g.plainTable()
	if t == nil || g.viewed(t) {
		return nil
	}
	t.spare = 0
	out := append(one("DROP TABLE %s", t.name), sqls(g.createText(t, t.name))...)
	if !g.d.mysql && g.chance(50) {
		out = append(out, one("ALTER TABLE %s REPLICA IDENTITY FULL", t.name)...)
	}
	return append(out, g.refill(t, 10)...)
}

// modify changes a column's type: a longer text, another collation, a wider
// integer.
func (g *gen) modify() []step {
	t := g.anyBase()
	if t.inherits != nil || t.parted || t.parent != nil || len(t.children) > 0 || g.viewed(t) || g.hasHeir(t) {
		return nil
	}
	var fit []*column
	for _, c := range t.columns {
		if c.name[0] == 'c' && c.generated == "" && t.column("g") == nil && c.kind.is(textual|indexed) {
			fit = append(fit, c)
		}
	}
	if len(fit) == 0 {
		return one("ALTER TABLE %s ALTER COLUMN u SET DEFAULT %d", t.name, g.rng.IntN(4))
	}
	c := pick(g, fit)
	to := pick(g, g.collations())
	if g.d.mysql {
		return one("ALTER TABLE %s MODIFY %s VARCHAR(30) COLLATE %s", t.name, c.name, to)
	}
	return one("ALTER TABLE %s ALTER COLUMN %s TYPE varchar(30) COLLATE %s", t.name, c.name, to)
}

func (g *gen) collations() []string {
	if g.d.mysql {
		return []string{"utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci"}
	}
	return []string{`"C"`, `"default"`} // under others equal texts print differently
}

// moveColumn renames a column away and back: statements fail between.
func (g *gen) moveColumn() []step {
	t := g.anyBase()
	if t.inherits != nil || t.parted || g.viewed(t) || g.hasHeir(t) || t.triggers || t.column("g") != nil {
		return nil
	}
	c := t.columns[len(t.columns)-1]
	if c.name[0] != 'c' {
		return nil
	}
	g.out.writes = append(g.out.writes, write{kind: "ddl", steps: one("ALTER TABLE %s RENAME COLUMN %s TO moved", t.name, c.name)})
	return one("ALTER TABLE %s RENAME COLUMN moved TO %s", t.name, c.name)
}

// renameTwice takes a table away and brings it back with a row changed.
func (g *gen) renameTwice() []step {
	t := g.plainTable()
	if t == nil || g.viewed(t) {
		return nil
	}
	n := g.next()
	g.out.writes = append(g.out.writes, write{kind: "ddl", steps: one("ALTER TABLE %s RENAME TO away%d", t.name, n)})
	return append(one("UPDATE away%d SET %s WHERE n = %s", n, g.assigned(t, 2), g.someN(t)), one("ALTER TABLE away%d RENAME TO %s", n, t.name)...)
}

// exchange swaps a partition's rows with a table's.
func (g *gen) exchange() []step {
	for _, t := range g.base() {
		if t.parted {
			n := g.next()
			out := one("CREATE TABLE part%d LIKE %s", n, t.name)
			out = append(out, one("ALTER TABLE part%d REMOVE PARTITIONING", n)...)
			return append(out, one("ALTER TABLE %s EXCHANGE PARTITION p1 WITH TABLE part%d", t.name, n)...)
		}
	}
	return nil
}

// reidentify changes what PostgreSQL logs of old rows.
func (g *gen) reidentify() []step {
	return one("ALTER TABLE %s REPLICA IDENTITY %s", g.anyBase().name, pick(g, []string{"FULL", "FULL", "FULL", "DEFAULT", "DEFAULT", "NOTHING"}))
}

// detach takes a partition away and brings it back.
func (g *gen) detach() []step {
	for _, t := range g.base() {
		if t.name == "parts" {
			g.out.writes = append(g.out.writes, write{kind: "ddl", steps: one("ALTER TABLE parts DETACH PARTITION parts_1")})
			return append(one("UPDATE parts_1 SET u = 4"), one("ALTER TABLE parts ATTACH PARTITION parts_1 FOR VALUES FROM (6010) TO (6020)")...)
		}
	}
	return nil
}

// rowless hides rows by a policy; the tests' user is above policies, so the
// answers stay.
func (g *gen) rowless() []step {
	t := g.plainTable()
	if t == nil {
		return nil
	}
	return one("ALTER TABLE %s %s ROW LEVEL SECURITY", t.name, pick(g, []string{"ENABLE", "DISABLE", "DISABLE"}))
}

// review makes a view anew with other rows.
func (g *gen) review() []step {
	for _, v := range g.tables {
		if v.frozen {
			return g.refresh()
		}
		if v.name == "v0" {
			// The columns are those of when it was made.
			return one("CREATE OR REPLACE VIEW v0 AS SELECT %s FROM %s WHERE u IS NULL OR u < %d", names(v.columns), v.over.name, 1+g.rng.IntN(4))
		}
	}
	return nil
}

// refresh brings a materialized view up to date, sometimes row by row, for which
// it needs an index.
func (g *gen) refresh() []step {
	switch g.rng.IntN(6) {
	case 0:
		g.later(one("CREATE UNIQUE INDEX mv_n ON mv (n)"), g.change(), one("REFRESH MATERIALIZED VIEW CONCURRENTLY mv"), g.change(),
			one("REFRESH MATERIALIZED VIEW CONCURRENTLY mv"))
		return one("DROP INDEX mv_n")
	case 1:
		return append(one("CREATE UNIQUE INDEX mv_n ON mv (n)"), append(one("REFRESH MATERIALIZED VIEW CONCURRENTLY mv"), one("DROP INDEX mv_n")...)...)
	case 2:
		g.later(one("REFRESH MATERIALIZED VIEW mv WITH NO DATA"))
	}
	return one("REFRESH MATERIALIZED VIEW mv")
}

// rerefer makes a foreign key anew, with other actions.
func (g *gen) rerefer() []step {
	for _, t := range some(g, g.base(), 99) {
		if t.parent == nil {
			continue
		}
		drop := "CONSTRAINT"
		if g.d.mysql {
			drop = "FOREIGN KEY"
		}
		t.onDelete = pick(g, []string{"CASCADE", "SET NULL", "NO ACTION"})
		t.onUpdate = pick(g, []string{"CASCADE", "SET NULL", "NO ACTION"})
		return append(one("ALTER TABLE %s DROP %s fk_%s", t.name, drop, t.name), one("ALTER TABLE %s ADD %s", t.name, g.reference(t, t.name))...)
	}
	return nil
}

// relabel gives a value of an enum another name, and it back after a check: no
// row changes, every answer that shows the value does.
func (g *gen) relabel() []step {
	if !slices.ContainsFunc(g.base(), func(t *table) bool {
		return slices.ContainsFunc(t.columns, func(c *column) bool { return c.kind.name == "enum" })
	}) {
		return nil
	}
	g.out.writes = append(g.out.writes, write{kind: "ddl", steps: one("ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'")})
	return one("ALTER TYPE mood RENAME VALUE 'fine' TO 'ok'")
}

// shadow puts a table of the same name into a schema that the search path has
// first, and takes it away again.
func (g *gen) shadow() []step {
	t := g.plainTable()
	if t == nil {
		return nil
	}
	make := one("CREATE TABLE %s.%s (LIKE %s.%s INCLUDING ALL)", frontName, t.name, schemaName, t.name)
	make = append(make, one("INSERT INTO %s.%s (%s) SELECT %s FROM %s.%s WHERE n %% 2 = 0", frontName, t.name, names(t.written()), names(t.written()), schemaName, t.name)...)
	g.out.writes = append(g.out.writes, write{kind: "ddl", steps: make}, write{kind: "shadowed", steps: g.change()})
	return one("DROP TABLE %s.%s", frontName, t.name)
}

// rewrite gives a table another file with the same rows.
func (g *gen) rewrite() []step {
	return one("VACUUM FULL %s", g.anyBase().name)
}

// disinherit takes an heir's rows out of its parent's reads, and brings them back.
func (g *gen) disinherit() []step {
	for _, t := range g.base() {
		if t.inherits != nil {
			g.out.writes = append(g.out.writes, write{kind: "ddl", steps: one("ALTER TABLE %s NO INHERIT %s", t.name, t.inherits.name)})
			return one("ALTER TABLE %s INHERIT %s", t.name, t.inherits.name)
		}
	}
	return nil
}

// rights takes the reader's right to a table away, all or but for two columns,
// and gives it back after a check.
func (g *gen) rights() []step {
	t := pick(g, g.tables)
	revoke := one("REVOKE SELECT ON %s FROM %s", t.name, readerName)
	if g.chance(40) {
		revoke = append(revoke, one("GRANT SELECT (n, u) ON %s TO %s", t.name, readerName)...)
	}
	g.out.writes = append(g.out.writes, write{kind: "ddl", steps: revoke})
	return one("GRANT SELECT ON %s TO %s", t.name, readerName)
}

// policy shows the reader some rows only, then others, then all.
func (g *gen) policy() []step {
	t := g.plainTable()
	if t == nil {
		return nil
	}
	below := func() int { return 1 + g.rng.IntN(3) }
	g.out.writes = append(g.out.writes,
		write{kind: "ddl", steps: one("ALTER TABLE %s ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON %s USING (u < %d)", t.name, t.name, below())},
		write{kind: "ddl", steps: one("ALTER POLICY few ON %s USING (u > %d)", t.name, below())})
	return one("DROP POLICY few ON %s; ALTER TABLE %s DISABLE ROW LEVEL SECURITY", t.name, t.name)
}

// refunction gives a function another body.
func (g *gen) refunction() []step {
	if g.chance(50) {
		return one("CREATE OR REPLACE FUNCTION twice(i integer) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT i * %d'", 1+g.rng.IntN(4))
	}
	return one("CREATE OR REPLACE FUNCTION tally() RETURNS bigint STABLE LANGUAGE sql AS 'SELECT COUNT(*) FROM %s.t0 WHERE u > %d'", schemaName, g.rng.IntN(4))
}
