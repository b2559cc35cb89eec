package mysql

import (
	"strings"
	"testing"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
	"github.com/pingcap/tidb/pkg/parser/test_driver"

	"freshet/planner/scan"
)

// blank replaces every literal and parameter by one parameter.
type blank struct{}

func (blank) Enter(n ast.Node) (ast.Node, bool) { return n, false }

func (blank) Leave(n ast.Node) (ast.Node, bool) {
	switch v := n.(type) {
	case *test_driver.ValueExpr, *test_driver.ParamMarkerExpr:
		return ast.NewParamMarkerExpr(0).(*test_driver.ParamMarkerExpr), true
	case *ast.UnaryOperationExpr:
		if _, ok := v.V.(*test_driver.ParamMarkerExpr); ok {
			return v.V, true
		}
	}
	return n, true
}

// restored writes a text's tree with literals blanked; "" if it does not parse.
func restored(text string) (out string) {
	defer func() {
		if recover() != nil {
			out = "" // the parser's literals have limits that it panics at
		}
	}()
	p := parser.New()
	stmts, _, err := p.ParseSQL(text)
	if err != nil {
		return ""
	}
	var b strings.Builder
	for _, s := range stmts {
		n, _ := s.Accept(blank{})
		if err := n.Restore(format.NewRestoreCtx(format.DefaultRestoreFlags, &b)); err != nil {
			return ""
		}
		b.WriteString(";")
	}
	return b.String()
}

// FuzzSkeleton holds the scanner to the parser: a text that parses must parse
// without its comments, and its skeleton, if it parses, must be the same
// statement but for literals.
func FuzzSkeleton(f *testing.F) {
	for _, s := range []string{
		"SELECT * FROM t WHERE a = -5 AND b = 'x\\'y' AND c IN (1, 2.5, \"x\") -- end",
		"SELECT a->>'$.b', x'ff', 0xff, b'01', N'n', _utf8'u', 1e5, .5, 5. FROM `a``b` WHERE x BETWEEN 1 AND 2 AND 3 < y",
		"INSERT INTO t VALUES (1, 'a', f(2)), (3, 'b', DEFAULT) ON DUPLICATE KEY UPDATE a = VALUES(a) + 1",
		"SELECT a FROM t # comment\nWHERE b LIKE 'x%' ESCAPE '!' AND d = 'a' 'b' LIMIT 5, 10",
		"SELECT 1; SELECT 'a;b'",
		"SELECT t.1a, 5--1, @x, @@y, @`z` FROM t.2b WHERE d=+1 OR e=- 1 OR f<=>5 OR g:=3",
		"UPDATE t SET a = 5 WHERE c = DATE '2024-01-01' AND d > NOW() - INTERVAL 1 DAY",
		"SELECT /*+ HINT(a) */ 1 /* c */ FROM t WHERE (a,b) IN ((1,2),(3,4))",
	} {
		f.Add(s)
	}
	opt := Mode{}.Options()
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 || strings.Contains(text, "/*") || strings.Contains(text, "*/") {
			return // comments of TiDB's own are executed by its parser
		}
		d := scan.Take(text, opt)
		scan.Normalise(text, opt)
		want := restored(text)
		if want == "" || d.Broken || d.Exec {
			return // a text that the scanner refuses is not given to the parser
		}
		if got := restored(d.Plain); got != want {
			t.Fatalf("%q without comments is %q: %q, want %q", text, d.Plain, got, want)
		}
		if got := restored(d.Skeleton); got != "" && got != want {
			t.Fatalf("%q has the skeleton %q: %q, want %q", text, d.Skeleton, got, want)
		}
	})
}
