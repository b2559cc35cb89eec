package planner

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// cascades are the foreign keys by which a change of one table's rows changes
// another's: parent -> children.
type cascades map[[2]string][][2]string

// from lists the tables that a change of one reaches, at any depth, sorted.
func (c cascades) from(schema, name string) [][2]string {
	var out [][2]string
	seen := map[[2]string]bool{}
	for todo := [][2]string{{schema, name}}; len(todo) > 0; todo = todo[1:] {
		for _, child := range c[todo[0]] {
			if !seen[child] {
				seen[child] = true
				out = append(out, child)
				todo = append(todo, child)
			}
		}
	}
	slices.SortFunc(out, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	return out
}

// foreignKeys loads them; servers that log the children's rows themselves
// (MySQL from 9.6 on) have none that matter.
func (k *catalog) foreignKeys(ctx context.Context) (*once[cascades], error) {
	return load(ctx, k, func() *once[cascades] { return k.cascades }, func(o *once[cascades]) { k.cascades = o },
		func(ctx context.Context) (cascades, error) {
			if k.config.Dialect == MySQL && atLeast(k.config.Version, 9, 6) {
				return nil, nil
			}
			rows, err := k.query(ctx, 4, `SELECT UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME, CONSTRAINT_SCHEMA, TABLE_NAME
				FROM information_schema.REFERENTIAL_CONSTRAINTS
				WHERE UPDATE_RULE NOT IN ('RESTRICT', 'NO ACTION') OR DELETE_RULE NOT IN ('RESTRICT', 'NO ACTION')`)
			if err != nil {
				return nil, err
			}
			c := make(cascades)
			for _, r := range rows {
				parent := [2]string{text(r[0]), text(r[1])}
				c[parent] = append(c[parent], [2]string{text(r[2]), text(r[3])})
			}
			return c, nil
		})
}

// atLeast compares the start of a version text with major.minor.
func atLeast(version string, major, minor int) bool {
	parts := strings.FieldsFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	number := func(i int) int {
		if i >= len(parts) {
			return 0
		}
		n, err := strconv.Atoi(parts[i])
		if err != nil {
			return 0
		}
		return n
	}
	return number(0) > major || number(0) == major && number(1) >= minor
}
