package mysql

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"freshet/planner/query"
)

// function is what is known of a built-in function.
type function struct {
	class   query.Class
	reason  string // why a statement that calls it is not cacheable; "" if it is
	session bool   // its value depends on what the session did before
}

// functionOf looks a function up by its name in small letters.
func functionOf(name string, args int) function {
	if deterministic[name] && !(args == 0 && timely[name]) {
		return function{class: query.ClassRead}
	}
	if f, ok := special[name]; ok {
		if name == "last_insert_id" && args > 0 {
			f.class = query.ClassSession
		}
		return f
	}
	return function{class: query.ClassOther, reason: "the function " + name + " is not known to be deterministic"}
}

// timely are the deterministic functions that without arguments tell the time.
var timely = words(`unix_timestamp timestamp date time uuid_v1`)

// deterministic are the built-in functions whose value depends on nothing but
// their arguments and on settings that are part of the context (time zone,
// character set, collation, lc_time_names, group_concat_max_len, …).
var deterministic = words(`
	abs acos adddate addtime aes_decrypt aes_encrypt any_value ascii asin atan atan2 bin bin_to_uuid bit_count
	bit_length cast ceil ceiling char_func char char_length character_length charset coalesce coercibility collation
	compress concat concat_ws conv convert convert_tz cos cot crc32 crc32c date date_add date_format date_sub
	datediff day dayname dayofmonth dayofweek dayofyear degrees elt exp export_set extract extractvalue field
	find_in_set floor format from_base64 from_days from_unixtime get_format greatest grouping hex hour if ifnull
	inet6_aton inet6_ntoa inet_aton inet_ntoa insert_func insert instr interval is_ipv4 is_ipv4_compat is_ipv4_mapped
	is_ipv6 is_uuid isnull json_array json_array_append json_array_insert json_compact json_contains
	json_contains_path json_depth json_detailed json_equals json_exists json_extract json_insert json_keys
	json_length json_loose json_merge json_merge_patch json_merge_preserve json_normalize json_object json_overlaps
	json_pretty json_query json_quote json_remove json_replace json_schema_valid json_search json_set json_type
	json_unquote json_valid json_value json_memberof last_day lcase least left length ln locate log log10 log2 lower
	lpad ltrim make_set makedate maketime md5 microsecond mid minute mod month monthname nullif oct octet_length ord
	period_add period_diff pi pos position pow power quarter quote radians regexp_instr regexp_like regexp_replace
	regexp_substr repeat replace reverse right round rpad rtrim sec_to_time second sha sha1 sha2 sign sin soundex
	space sqrt str_to_date strcmp subdate substr substring substring_index subtime tan time time_format time_to_sec
	timediff timestamp timestampadd timestampdiff to_base64 to_days to_seconds trim truncate ucase uncompress
	uncompressed_length unhex unix_timestamp updatexml upper uuid_to_bin week weekday weekofyear weight_string year
	yearweek dateliteral timeliteral timestampliteral natural_sort_key
	st_area st_asbinary st_asgeojson st_astext st_aswkb st_aswkt st_buffer st_centroid st_contains st_convexhull
	st_crosses st_difference st_dimension st_disjoint st_distance st_distance_sphere st_endpoint st_envelope
	st_equals st_exteriorring st_geohash st_geomcollfromtext st_geometryn st_geometrytype st_geomfromgeojson
	st_geomfromtext st_geomfromwkb st_interiorringn st_intersection st_intersects st_isclosed st_isempty st_issimple
	st_isvalid st_latitude st_length st_linefromtext st_longitude st_makeenvelope st_numgeometries
	st_numinteriorring st_numinteriorrings st_numpoints st_overlaps st_pointfromtext st_pointn st_polyfromtext
	st_simplify st_srid st_startpoint st_symdifference st_touches st_union st_within st_x st_y mbrcontains
	mbrcoveredby mbrcovers mbrdisjoint mbrequals mbrintersects mbroverlaps mbrtouches mbrwithin point linestring
	polygon multipoint multilinestring multipolygon geometrycollection vec_distance vec_distance_euclidean
	vec_distance_cosine vec_fromtext vec_totext`)

// timeOfDay give a time of day; needsDate complete one that they are given
// with the current date (MySQL manual, "Conversion Between Date and Time
// Types").
var (
	timeOfDay = words(`time sec_to_time maketime timediff addtime subtime timeliteral`)
	needsDate = words(`adddate convert_tz date date_add date_format date_sub datediff day dayname dayofmonth dayofweek
		dayofyear extract last_day month monthname quarter subdate timestamp timestampadd timestampdiff to_days
		to_seconds unix_timestamp week weekday weekofyear year yearweek`)
)

// keepsDate tells of a sum with a column, which gives what the column is.
func keepsDate(name string, args []ast.ExprNode) bool {
	if name != "addtime" && name != "subtime" || len(args) != 2 {
		return false
	}
	_, column := args[0].(*ast.ColumnNameExpr)
	return column
}

var special = specials()

func specials() map[string]function {
	m := make(map[string]function)
	add := func(names, reason string, class query.Class, session bool) {
		for name := range words(names) {
			m[name] = function{class: class, session: session, reason: "its answer depends on " + name + "(): " + reason}
		}
	}
	add(`now curdate curtime current_date current_time current_timestamp localtime localtimestamp sysdate utc_date
		utc_time utc_timestamp unix_timestamp timestamp date time`, "the time", query.ClassRead, false)
	add(`rand uuid uuid_short uuid_v4 uuid_v7 random_bytes sys_guid encrypt`, "chance", query.ClassRead, false)
	add(`connection_id found_rows row_count last_insert_id lastval`, "the session", query.ClassRead, true)
	add(`current_user current_role session_user system_user user database schema version`, "who asks, and where", query.ClassRead, false)
	add(`sleep benchmark load_file is_free_lock is_used_lock master_pos_wait source_pos_wait wait_for_executed_gtid_set
		validate_password_strength format_bytes format_pico_time password name_const default_func ps_thread_id
		ps_current_thread_id gtid_subset gtid_subtract decode encode des_decrypt des_encrypt old_password roles_graphml
		icu_version json_storage_size json_storage_free`, "more than its arguments", query.ClassRead, false)
	add(`get_lock release_lock release_all_locks`, "locks that the session holds", query.ClassSession, true)
	add(`nextval setval`, "a sequence", query.ClassWrite, true)
	return m
}

func words(list string) map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}
