package oracle

import (
	"fmt"
	"strings"
)

// plainTable is a table that no foreign key, family or trigger ties to others.
func (g *gen) plainTable() *table {
	var out []*table
	for _, t := range g.base() {
		if t.parent == nil && len(t.children) == 0 && !t.parted && t.inherits == nil && !t.triggers && !g.hasHeir(t) {
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return pick(g, out)
}

func (g *gen) hasHeir(t *table) bool {
	for _, o := range g.tables {
		if o.inherits == t {
			return true
		}
	}
	return false
}

// refill is one statement with rows for a table that was emptied.
func (g *gen) refill(t *table, rows int) []step {
	var out []step
	for range rows {
		out = append(out, g.insertInto(t)...)
	}
	return out
}

// truncate empties a table; a write of its own fills it again.
func (g *gen) truncate() []step {
	t := g.anyBase()
	empty := one("TRUNCATE TABLE %s", t.name)
	switch {
	case !g.d.mysql && len(t.children) > 0:
		empty = one("TRUNCATE TABLE %s CASCADE", t.name)
	case g.d.mysql && len(t.children) > 0:
		empty = append(append(sqls("SET foreign_key_checks = 0"), empty...), sqls("SET foreign_key_checks = 1")...)
	case g.d.mysql && t.parted && g.chance(60):
		empty = one("ALTER TABLE %s TRUNCATE PARTITION p0", t.name)
	}
	g.out.writes = append(g.out.writes, write{kind: "truncate", steps: empty})
	return g.refill(t, 10)
}

// load sends rows as a file.
func (g *gen) load() []step {
	t := g.anyBase()
	n, u := t.column("n"), t.column("u")
	columns := []*column{n, u}
	for _, c := range t.columns {
		if !c.null && c != n && c != u {
			return nil
		}
	}
	var file strings.Builder
	for range 1 + g.rng.IntN(4) {
		fmt.Fprintf(&file, "%s\t%d\n", g.newN(t), g.rng.IntN(5))
	}
	sql := fmt.Sprintf("COPY %s (%s) FROM STDIN", t.name, names(columns))
	if g.d.mysql {
		sql = fmt.Sprintf("LOAD DATA LOCAL INFILE 'rows' INTO TABLE %s (%s)", t.name, names(columns))
	}
	return []step{{sql: sql, file: []byte(file.String())}}
}

// change is a write of one plain statement.
func (g *gen) change() []step {
	for {
		make := pick(g, []func(*gen) []step{(*gen).insert, (*gen).updateOne, (*gen).updateOne, (*gen).updateSome, (*gen).deleteOne, (*gen).parentKey, (*gen).upsert, (*gen).updateKey})
		if steps := make(g); len(steps) > 0 {
			return steps
		}
	}
}

// changes are n of them, for a transaction. PostgreSQL undoes all of it when
// one is refused.
func (g *gen) changes(n int) []step {
	var out []step
	for range n {
		out = append(out, g.change()...)
	}
	return out
}

func enclosed(first string, body []step, last string) []step {
	return append(append(sqls(first), body...), sqls(last)...)
}

// transaction commits several changes, sometimes after a check in their midst.
func (g *gen) transaction() []step {
	if g.chance(40) {
		g.out.writes = append(g.out.writes, write{kind: "open transaction", undo: "ROLLBACK", steps: append(sqls("BEGIN"), g.changes(2)...)})
		return append(g.changes(1), sqls(pick(g, []string{"COMMIT", "COMMIT", "ROLLBACK"}))...)
	}
	return enclosed("BEGIN", g.changes(1+g.rng.IntN(3)), "COMMIT")
}

func (g *gen) savepoint() []step {
	body := append(g.change(), sqls("SAVEPOINT one")...)
	body = append(append(body, g.change()...), sqls("ROLLBACK TO SAVEPOINT one")...)
	if g.chance(50) {
		body = append(body, g.change()...)
	}
	return enclosed("BEGIN", body, "COMMIT")
}

func (g *gen) rollback() []step { return enclosed("BEGIN", g.changes(2), "ROLLBACK") }

// prepared is a transaction in two phases, with a check between them.
func (g *gen) prepared() []step {
	id := g.next()
	end := pick(g, []string{"COMMIT", "COMMIT", "ROLLBACK"})
	var first []step
	last, undo := fmt.Sprintf("%s PREPARED 'x%d'", end, id), fmt.Sprintf("ROLLBACK PREPARED 'x%d'", id)
	if g.d.mysql {
		first = append(enclosed(fmt.Sprintf("XA START 'x%d'", id), g.changes(2), fmt.Sprintf("XA END 'x%d'", id)), one("XA PREPARE 'x%d'", id)...)
		last, undo = fmt.Sprintf("XA %s 'x%d'", end, id), fmt.Sprintf("XA ROLLBACK 'x%d'", id)
	} else {
		first = enclosed("BEGIN", g.changes(2), fmt.Sprintf("PREPARE TRANSACTION 'x%d'", id))
	}
	g.out.writes = append(g.out.writes, write{kind: "prepared", undo: undo, steps: first})
	return sqls(last)
}

// hidden are changes that no text of an ordinary write shows.
func (g *gen) hidden() []step {
	t := g.anyBase()
	update := fmt.Sprintf("UPDATE %s SET %s WHERE n = %s", t.name, g.assigned(t, 2), g.someN(t))
	if g.d.mysql {
		switch g.rng.IntN(5) {
		case 3: // foreign keys do nothing
			return enclosed("SET foreign_key_checks = 0", append(sqls(update), g.change()...), "SET foreign_key_checks = 1")
		case 4:
			return one("UPDATE %s SET %s ORDER BY n DESC LIMIT 2", t.name, g.assigned(t, 2))
		case 0: // the log has the statement, not the rows
			return enclosed("SET binlog_format = STATEMENT", sqls(update), "SET binlog_format = ROW")
		case 1:
			name := fmt.Sprintf("p%d", g.next())
			return append(one("CREATE PROCEDURE %s() BEGIN %s; %s; END", name, update, g.insert()[0].sql), one("CALL %s()", name)...)
		}
		return enclosed("PREPARE x FROM '"+strings.ReplaceAll(update, "'", "''")+"'", sqls("EXECUTE x"), "DEALLOCATE PREPARE x")
	}
	switch g.rng.IntN(5) {
	case 4: // neither triggers nor foreign keys act
		return enclosed("SET session_replication_role = replica", append(sqls(update), g.change()...), "SET session_replication_role = DEFAULT")
	case 0:
		return one("DO $$ BEGIN %s; END $$", update)
	case 1:
		return one("EXPLAIN ANALYZE %s", update)
	case 2:
		return one("WITH d AS (DELETE FROM %s WHERE n = %s RETURNING 1) SELECT * FROM d", t.name, g.someN(t))
	}
	return one("WITH d AS (%s RETURNING n) SELECT * FROM d", update)
}
