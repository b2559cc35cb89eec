package feed

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	tidb "github.com/pingcap/tidb/pkg/parser/mysql"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver" // the parser's literals

	"freshet/cache/feed/binlog"
)

// ddlReader tells which tables a logged statement changes the definition or
// the whole contents of.
type ddlReader struct{ parser *parser.Parser }

// ddlVerdict is what is known of a statement: that it changes nothing, or the
// tables it changes; tables nil means that it may change anything.
type ddlVerdict struct {
	nothing bool
	tables  []tableRef
}

type tableRef struct{ schema, name string }

// maxStatement is how much text is parsed; longer statements change everything.
const maxStatement = 64 << 10

// sqlModes are the bits of sql_mode that change how text is read (MySQL's
// query events, Q_SQL_MODE_CODE).
const (
	modePipesAsConcat = 2
	modeANSIQuotes    = 4
	modeIgnoreSpace   = 8
	modeNoBackslash   = 1 << 20
)

func newDDLReader() *ddlReader { return &ddlReader{parser: parser.New()} }

// read classifies a statement. Whatever is not surely understood changes
// everything: text that another dialect would read otherwise (executable
// comments), text outside ASCII (its character set could hide a quote), and
// all that does not parse.
func (d *ddlReader) read(q *binlog.Query, text string) (v ddlVerdict) {
	if len(text) > maxStatement || !q.SQLModeKnown || !plain(text) {
		return ddlVerdict{}
	}
	if idle(text) {
		return ddlVerdict{nothing: true}
	}
	// MySQL writes CREATE TABLE … SELECT in two parts, the first one so.
	text = strings.TrimSuffix(text, " START TRANSACTION")
	defer func() {
		// A parser of the whole language is not trusted with whatever the log
		// holds: what it cannot bear changes everything.
		if recover() != nil {
			d.parser = parser.New()
			v = ddlVerdict{}
		}
	}()
	d.parser.SetSQLMode(parserMode(q.SQLMode))
	statements, _, err := d.parser.Parse(text, "", "")
	if err != nil || len(statements) != 1 {
		return ddlVerdict{}
	}
	return named(statements[0], q.Schema)
}

// idle tells whether a statement that is logged changes no answer.
func idle(text string) bool {
	words := strings.Fields(strings.ToUpper(text))
	if len(words) < 2 {
		return false
	}
	switch words[0] {
	case "ANALYZE", "OPTIMIZE":
		return true
	case "FLUSH":
		switch words[1] {
		case "TABLES", "TABLE", "LOGS", "BINARY", "ENGINE", "ERROR", "GENERAL", "SLOW", "RELAY", "STATUS":
			return true
		}
	}
	return false
}

// plain tells whether text means the same to every reader.
func plain(text string) bool {
	for i := 0; i < len(text); i++ {
		if text[i] >= 0x80 {
			return false
		}
	}
	return !strings.Contains(text, "/*!") && !strings.Contains(text, "/*M!") && !strings.Contains(text, "/*T!")
}

func parserMode(bits uint64) tidb.SQLMode {
	var m tidb.SQLMode
	for bit, mode := range map[uint64]tidb.SQLMode{
		modePipesAsConcat: tidb.ModePipesAsConcat, modeANSIQuotes: tidb.ModeANSIQuotes,
		modeIgnoreSpace: tidb.ModeIgnoreSpace, modeNoBackslash: tidb.ModeNoBackslashEscapes,
	} {
		if bits&bit != 0 {
			m |= mode
		}
	}
	return m
}

// named returns the tables that a definition statement names.
func named(statement ast.StmtNode, schema string) ddlVerdict {
	var v ddlVerdict
	add := func(names ...*ast.TableName) {
		for _, n := range names {
			ref := tableRef{schema: n.Schema.O, name: n.Name.O}
			if ref.schema == "" {
				ref.schema = schema
			}
			v.tables = append(v.tables, ref)
		}
	}
	switch s := statement.(type) {
	case *ast.TruncateTableStmt:
		add(s.Table)
	case *ast.AlterTableStmt:
		add(s.Table)
		for _, spec := range s.Specs {
			if spec.NewTable != nil && spec.NewTable.Name.O != "" {
				add(spec.NewTable)
			}
		}
	case *ast.RenameTableStmt:
		for _, pair := range s.TableToTables {
			add(pair.OldTable, pair.NewTable)
		}
	case *ast.CreateTableStmt:
		if s.TemporaryKeyword != ast.TemporaryNone {
			return ddlVerdict{nothing: true}
		}
		add(s.Table)
	case *ast.DropTableStmt:
		if s.TemporaryKeyword != ast.TemporaryNone {
			return ddlVerdict{nothing: true}
		}
		if s.IsView {
			return ddlVerdict{}
		}
		add(s.Tables...)
	case *ast.CreateIndexStmt:
		add(s.Table)
	case *ast.DropIndexStmt:
		add(s.Table)
	}
	return v
}
