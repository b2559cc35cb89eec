package oracle

import "fmt"

// prologue makes what column types need, in a database or schema that is
// empty.
func (g *gen) prologue() {
	if g.d.mysql {
		// Loose, so that zero dates and whatever is out of range get in.
		g.setup("SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
		if g.chance(40) {
			g.setup("SET binlog_row_image = '%s'", pick(g, []string{"MINIMAL", "NOBLOB"}))
		}
		return
	}
	g.setup("CREATE TYPE mood AS ENUM ('sad', 'ok', 'Happy')")
	g.setup("CREATE COLLATION insensitive (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
	g.setup("DO $$ BEGIN CREATE ROLE " + readerName + "; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
	g.setup("ALTER ROLE " + readerName + " NOBYPASSRLS")
	g.setup("GRANT USAGE ON SCHEMA %s, %s TO %s", schemaName, frontName, readerName)
	for _, schema := range []string{schemaName, frontName} {
		g.setup("ALTER DEFAULT PRIVILEGES IN SCHEMA %s GRANT SELECT ON TABLES TO %s", schema, readerName)
	}
	if g.chance(12) {
		g.functions = true
		g.setup("CREATE FUNCTION twice(i integer) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT i * 2'")
	}
	g.dropRare()
}

// dropRare takes the types that are not built in out of most rounds: operators
// of an extension are looked at with suspicion everywhere.
func (g *gen) dropRare() {
	if g.seldom(15, "extension") {
		g.setup("CREATE EXTENSION citext")
		g.setup("CREATE DOMAIN positive AS integer CHECK (value > 0)")
		return
	}
	d := *g.d
	d.kinds = nil
	for _, k := range g.d.kinds {
		if !k.rare {
			d.kinds = append(d.kinds, k)
		}
	}
	g.d = &d
}

// readerName is a role that may only read, and that policies hold for.
const readerName = "freshet_oracle_reader"

// extras are triggers, views and PostgreSQL's table families.
func (g *gen) extras() {
	tables := g.base()
	if g.functions {
		g.setup("CREATE FUNCTION tally() RETURNS bigint STABLE LANGUAGE sql AS 'SELECT COUNT(*) FROM %s.t0 WHERE u < 3'", schemaName)
	}
	if g.chance(40) {
		g.trigger(pick(g, tables))
	}
	if g.chance(30) {
		g.view(pick(g, tables))
	}
	if !g.d.mysql && g.seldom(12, "families") {
		g.inherit(pick(g, tables))
	}
	if !g.d.mysql && g.seldom(12, "frozen") {
		g.materialized(pick(g, tables))
	}
	if g.seldom(20, "families") {
		g.partitioned()
	}
	if !g.d.mysql && g.seldom(10, "policies") {
		for _, t := range some(g, g.base(), 1+g.rng.IntN(3)) {
			g.shield(t)
		}
	}
}

// trigger lets writes to t change a table of their own and another one.
func (g *gen) trigger(t *table) {
	log := &table{name: "log", key: keyPrimary, triggers: true, first: 9000}
	log.columns = []*column{{name: "n", kind: g.integer()}, {name: "u", kind: g.small(), pool: []string{"0", "1", "2", "3"}, null: true},
		{name: "s", kind: g.shared, pool: t.column("s").pool, null: true}}
	g.create(log)
	g.fill(log, 8)
	g.tables = append(g.tables, log)
	t.triggers = true
	bump := "UPDATE log SET u = COALESCE(u, 0) + 1 WHERE n = 9001 + %s.n %% 8"
	if g.d.mysql {
		for _, e := range [][2]string{{"INSERT", "NEW"}, {"UPDATE", "NEW"}, {"DELETE", "OLD"}} {
			if g.chance(70) {
				g.setup("CREATE TRIGGER on_%s AFTER %s ON %s FOR EACH ROW "+bump, e[0], e[0], t.name, e[1])
			}
		}
		if g.chance(40) {
			g.setup("CREATE TRIGGER before_it BEFORE UPDATE ON %s FOR EACH ROW SET NEW.u = (NEW.u + 1) %% 5", t.name)
		}
		return
	}
	g.setup("CREATE FUNCTION bump() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF TG_OP = 'DELETE' THEN "+bump+
		"; RETURN OLD; END IF; "+bump+"; RETURN NEW; END $$", "OLD", "NEW")
	g.setup("CREATE TRIGGER on_change AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW EXECUTE FUNCTION bump()", t.name)
}

// view makes a view over t, and sometimes one over that.
func (g *gen) view(t *table) {
	v := &table{name: "v0", columns: t.columns, first: t.first, rows: t.rows, over: t}
	with := ""
	if !g.d.mysql && g.chance(30) {
		with = "WITH (security_invoker = true) "
	}
	g.setup("CREATE VIEW v0 %sAS SELECT * FROM %s WHERE u IS NULL OR u < 3", with, t.name)
	g.tables = append(g.tables, v)
	if g.chance(40) {
		w := &table{name: "v1", columns: t.columns, first: t.first, rows: t.rows, over: v}
		g.setup("CREATE VIEW v1 AS SELECT * FROM v0 WHERE n %% 3 <> 0")
		g.tables = append(g.tables, w)
	}
}

// materialized makes a view that keeps its rows until it is refreshed.
func (g *gen) materialized(t *table) {
	v := &table{name: "mv", columns: t.columns, first: t.first, rows: t.rows, over: t, frozen: true}
	g.setup("CREATE MATERIALIZED VIEW mv AS SELECT * FROM %s WHERE u IS NULL OR u < 4", t.name)
	g.tables = append(g.tables, v)
}

// inherit makes a child whose rows the parent's reads show.
func (g *gen) inherit(t *table) {
	c := &table{name: "heir", key: keyPrimary, inherits: t, columns: t.columns, first: 7000}
	g.setup("CREATE TABLE heir (PRIMARY KEY (n)) INHERITS (%s)", t.name)
	g.fill(c, 6)
	g.tables = append(g.tables, c)
}

// partitioned makes a table in parts; PostgreSQL's leaves can be written to
// by their own names.
func (g *gen) partitioned() {
	t := &table{name: "parts", key: keyPrimary, parted: true, first: 6000}
	t.columns = []*column{{name: "n", kind: g.integer()}, {name: "u", kind: g.small(), pool: []string{"0", "1", "2", "3", "4"}, null: true},
		{name: "s", kind: g.shared, pool: g.pool(g.shared), null: true}}
	g.tables = append(g.tables, t)
	if g.d.mysql {
		g.setup("%s PARTITION BY RANGE (n) (PARTITION p0 VALUES LESS THAN (6010), PARTITION p1 VALUES LESS THAN (6020), PARTITION p2 VALUES LESS THAN MAXVALUE)",
			g.createText(t, t.name))
		g.fill(t, 30)
		return
	}
	g.setup("%s PARTITION BY RANGE (n)", g.createText(t, t.name))
	g.setup("CREATE TABLE parts_0 PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (6010)")
	g.setup("CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (6010) TO (6020)")
	g.setup("CREATE TABLE parts_2 PARTITION OF parts DEFAULT")
	for i := range 3 {
		if g.chance(40) {
			g.setup("ALTER TABLE parts_%d REPLICA IDENTITY FULL", i)
		}
	}
	g.fill(t, 30)
	for i, first := range []int64{5000, 6010, 8000} {
		if g.chance(50) {
			leaf := &table{name: fmt.Sprintf("parts_%d", i), key: keyPrimary, columns: t.columns, parted: true, first: first, rows: 5}
			g.tables = append(g.tables, leaf)
		}
	}
}
