package postgres

import (
	"strings"

	"freshet/planner/query"
)

// Function is what is known of a built-in function besides its volatility.
type Function struct {
	Known   bool
	Class   query.Class
	Reason  string // why a statement that calls it is not cacheable
	Session bool   // its value depends on what the session did before
}

// Special looks up a built-in function that pg_proc alone does not tell enough
// of; Known is false for all others.
func Special(name string, args int) Function {
	if f, ok := special[name]; ok {
		return f
	}
	if name == "age" && args < 2 {
		return Function{Known: true, Class: query.ClassRead, Reason: "age() of one argument depends on the time"}
	}
	for _, prefix := range [...]string{"pg_advisory_xact", "pg_try_advisory_xact"} {
		if strings.HasPrefix(name, prefix) {
			return Function{Known: true, Class: query.ClassWrite, Reason: name + "() takes a lock"}
		}
	}
	for _, prefix := range [...]string{"pg_advisory", "pg_try_advisory"} {
		if strings.HasPrefix(name, prefix) {
			return Function{Known: true, Class: query.ClassSession, Session: true, Reason: name + "() takes a lock"}
		}
	}
	return introspection(name)
}

// introspection refuses stable functions that tell of the server, its
// catalog or the client (manual, 9.27), and those that read tables by name.
func introspection(name string) Function {
	const harmless = " pg_typeof pg_size_pretty pg_size_bytes pg_input_is_valid "
	if strings.HasPrefix(name, "pg_") && strings.Contains(harmless, " "+name+" ") {
		return Function{}
	}
	for _, prefix := range [...]string{"pg_", "has_", "inet_client", "inet_server", "txid_", "binary_upgrade_", "to_reg",
		"table_to_xml", "query_to_xml", "cursor_to_xml", "schema_to_xml", "database_to_xml"} {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		f := Function{Known: true, Class: query.ClassRead, Reason: name + "() tells of more than its arguments"}
		if unsettling[name] {
			f.Class = query.ClassOther
		}
		return f
	}
	return Function{}
}

// unsettling are the pg_ functions that change more than rows, or run what is
// not known.
var unsettling = words(`pg_reload_conf pg_rotate_logfile pg_promote pg_switch_wal pg_create_restore_point
	pg_backup_start pg_backup_stop pg_export_snapshot pg_create_physical_replication_slot
	pg_create_logical_replication_slot pg_drop_replication_slot pg_replication_slot_advance
	pg_logical_slot_get_changes pg_logical_slot_get_binary_changes pg_replication_origin_create
	pg_replication_origin_drop pg_replication_origin_session_setup pg_replication_origin_session_reset
	pg_replication_origin_xact_setup pg_replication_origin_xact_reset pg_replication_origin_advance
	query_to_xml query_to_xmlschema query_to_xml_and_xmlschema cursor_to_xml cursor_to_xmlschema
	pg_copy_physical_replication_slot pg_copy_logical_replication_slot pg_extension_config_dump
	pg_event_trigger_dropped_objects pg_wal_replay_pause pg_wal_replay_resume pg_stop_making_pinned_objects
	pg_nextoid pg_import_system_collations pg_sync_replication_slots pg_restore_relation_stats
	pg_restore_attribute_stats pg_clear_relation_stats pg_clear_attribute_stats`)

var special = specials()

func specials() map[string]Function {
	m := make(map[string]Function)
	add := func(names, why string, class query.Class, session bool) {
		for name := range words(names) {
			m[name] = Function{Known: true, Class: class, Session: session, Reason: name + "() " + why}
		}
	}
	add(`now transaction_timestamp statement_timestamp clock_timestamp timeofday`, "depends on the time", query.ClassRead, false)
	add(`random random_normal gen_random_uuid uuidv4 uuidv7`, "depends on chance", query.ClassRead, false)
	add(`current_setting current_database current_schema current_schemas current_query current_user session_user
		getpgusername getdatabaseencoding version row_security_active obj_description col_description
		shobj_description format_type inet_client_addr inet_client_port inet_server_addr inet_server_port`,
		"tells of the session or the server", query.ClassRead, false)
	add(`currval lastval`, "depends on what the session did before", query.ClassRead, true)
	add(`pg_backend_pid pg_my_temp_schema pg_listening_channels pg_current_xact_id pg_current_xact_id_if_assigned
		txid_current txid_current_if_assigned`, "tells of the session", query.ClassRead, true)
	add(`nextval setval`, "moves a sequence", query.ClassWrite, true)
	add(`lo_create lo_creat lo_unlink lo_from_bytea lo_put lo_truncate lo_truncate64 lowrite lo_import`, "changes a large object", query.ClassWrite, false)
	add(`lo_get loread lo_lseek lo_lseek64 lo_tell lo_tell64 lo_open lo_close lo_export`, "reads a large object", query.ClassWrite, false)
	add(`pg_notify`, "sends a notification", query.ClassWrite, false)
	add(`set_config setseed`, "changes the session", query.ClassSession, true)
	add(`pg_sleep pg_sleep_for pg_sleep_until`, "takes its time", query.ClassRead, false)
	add(`pg_cancel_backend pg_terminate_backend pg_stat_reset pg_stat_clear_snapshot`, "acts on the server", query.ClassRead, false)
	add(`nextval_internal currtid currtid2 ts_stat ts_rewrite`, "reads what is not followed", query.ClassOther, false)
	add(`satisfies_hash_partition`, "reads the catalog", query.ClassRead, false)
	return m
}

func words(list string) map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}
