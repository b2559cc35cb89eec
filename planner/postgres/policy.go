package postgres

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"freshet/planner/query"
)

// AnalysePolicy is Analyse for a SELECT that stands for a policy of row-level
// security. Other than a client's statement, it may ask who the user is: the
// caller has to see to it that the user and the role are in the key. Settings
// it may not ask for: those that go by names made up by users are in no
// catalog, and a session may have set one without its key telling.
func AnalysePolicy(sql string, depth, chain int) (*query.Analysis, error) {
	return parse(sql, depth, chain, true)
}

// tellsUser tells whether a keyword stands for the session's user or role.
func tellsUser(op pg.SQLValueFunctionOp) bool {
	switch op {
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_ROLE, pg.SQLValueFunctionOp_SVFOP_CURRENT_USER,
		pg.SQLValueFunctionOp_SVFOP_USER, pg.SQLValueFunctionOp_SVFOP_SESSION_USER:
		return true
	}
	return false
}
