// Package postgres reads PostgreSQL statements with the server's own grammar
// (pg_query) and says what it found as a query.Analysis. It asks no catalog.
package postgres

import (
	"errors"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"freshet/planner/query"
)

const (
	// MaxBytes, MaxDepth and MaxChain bound what is given to the grammar: it
	// is C code that recurses, and very deep input ends the process.
	MaxBytes = 16 << 10
	MaxDepth = 200
	MaxChain = 6000
)

var (
	// ErrTooDeep says that a text was not parsed because it nests too deep.
	ErrTooDeep = errors.New("the statement nests too deep to be parsed")
	// ErrZeroByte says that a text has a byte that no SQL has.
	ErrZeroByte = errors.New("the statement has a zero byte")
)

// Analyse parses a text. depth is how deep its brackets nest and chain how
// many operators and keywords it has. An error means that the grammar does not
// know the text, or that it is too large for it.
func Analyse(sql string, depth, chain int) (*query.Analysis, error) {
	return parse(sql, depth, chain, false)
}

func parse(sql string, depth, chain int, policy bool) (*query.Analysis, error) {
	if len(sql) > MaxBytes || depth > MaxDepth || chain > MaxChain {
		return nil, ErrTooDeep
	}
	if strings.IndexByte(sql, 0) >= 0 {
		return nil, ErrZeroByte // C would read only what is before it
	}
	tree, err := pg.Parse(sql)
	if err != nil {
		return nil, err
	}
	switch len(tree.GetStmts()) {
	case 0:
		return &query.Analysis{Class: query.ClassRead, Reason: "the statement is empty"}, nil
	case 1:
		return analyse(tree.GetStmts()[0].GetStmt(), policy), nil
	}
	all := &query.Analysis{Class: query.ClassRead, Reason: "the text has several statements"}
	for _, s := range tree.GetStmts() {
		one := analyse(s.GetStmt(), policy)
		all.Class = all.Class.Worse(one.Class)
		all.CreatesTemp = all.CreatesTemp || one.CreatesTemp
		all.ReadsSession = all.ReadsSession || one.ReadsSession
		all.Functions = append(all.Functions, one.Functions...)
	}
	return all, nil
}

func analyse(stmt *pg.Node, policy bool) *query.Analysis {
	w := &walker{analysis: &query.Analysis{Class: query.ClassRead}, policy: policy}
	if sel := stmt.GetSelectStmt(); sel != nil {
		w.node(stmt)
		w.finish()
		w.blocks(sel)
		return w.analysis
	}
	if !w.utility(stmt) {
		w.node(stmt)
		w.finish()
		w.analysis.Refuse("not a SELECT")
	}
	return w.analysis
}
