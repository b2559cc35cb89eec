package mysql

import (
	"github.com/pingcap/tidb/pkg/parser/ast"

	"freshet/planner/query"
)

// other classifies a statement that is no SELECT.
func (w *walker) other(stmt ast.StmtNode) {
	a := w.analysis
	switch s := stmt.(type) {
	case *ast.InsertStmt, *ast.UpdateStmt, *ast.DeleteStmt, *ast.LoadDataStmt:
		w.walk(s)
		a.Class = a.Class.Worse(query.ClassWrite)
		a.Reason = "it changes data"
	case *ast.DoStmt:
		w.walk(s)
	case *ast.ExplainStmt:
		w.explain(s)
	case *ast.ShowStmt:
		a.ReadsSession = true
	case *ast.HelpStmt:
	case *ast.CreateTableStmt:
		w.makes(s.TemporaryKeyword)
	case *ast.DropTableStmt:
		w.makes(s.TemporaryKeyword)
		a.CreatesTemp = false
	default:
		a.Class = classOf(stmt)
	}
}

// explain is a read, but EXPLAIN ANALYZE runs what it explains.
func (w *walker) explain(s *ast.ExplainStmt) {
	w.analysis.Refuse("EXPLAIN is not kept")
	if !s.Analyze || s.Stmt == nil {
		return
	}
	switch inner := s.Stmt.(type) {
	case *ast.SelectStmt, *ast.SetOprStmt:
		w.walk(inner)
	default:
		w.other(inner)
	}
}

// makes notes that a statement creates or drops a table.
func (w *walker) makes(k ast.TemporaryKeyword) {
	if k != ast.TemporaryNone {
		w.analysis.CreatesTemp = true
		w.analysis.Class = query.ClassSession
		return
	}
	w.analysis.Class = query.ClassSchema
}

func classOf(stmt ast.StmtNode) query.Class {
	switch stmt.(type) {
	case *ast.BeginStmt, *ast.CommitStmt, *ast.RollbackStmt, *ast.SavepointStmt, *ast.ReleaseSavepointStmt:
		return query.ClassTransaction
	case *ast.SetStmt, *ast.SetRoleStmt, *ast.UseStmt, *ast.PrepareStmt, *ast.ExecuteStmt,
		*ast.DeallocateStmt, *ast.LockTablesStmt, *ast.UnlockTablesStmt, *ast.SetSessionStatesStmt:
		return query.ClassSession
	case *ast.AnalyzeTableStmt, *ast.OptimizeTableStmt, *ast.RepairTableStmt:
		return query.ClassWrite
	case *ast.CreateDatabaseStmt, *ast.AlterDatabaseStmt, *ast.DropDatabaseStmt, *ast.AlterTableStmt,
		*ast.CreateIndexStmt, *ast.DropIndexStmt, *ast.RenameTableStmt, *ast.TruncateTableStmt, *ast.CreateViewStmt,
		*ast.CreateSequenceStmt, *ast.AlterSequenceStmt, *ast.DropSequenceStmt, *ast.DropProcedureStmt,
		*ast.CreateUserStmt, *ast.AlterUserStmt, *ast.DropUserStmt, *ast.RenameUserStmt, *ast.SetPwdStmt,
		*ast.SetDefaultRoleStmt, *ast.GrantStmt, *ast.GrantProxyStmt, *ast.GrantRoleStmt, *ast.RevokeStmt,
		*ast.RevokeRoleStmt:
		return query.ClassSchema
	}
	// Among others FLUSH (which may take locks), KILL, CALL, SHUTDOWN, BINLOG,
	// CREATE PROCEDURE and statements that only TiDB has.
	return query.ClassOther
}
