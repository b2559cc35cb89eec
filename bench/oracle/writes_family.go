package oracle

import "fmt"

// family draws a change to PostgreSQL's partitions and heirs: by the names of
// leaves, between leaves, and of which leaves there are.
func (g *gen) family() []step {
	if g.d.mysql {
		return nil
	}
	var kinds []func(t *table) []step
	var t *table
	for _, of := range some(g, g.base(), 99) {
		switch {
		case of.name == "parts":
			kinds = []func(t *table) []step{g.move, g.move, g.leafRows, g.leafRows, g.emptyLeaf, g.newLeaf, g.newLeaf, g.adopted}
		case of.inherits != nil:
			kinds = []func(t *table) []step{g.emptyHeir, g.newHeir, g.newHeir, g.apart}
		default:
			continue
		}
		t = of
		break
	}
	if t == nil {
		return nil
	}
	return pick(g, kinds)(t)
}

// move takes rows from one partition to another, or would.
func (g *gen) move(t *table) []step {
	return one("UPDATE %s SET n = n + %d WHERE n = %s", t.name, pick(g, []int{10, 20, -10, 1000}), g.someN(t))
}

// leafRows writes to a leaf by its own name.
func (g *gen) leafRows(t *table) []step {
	leaf := fmt.Sprintf("%s_%d", t.name, g.rng.IntN(3))
	if g.chance(30) {
		return one("DELETE FROM %s WHERE u = %d", leaf, g.rng.IntN(5))
	}
	return one("UPDATE %s SET %s WHERE u = %d OR n = %s", leaf, g.assigned(t, 2), g.rng.IntN(5), g.someN(t))
}

// emptyLeaf truncates a leaf; rows come back by the root's name.
func (g *gen) emptyLeaf(t *table) []step {
	g.out.writes = append(g.out.writes, write{kind: "family", steps: one("TRUNCATE %s_%d", t.name, g.rng.IntN(2))})
	return one("INSERT INTO %s (%s) VALUES %s, (%d, 1, NULL) ON CONFLICT DO NOTHING", t.name, names(t.written()), g.row(t, t.written()), 6000+g.rng.IntN(20))
}

// newLeaf makes a leaf, sometimes one that is partitioned itself, writes to it by
// its own name, and takes it away again.
func (g *gen) newLeaf(t *table) []step {
	id := g.next()
	leaf, low := fmt.Sprintf("leaf%d", id), 100_000+id*100
	create := one("CREATE TABLE %s PARTITION OF %s FOR VALUES FROM (%d) TO (%d)", leaf, t.name, low, low+100)
	if g.chance(30) {
		create = one("CREATE TABLE %s PARTITION OF %s FOR VALUES FROM (%d) TO (%d) PARTITION BY RANGE (n)", leaf, t.name, low, low+100)
		create = append(create, one("CREATE TABLE %s_in PARTITION OF %s DEFAULT", leaf, leaf)...)
		leaf += "_in"
	}
	if g.chance(50) {
		create = append(create, one("INSERT INTO %s (n, u) VALUES (%d, 1)", t.name, low)...)
	}
	g.later(create, one("INSERT INTO %s (n, u) VALUES (%d, %d), (%d, NULL)", leaf, low+1, g.rng.IntN(5), low+2),
		one("UPDATE %s SET n = %d WHERE n = %s", t.name, low+3, g.someN(t)), one("UPDATE %s SET u = u + 1", leaf))
	if g.chance(50) {
		return one("DROP TABLE leaf%d", id)
	}
	g.later(one("ALTER TABLE %s DETACH PARTITION leaf%d", t.name, id), one("DELETE FROM %s", leaf))
	return one("DROP TABLE leaf%d", id)
}

// adopted attaches a table that has rows, changes them there, and detaches it
// without a lock on the root.
func (g *gen) adopted(t *table) []step {
	id := g.next()
	low := 100_000 + id*100
	g.later(append(one("CREATE TABLE leaf%d (LIKE %s INCLUDING ALL)", id, t.name), one("INSERT INTO leaf%d (n, u) VALUES (%d, 2), (%d, 3)", id, low, low+1)...),
		one("ALTER TABLE %s ATTACH PARTITION leaf%d FOR VALUES FROM (%d) TO (%d)", t.name, id, low, low+100),
		one("UPDATE leaf%d SET u = 4 WHERE n = %d", id, low))
	return one("ALTER TABLE %s DETACH PARTITION leaf%d", t.name, id)
}

// emptyHeir truncates an heir, or its parent alone.
func (g *gen) emptyHeir(t *table) []step {
	g.out.writes = append(g.out.writes, write{kind: "family", steps: one("TRUNCATE %s", t.name)})
	return g.insertInto(t)
}

// newHeir makes an heir with a row, changes it, and takes it away.
func (g *gen) newHeir(t *table) []step {
	id := g.next()
	from := pick(g, []string{t.name, t.inherits.name})
	g.later(one("CREATE TABLE heir%d (x text, PRIMARY KEY (n)) INHERITS (%s)", id, from),
		one("INSERT INTO heir%d (%s) SELECT %s FROM %s LIMIT 2", id, names(t.written()), names(t.written()), t.name),
		one("UPDATE heir%d SET %s", id, g.assigned(t, 1)))
	return one("DROP TABLE heir%d", id)
}

// apart changes an heir's rows while they are not its parent's, and only the
// parent's own.
func (g *gen) apart(t *table) []step {
	g.later(one("ALTER TABLE %s NO INHERIT %s", t.name, t.inherits.name), one("UPDATE %s SET %s", t.name, g.assigned(t, 1)),
		one("ALTER TABLE %s INHERIT %s", t.name, t.inherits.name))
	return one("UPDATE ONLY %s SET %s WHERE n = %s", t.inherits.name, g.assigned(t.inherits, 1), g.someN(t.inherits))
}

// later adds writes of their own, each with a check after it.
func (g *gen) later(writes ...[]step) {
	for _, steps := range writes {
		g.out.writes = append(g.out.writes, write{kind: "family", steps: steps})
	}
}
