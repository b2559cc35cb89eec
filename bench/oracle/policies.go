package oracle

import "fmt"

// shield lets the reader see some of a table's rows only, for good.
func (g *gen) shield(t *table) {
	if t.shielded {
		return
	}
	t.shielded = true
	g.setup("ALTER TABLE %s ENABLE ROW LEVEL SECURITY", t.name)
	g.setup("CREATE POLICY shown ON %s USING (%s)", t.name, g.shown())
	if g.chance(30) {
		g.setup("CREATE POLICY more ON %s FOR SELECT TO %s USING (%s)", t.name, readerName, g.shown())
	}
	if g.chance(30) {
		g.setup("CREATE POLICY less ON %s AS RESTRICTIVE USING (%s)", t.name, g.shown())
	}
}

// shown is a policy's condition; not each of them may be cached.
func (g *gen) shown() string {
	n := g.rng.IntN(4)
	return pick(g, []string{
		fmt.Sprintf("u < %d", n+1), fmt.Sprintf("u IS NULL OR u > %d", n), fmt.Sprintf("n %% 2 = %d", n%2), fmt.Sprintf("u BETWEEN 1 AND %d", n+1),
		fmt.Sprintf("u IN (%d, %d)", n, n+1), fmt.Sprintf("CURRENT_USER = '%s' AND u < %d", readerName, n+1), fmt.Sprintf("current_user <> session_user AND n %% 3 <> %d", n%3),
		"s IS NOT NULL", fmt.Sprintf("EXISTS (SELECT 1 FROM %s.t0 WHERE t0.u = %d)", schemaName, n),
		fmt.Sprintf("coalesce(current_setting('oracle.x', true), '1') = '%d'", n%2)})
}

// policies changes which rows the reader is shown: by what the rows hold, by the
// policies, by who the reader is.
func (g *gen) policies() []step {
	for _, t := range some(g, g.base(), 99) {
		if !t.shielded {
			continue
		}
		off := one("ALTER TABLE %s DISABLE ROW LEVEL SECURITY", t.name)
		switch g.rng.IntN(6) {
		case 0:
			g.out.writes = append(g.out.writes, write{kind: "policies", steps: off})
			return one("ALTER TABLE %s ENABLE ROW LEVEL SECURITY", t.name)
		case 1:
			g.out.writes = append(g.out.writes, write{kind: "policies", steps: one("ALTER ROLE %s BYPASSRLS", readerName)})
			return one("ALTER ROLE %s NOBYPASSRLS", readerName)
		case 2:
			return one("ALTER POLICY shown ON %s USING (%s)", t.name, g.shown())
		case 3:
			g.out.writes = append(g.out.writes, write{kind: "policies", steps: one("CREATE POLICY extra ON %s USING (%s)", t.name, g.shown())})
			return one("DROP POLICY extra ON %s", t.name)
		}
		return one("UPDATE %s SET u = %d WHERE n = %s OR u = %d", t.name, g.rng.IntN(5), g.someN(t), g.rng.IntN(5))
	}
	return nil
}
