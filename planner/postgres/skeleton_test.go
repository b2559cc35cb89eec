package postgres

import (
	"strings"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"

	"freshet/planner/scan"
)

var options = scan.Options{Postgres: true, AnsiQuotes: true, NoBackslash: true}

// FuzzSkeleton holds the scanner to the server's own grammar: if a text
// parses, it must parse without its comments too, and so must its skeleton
// unless it has a literal where no parameter may stand; all to the same tree
// but for literals (the fingerprint leaves them out).
func FuzzSkeleton(f *testing.F) {
	for _, s := range []string{
		"SELECT * FROM t WHERE a = -5 AND b = E'x\\'y' AND c IN (1, 2.5, 'x') -- end",
		"SELECT $2::int, a->>'b', $$x$$, $t$ $$ $t$ FROM t WHERE a=@-5 LIMIT 10 OFFSET 5",
		"SELECT /* /* nested */ */ U&'\\0041', B'01', X'ff', N'n', 1e5, .5, 5. FROM \"a\"\"b\" WHERE x BETWEEN 1 AND 2 AND 3 < y",
		"INSERT INTO t VALUES (1, 'a', f(2)), (3, 'b', DEFAULT)",
		"SELECT a FROM t WHERE b LIKE 'x%' ESCAPE '!' AND c <> ALL (ARRAY[1,2]) AND d = 'a' \n 'b'",
		"SELECT 1; SELECT 'a;b'; -- c",
		"SELECT a[1:2], b::numeric(10,2), c.*, 0x1F, 1_000 FROM c WHERE d=+1 OR e=- 1",
		"UPDATE t SET a = 5, b = DEFAULT WHERE c = date '2024-01-01'",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 {
			return
		}
		for i := range len(text) {
			if text[i] == 0 {
				return // the grammar is C and stops there
			}
		}
		d := scan.Take(text, options)
		scan.Normalise(text, options)
		want, err := pg.FingerprintToUInt64(text)
		if err != nil {
			return
		}
		if strings.Count(text, "+")+strings.Count(text, "-") > 200 {
			return // a run of signs longer than the scanner reads
		}
		if d.Broken || d.Exec {
			t.Fatalf("%q parses, but the scan broke", text)
		}
		if got, err := pg.FingerprintToUInt64(d.Plain); err != nil || got != want {
			t.Fatalf("%q without comments is %q: %v", text, d.Plain, err)
		}
		if got, err := pg.FingerprintToUInt64(d.Skeleton); err == nil && got != want {
			t.Fatalf("%q has the skeleton %q, which is another statement", text, d.Skeleton)
		}
	})
}
