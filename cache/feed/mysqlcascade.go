package feed

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/client"
)

const (
	// maxAncestors bounds the walk up a chain of foreign keys.
	maxAncestors = 1000
	// cascadeTries is how often the foreign keys above a table are read until
	// they are twice the same.
	cascadeTries = 5
)

// learnCascades notes which tables' changes reach tb through foreign keys:
// InnoDB does that by itself, and the log does not say so; only MySQL from 9.6 on
// has them done, and logged, by the server.
//
// Before they are relied on, any change of definition on the way must be
// noticed. So they are noted first, in a way that relies on nothing, which has
// the stream drop tb when such a table is redefined, and then read again: what
// was changed before that is in what is read, what is changed after it drops tb.
func (s *mysqlSource) learnCascades(c *client.Conn, tb *Table, key nameKey) error {
	if s.fact().loggedCascades() && s.logFact().loggedCascades() {
		return nil
	}
	tracker := s.feed.cfg.Tracker
	var known map[nameKey][]cascade
	for range cascadeTries {
		parents, err := s.ancestors(c, &tb.Spec, key)
		if err != nil {
			return err
		}
		if len(parents) == 0 || sameKeys(known, parents) {
			tracker.adoptCascades(tb, key, parents)
			return nil
		}
		known = parents
		blunt := make(map[nameKey][]cascade, len(parents))
		for parent, list := range parents {
			blunt[parent] = bluntAll(list)
		}
		tracker.adoptCascades(tb, key, blunt)
	}
	return fmt.Errorf("feed: the foreign keys above %s.%s do not stay the same", tb.Spec.Schema, tb.Spec.Name)
}

// loggedCascades tells whether the server logs what foreign keys do.
func (f mysqlFacts) loggedCascades() bool {
	return !f.maria && strings.EqualFold(f.vars["innodb_native_foreign_keys"], "OFF")
}

func sameKeys(a, b map[nameKey][]cascade) bool {
	return a != nil && maps.EqualFunc(a, b, func([]cascade, []cascade) bool { return true })
}

// ancestors finds every table whose updates or deletes change rows of another
// one through foreign keys that lead to it, with the foreign keys by which that
// begins.
func (s *mysqlSource) ancestors(c *client.Conn, spec *TableSpec, key nameKey) (map[nameKey][]cascade, error) {
	parents := make(map[nameKey][]cascade)
	seen := map[nameKey]bool{key: true}
	next := []nameKey{{schema: spec.Schema, name: spec.Name}}
	for len(next) > 0 {
		child := next[0]
		next = next[1:]
		keys, err := s.foreignKeys(c, child)
		if err != nil {
			return nil, err
		}
		for _, fk := range keys {
			parent := s.key(fk.parent.schema, fk.parent.name)
			fk.cascade.child = key
			parents[parent] = append(parents[parent], fk.cascade)
			if !seen[parent] {
				seen[parent] = true
				next = append(next, fk.parent)
			}
		}
		if len(seen) > maxAncestors {
			return nil, fmt.Errorf("feed: %s.%s has more than %d ancestors by foreign keys", spec.Schema, spec.Name, maxAncestors)
		}
	}
	return parents, nil
}

// foreignKey is one foreign key that changes its table's rows.
type foreignKey struct {
	parent  nameKey
	cascade cascade
}

// foreignKeys reads those of one table.
func (s *mysqlSource) foreignKeys(c *client.Conn, of nameKey) ([]foreignKey, error) {
	rows, err := mysqlRows(c, "SELECT CONSTRAINT_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME, "+
		"UPDATE_RULE NOT IN ('RESTRICT', 'NO ACTION'), DELETE_RULE NOT IN ('RESTRICT', 'NO ACTION') "+
		"FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = "+quoteMySQL(of.schema)+" AND TABLE_NAME = "+quoteMySQL(of.name)+
		" AND NOT (DELETE_RULE IN ('RESTRICT', 'NO ACTION') AND UPDATE_RULE IN ('RESTRICT', 'NO ACTION'))")
	if err != nil {
		return nil, err
	}
	var out []foreignKey
	for _, row := range rows {
		fk := foreignKey{parent: nameKey{schema: row[1], name: row[2]}, cascade: cascade{onUpdate: row[3] == "1", onDelete: row[4] == "1"}}
		if fk.cascade.onUpdate {
			if err := s.referred(c, of, row[0], &fk); err != nil {
				return nil, err
			}
		}
		out = append(out, fk)
	}
	return out, nil
}

// referred finds the places of the columns that a foreign key refers to. It
// leaves them open when one of them is computed from others, or not found.
func (s *mysqlSource) referred(c *client.Conn, of nameKey, constraint string, fk *foreignKey) error {
	names, err := mysqlRows(c, "SELECT REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = "+quoteMySQL(of.schema)+
		" AND TABLE_NAME = "+quoteMySQL(of.name)+" AND CONSTRAINT_NAME = "+quoteMySQL(constraint))
	if err != nil {
		return err
	}
	columns, err := mysqlRows(c, "SELECT COLUMN_NAME, IFNULL(GENERATION_EXPRESSION, '') <> '' FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = "+
		quoteMySQL(fk.parent.schema)+" AND TABLE_NAME = "+quoteMySQL(fk.parent.name)+" ORDER BY ORDINAL_POSITION")
	if err != nil {
		return err
	}
	var found []int
	for _, name := range names {
		at := slices.IndexFunc(columns, func(row []string) bool { return strings.EqualFold(row[0], name[0]) })
		if at < 0 || columns[at][1] == "1" {
			return nil
		}
		found = append(found, at)
	}
	fk.cascade.columns, fk.cascade.width = found, len(columns)
	return nil
}
