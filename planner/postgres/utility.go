package postgres

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"freshet/planner/query"
)

// utility classifies a statement that is neither a query nor DML; false means
// that it is one of those, to be walked.
func (w *walker) utility(stmt *pg.Node) bool {
	a := w.analysis
	switch v := stmt.GetNode().(type) {
	case *pg.Node_InsertStmt, *pg.Node_UpdateStmt, *pg.Node_DeleteStmt, *pg.Node_MergeStmt:
		return false
	case *pg.Node_ExplainStmt:
		w.explain(v.ExplainStmt)
		return true
	case *pg.Node_CreateTableAsStmt:
		w.node(v.CreateTableAsStmt.GetQuery())
		w.into(v.CreateTableAsStmt.GetInto())
	case *pg.Node_CreateStmt:
		w.makes(v.CreateStmt.GetRelation())
	case *pg.Node_CreateSeqStmt:
		w.makes(v.CreateSeqStmt.GetSequence())
	case *pg.Node_ViewStmt:
		w.makes(v.ViewStmt.GetView())
	case *pg.Node_VariableShowStmt:
		a.ReadsSession = true
	default:
		a.Class = classOf(stmt)
	}
	a.Refuse("not a SELECT")
	return true
}

// explain is a read, but EXPLAIN ANALYZE runs what it explains.
func (w *walker) explain(v *pg.ExplainStmt) {
	w.analysis.Refuse("EXPLAIN is not kept")
	for _, o := range v.GetOptions() {
		if o.GetDefElem().GetDefname() != "analyze" {
			continue
		}
		if q := v.GetQuery(); q.GetSelectStmt() != nil || !w.utility(q) {
			w.node(q)
		}
		return
	}
}

func classOf(stmt *pg.Node) query.Class {
	switch stmt.GetNode().(type) {
	case *pg.Node_CopyStmt, *pg.Node_NotifyStmt, *pg.Node_VacuumStmt, *pg.Node_CheckPointStmt,
		*pg.Node_ClusterStmt, *pg.Node_ReindexStmt:
		return query.ClassWrite
	case *pg.Node_TransactionStmt:
		switch stmt.GetTransactionStmt().GetKind() {
		case pg.TransactionStmtKind_TRANS_STMT_COMMIT_PREPARED, pg.TransactionStmtKind_TRANS_STMT_ROLLBACK_PREPARED:
			return query.ClassWrite // of what another transaction, or session, wrote
		}
		return query.ClassTransaction
	case *pg.Node_VariableSetStmt, *pg.Node_PrepareStmt, *pg.Node_ExecuteStmt, *pg.Node_DeallocateStmt,
		*pg.Node_DeclareCursorStmt, *pg.Node_FetchStmt, *pg.Node_ClosePortalStmt, *pg.Node_ListenStmt,
		*pg.Node_UnlistenStmt, *pg.Node_DiscardStmt, *pg.Node_LockStmt, *pg.Node_LoadStmt, *pg.Node_ConstraintsSetStmt:
		return query.ClassSession
	case *pg.Node_DoStmt, *pg.Node_CallStmt, *pg.Node_AlterSystemStmt:
		return query.ClassOther
	case *pg.Node_TruncateStmt, *pg.Node_DropStmt, *pg.Node_RenameStmt, *pg.Node_CommentStmt, *pg.Node_IndexStmt,
		*pg.Node_GrantStmt, *pg.Node_GrantRoleStmt, *pg.Node_RefreshMatViewStmt, *pg.Node_RuleStmt,
		*pg.Node_DropdbStmt, *pg.Node_DropOwnedStmt, *pg.Node_ReassignOwnedStmt, *pg.Node_DropRoleStmt,
		*pg.Node_DropTableSpaceStmt, *pg.Node_DropSubscriptionStmt, *pg.Node_DropUserMappingStmt,
		*pg.Node_ImportForeignSchemaStmt, *pg.Node_SecLabelStmt, *pg.Node_DefineStmt, *pg.Node_CompositeTypeStmt:
		return query.ClassSchema
	case *pg.Node_AlterTableStmt, *pg.Node_AlterDomainStmt, *pg.Node_AlterObjectSchemaStmt, *pg.Node_AlterOwnerStmt,
		*pg.Node_AlterRoleStmt, *pg.Node_AlterRoleSetStmt, *pg.Node_AlterDatabaseStmt, *pg.Node_AlterDatabaseSetStmt,
		*pg.Node_AlterSeqStmt, *pg.Node_AlterFunctionStmt, *pg.Node_AlterEnumStmt, *pg.Node_AlterPolicyStmt,
		*pg.Node_AlterDefaultPrivilegesStmt, *pg.Node_AlterExtensionStmt, *pg.Node_AlterExtensionContentsStmt,
		*pg.Node_AlterPublicationStmt, *pg.Node_AlterSubscriptionStmt, *pg.Node_AlterTypeStmt,
		*pg.Node_AlterObjectDependsStmt, *pg.Node_AlterOperatorStmt, *pg.Node_AlterStatsStmt,
		*pg.Node_AlterCollationStmt, *pg.Node_AlterEventTrigStmt, *pg.Node_AlterForeignServerStmt,
		*pg.Node_AlterUserMappingStmt, *pg.Node_AlterFdwStmt, *pg.Node_AlterTableSpaceOptionsStmt,
		*pg.Node_AlterTableMoveAllStmt, *pg.Node_AlterTsconfigurationStmt, *pg.Node_AlterTsdictionaryStmt:
		return query.ClassSchema
	case *pg.Node_CreateSchemaStmt, *pg.Node_CreateFunctionStmt, *pg.Node_CreateTrigStmt, *pg.Node_CreateDomainStmt,
		*pg.Node_CreateEnumStmt, *pg.Node_CreateRangeStmt, *pg.Node_CreateCastStmt, *pg.Node_CreateRoleStmt,
		*pg.Node_CreatedbStmt, *pg.Node_CreateExtensionStmt, *pg.Node_CreatePolicyStmt, *pg.Node_CreatePlangStmt,
		*pg.Node_CreatePublicationStmt, *pg.Node_CreateSubscriptionStmt, *pg.Node_CreateStatsStmt,
		*pg.Node_CreateEventTrigStmt, *pg.Node_CreateFdwStmt, *pg.Node_CreateForeignServerStmt,
		*pg.Node_CreateForeignTableStmt, *pg.Node_CreateUserMappingStmt, *pg.Node_CreateTableSpaceStmt,
		*pg.Node_CreateConversionStmt, *pg.Node_CreateTransformStmt, *pg.Node_CreateAmStmt,
		*pg.Node_CreateOpClassStmt, *pg.Node_CreateOpFamilyStmt:
		return query.ClassSchema
	}
	return query.ClassOther
}
