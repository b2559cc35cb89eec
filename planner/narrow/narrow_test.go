package narrow

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"freshet/planner/mysql"
	"freshet/planner/postgres"
	"freshet/planner/query"
	"freshet/planner/scan"
)

// tables are those that statements here may read, with their columns; columns
// of one name are alike in all, but for s.
var tables = map[string][]string{
	"a": {"id", "k", "x", "s"},
	"b": {"id", "k", "y", "s"},
	"c": {"id", "k", "z"},
}

// narrowed says in words what a statement's references are narrowed to: for
// each "table(equal; ranges) reads".
func narrowed(t *testing.T, text string, isPostgres bool) string {
	t.Helper()
	d := scan.Take(text, scan.Options{Postgres: isPostgres, AnsiQuotes: isPostgres})
	var a *query.Analysis
	var err error
	if isPostgres {
		a, err = postgres.Analyse(d.Skeleton, d.Depth, d.Chain)
	} else {
		a, err = mysql.Analyse(d.Skeleton, mysql.Mode{})
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	in := Input{Analysis: a, Fold: !isPostgres}
	names := make([][]string, len(a.Tables))
	for i, table := range a.Tables {
		columns := map[string]int{}
		names[i] = tables[table.Name.Name]
		for ordinal, name := range names[i] {
			columns[name] = ordinal
		}
		in.Columns = append(in.Columns, columns)
	}
	column := func(c Ref) string { return names[c.Table][c.Ordinal] }
	in.Alike = func(x, y Ref) bool {
		return (column(x) == "s") == (column(y) == "s") && (column(x) != "s" || x.Table == y.Table)
	}
	refs, ok := References(in)
	if !ok {
		return "unknown"
	}
	var out []string
	for _, r := range refs {
		var terms []string
		for _, e := range r.Equal {
			terms = append(terms, column(Ref{r.Table, e.Ordinal}))
		}
		for _, g := range r.Ranges {
			terms = append(terms, column(Ref{r.Table, g.Ordinal})+"..")
		}
		reads := "*"
		if !r.All {
			var list []string
			for _, ordinal := range r.Reads {
				list = append(list, column(Ref{r.Table, ordinal}))
			}
			reads = strings.Join(list, "")
		}
		out = append(out, fmt.Sprintf("%s(%s)%s", a.Tables[r.Table].Name.Name, strings.Join(terms, ","), reads))
	}
	return strings.Join(out, " ")
}

// TestNarrowing covers the rules of flow and of names, one by one.
func TestNarrowing(t *testing.T) {
	const both, pgOnly, myOnly = 0, 1, 2
	for _, c := range []struct {
		dialect    int
		text, want string
	}{
		{both, "SELECT a.x FROM a WHERE a.k = 1 AND a.id > 2 AND a.id < 9", "a(k,id..)idkx"},
		{both, "SELECT x FROM a JOIN b ON a.id = b.id WHERE y = 1 AND x = 2", "a(x)idx b(y)idy"},
		{both, "SELECT id FROM a JOIN b ON a.id = b.id WHERE id = 1", "a()id b()id"},
		{both, "SELECT 1 FROM a LEFT JOIN b ON a.k = b.k AND a.x = 1 AND b.y = 2 WHERE a.k = 3", "a(k)kx b(k,y)ky"},
		{both, "SELECT 1 FROM a LEFT JOIN b ON a.k = b.k AND a.x = 1 WHERE b.y = 2", "a(x)kx b(y)ky"},
		{both, "SELECT 1 FROM a LEFT JOIN b ON a.k = b.k AND a.x = 1 WHERE b.y IS NULL", "a()kx b()ky"},
		{both, "SELECT 1 FROM a LEFT JOIN (b JOIN c ON b.k = c.k AND b.y = 1) ON a.id = b.id", "a()id b(y)idky c()k"},
		{both, "SELECT 1 FROM (a JOIN b ON a.k = b.k) LEFT JOIN c ON c.k = b.k WHERE a.k = 1", "a(k)k b(k)k c(k)k"},
		{both, "SELECT 1 FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON b.k = c.k WHERE c.z = 1 AND a.k = 2", "a(k)k b(k)k c(k,z)kz"},
		{both, "SELECT 1 FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON b.id = c.k WHERE a.k = 2", "a(k)k b(k)idk c()k"},
		{both, "SELECT 1 FROM a RIGHT JOIN b ON a.k = b.k AND b.y = 1 WHERE b.k = 1", "a(k)k b(k)ky"},
		// Text under two rules of comparison does not carry over.
		{both, "SELECT 1 FROM a, b WHERE a.s = b.s AND a.s = 'v'", "a(s)s b()s"},
		// A chain of equalities, and the shortest list along it.
		{both, "SELECT 1 FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND c.k IN (1, 2, 3) AND a.k IN (1, 2)", "a(k)k b(k)k c(k)k"},
		{both, "SELECT 1 FROM a, b WHERE a.k BETWEEN 1 AND 2 AND b.k = a.k", "a(k..)k b(k..)k"},
		// A subquery sees what holds of its rows, not the other way round.
		{both, "SELECT 1 FROM a WHERE a.k = 1 AND NOT EXISTS (SELECT * FROM b WHERE b.k = a.k)", "a(k)k b(k)k"},
		{both, "SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.k = 1)", "a()k b(k)k"},
		{both, "SELECT (SELECT y FROM b WHERE k = x) FROM a WHERE x = 1", "a(x)x b(k)ky"},
		{both, "SELECT 1 FROM a LEFT JOIN b ON b.k = a.k AND EXISTS (SELECT 1 FROM c WHERE c.k = b.k) WHERE a.k = 1", "a(k)k b(k)k c(k)k"},
		{both, "SELECT 1 FROM a WHERE a.k = 1 AND a.id IN (SELECT b.id FROM b WHERE b.k = a.k UNION SELECT c.id FROM c)", "a(k)idk b(k)idk c()id"},
		// Derived tables and common table expressions see nothing beside them.
		{both, "SELECT d.k FROM a JOIN (SELECT k FROM b WHERE y = 1) d ON d.k = a.k WHERE a.k = 1", "a(k)k b(y)ky"},
		{both, "WITH a AS (SELECT * FROM b WHERE k = 1) SELECT * FROM a WHERE a.k = 2", "b(k)*"},
		{both, "SELECT 1 FROM a WHERE a.k = 1 AND EXISTS (WITH d AS (SELECT 1 FROM b WHERE b.k = a.k) SELECT 1 FROM d)", "a(k)k b(k)k"},
		// What is read: by whom a name is meant, as far as is known.
		{both, "SELECT count(*) FROM a", "a()"},
		{both, "SELECT a.* FROM a, b", "a()* b()"},
		{both, "SELECT x AS y FROM a ORDER BY y", "a()x"},
		{both, "SELECT q FROM (SELECT x AS q FROM a) d, b", "a()x b()"},
		{both, "SELECT q FROM a, b", "a()* b()*"},
		{both, "SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE x = y)", "a()x b()y"},
		{both, "SELECT 1 FROM a NATURAL JOIN b WHERE k = 1", "a()* b()*"},
		{both, "SELECT 1 FROM a JOIN b USING (k) JOIN c USING (k) WHERE k = 1", "a(k)k b(k)k c(k)k"},
		{both, "SELECT 1 FROM a LEFT JOIN b USING (k) WHERE k = 1", "a(k)k b(k)k"},
		{both, "SELECT 1 FROM a LEFT JOIN b USING (k) WHERE b.k = 1", "a(k)k b(k)k"},
		{both, "SELECT 1 FROM a RIGHT JOIN b USING (k) WHERE k = 1", "a(k)k b(k)k"},
		{pgOnly, "SELECT 1 FROM a FULL JOIN b USING (k) WHERE k = 1", "a()k b()k"},
		{pgOnly, "SELECT 1 FROM a FULL JOIN b ON a.k = b.k AND a.x = 1 WHERE a.k = 2", "a(k)kx b(k)k"},
		{pgOnly, "SELECT 1 FROM a FULL JOIN b ON a.k = b.k AND a.x = 1 WHERE b.k = 2", "a(k,x)kx b(k)k"},
		{pgOnly, "SELECT 1 FROM a, LATERAL (SELECT y FROM b WHERE b.k = a.k LIMIT 1) d WHERE a.k = 1", "a(k)k b(k)ky"},
		{pgOnly, "SELECT 1 FROM a LEFT JOIN LATERAL (SELECT y FROM b WHERE b.k = a.k) d ON a.x = 1 WHERE a.k = 1", "a(k)kx b(k)ky"},
		{pgOnly, "SELECT a FROM a", "a()*"},
		{pgOnly, "SELECT j.x FROM (a JOIN b USING (k)) AS j WHERE j.k = 1", "a()* b()*"},
		{pgOnly, "SELECT 1 FROM a WHERE a.k = 1 AND EXISTS (SELECT 1 FROM (b JOIN c USING (k)) AS a WHERE a.y = a.z)", "a(k)k b()* c()*"},
		{pgOnly, "SELECT 1 FROM a AS q (k, id, x, s) WHERE q.k = 1", "a()*"},
		// Names of tables may be told apart by case, or not.
		{myOnly, "SELECT 1 FROM a WHERE a.k = 1 AND EXISTS (SELECT 1 FROM b A, c WHERE c.k = a.k)", "a(k)k b()k c()k"},
		{myOnly, "SELECT 1 FROM a WHERE A.k = 1", "a()*"},
	} {
		for _, isPostgres := range []bool{false, true} {
			if c.dialect == pgOnly && !isPostgres || c.dialect == myOnly && isPostgres {
				continue
			}
			if got := narrowed(t, c.text, isPostgres); got != c.want {
				t.Errorf("%s (PostgreSQL: %v)\ngot  %s\nwant %s", c.text, isPostgres, got, c.want)
			}
		}
	}
}

// TestTooMuch gives up on statements that are larger than the bounds.
func TestTooMuch(t *testing.T) {
	many := strings.Repeat("a, ", maxLeaves) + "a"
	names := strings.Split(many, ", ")
	for i := range names {
		names[i] += fmt.Sprintf(" a%d", i)
	}
	if got := narrowed(t, "SELECT 1 FROM "+strings.Join(names, ", "), true); got != "unknown" {
		t.Errorf("%d tables: %s", len(names), got)
	}
	got := narrowed(t, "SELECT 1 FROM "+strings.Join(names[1:], ", ")+" WHERE a1.k = 1", true)
	if parts := strings.Split(got, " "); len(parts) != maxLeaves || parts[0] != "a(k)k" || slices.Contains(parts[1:], "a(k)k") {
		t.Errorf("%d tables: %s", maxLeaves, got)
	}
	conditions := strings.Repeat(" AND k = x", 2*maxConjuncts)
	if got := narrowed(t, "SELECT 1 FROM a WHERE id = 1"+conditions, true); got != "a(id)idkx" {
		t.Errorf("%d conditions: %s", 2*maxConjuncts, got)
	}
}
