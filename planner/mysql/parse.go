// Package mysql reads MySQL and MariaDB statements with TiDB's parser and says
// what it found as a query.Analysis. It asks no catalog. What that parser does
// not know (some of MariaDB's syntax) is an error, and passes through.
package mysql

import (
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver" // the parser's literal values

	"freshet/planner/query"
	"freshet/planner/scan"
)

// MaxBytes bounds the text that is parsed.
const MaxBytes = 16 << 10

// Mode is sql_mode as far as it changes how text is read.
type Mode struct {
	mode mysql.SQLMode
	// Foreign names a mode with a grammar of its own, which is not parsed.
	Foreign string
}

// ParseMode reads a sql_mode value; modes that do not change the grammar are
// ignored.
func ParseMode(s string) Mode {
	var m Mode
	for _, name := range strings.Split(strings.ToUpper(s), ",") {
		switch name = strings.TrimSpace(name); name {
		case "ANSI":
			m.mode |= mysql.ModeANSIQuotes | mysql.ModePipesAsConcat | mysql.ModeIgnoreSpace
		case "ANSI_QUOTES":
			m.mode |= mysql.ModeANSIQuotes
		case "PIPES_AS_CONCAT":
			m.mode |= mysql.ModePipesAsConcat
		case "IGNORE_SPACE":
			m.mode |= mysql.ModeIgnoreSpace
		case "HIGH_NOT_PRECEDENCE":
			m.mode |= mysql.ModeHighNotPrecedence
		case "NO_BACKSLASH_ESCAPES":
			m.mode |= mysql.ModeNoBackslashEscapes
		case "ORACLE", "MSSQL", "DB2", "POSTGRESQL", "MAXDB":
			m.Foreign = name
		}
	}
	return m
}

// Options are the scanner's options under this mode.
func (m Mode) Options() scan.Options {
	return scan.Options{AnsiQuotes: m.mode.HasANSIQuotesMode(), NoBackslash: m.mode.HasNoBackslashEscapesMode()}
}

var parsers = sync.Pool{New: func() any { return parser.New() }}

// Analyse parses a text whose comments were taken out. An error means that the
// parser does not know the text.
func Analyse(sql string, mode Mode) (a *query.Analysis, err error) {
	if len(sql) > MaxBytes {
		return nil, fmt.Errorf("the text is longer than %d bytes", MaxBytes)
	}
	p := parsers.Get().(*parser.Parser)
	defer func() {
		if r := recover(); r != nil {
			// A parser that panicked is not used again.
			a, err = nil, fmt.Errorf("the parser failed: %v", r)
			return
		}
		parsers.Put(p)
	}()
	p.SetSQLMode(mode.mode)
	stmts, _, err := p.ParseSQL(sql)
	if err != nil {
		return nil, err
	}
	switch len(stmts) {
	case 0:
		return &query.Analysis{Class: query.ClassRead, Reason: "the statement is empty"}, nil
	case 1:
		return analyse(stmts[0]), nil
	}
	all := &query.Analysis{Class: query.ClassRead, Reason: "the text has several statements"}
	for _, s := range stmts {
		one := analyse(s)
		all.Class = all.Class.Worse(one.Class)
		all.CreatesTemp = all.CreatesTemp || one.CreatesTemp
		all.ReadsSession = all.ReadsSession || one.ReadsSession
	}
	return all, nil
}

func analyse(stmt ast.StmtNode) *query.Analysis {
	w := &walker{analysis: &query.Analysis{Class: query.ClassRead}}
	switch s := stmt.(type) {
	case *ast.SelectStmt, *ast.SetOprStmt:
		w.shown(stmt)
		w.walk(s)
		w.finish()
		w.blocks(s)
		w.comparisons()
	default:
		w.other(stmt)
		w.finish()
		w.analysis.Refuse("not a SELECT")
	}
	return w.analysis
}

// finish numbers the parameters in the order of the text.
func (w *walker) finish() {
	sort.Ints(w.markers)
	w.analysis.Columns = w.columns
	w.analysis.Params = make([]int, len(w.markers))
	for i := range w.analysis.Params {
		w.analysis.Params[i] = 1
	}
}
