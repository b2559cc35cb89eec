package mysql

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	wire "freshet/protocol/mysql"
)

// setting is a session variable whose value differs from that of a fresh
// connection.
type setting struct{ name, value string }

// settings is sorted by name, each name once. It is replaced, never changed:
// sessions and keys share it.
type settings []setting

func (s settings) find(name string) (int, bool) {
	return slices.BinarySearchFunc(s, name, func(x setting, n string) int { return strings.Compare(x.name, n) })
}

func (s settings) get(name string) (string, bool) {
	if i, ok := s.find(name); ok {
		return s[i].value, true
	}
	return "", false
}

// with returns the settings with one changed.
func (s settings) with(name, value string) settings {
	i, ok := s.find(name)
	if ok && s[i].value == value {
		return s
	}
	out := slices.Clone(s)
	if ok {
		out[i].value = value
		return out
	}
	return slices.Insert(out, i, setting{name, value})
}

// without returns the settings with one back at its initial value.
func (s settings) without(name string) settings {
	i, ok := s.find(name)
	if !ok {
		return s
	}
	return slices.Delete(slices.Clone(s), i, i+1)
}

func (s settings) append(dst []byte) []byte {
	for _, x := range s {
		dst = wire.AppendLenencString(dst, x.name)
		dst = wire.AppendLenencString(dst, x.value)
	}
	return dst
}

// resultsCollation is the name under which settings hold the collation id that
// column definitions of text show. It is no variable: the handshake's collation
// id sets it, SET NAMES changes it, and no variable tells it.
const resultsCollation = "#results"

// resultsCollationOf is its value, from the definition of a text column; with
// character_set_results NULL each column shows its own.
func resultsCollationOf(charset string, collation uint16) string {
	if charset == "" {
		return ""
	}
	return strconv.Itoa(int(collation))
}

// charsetGroup are settings that are only brought about together.
var charsetGroup = []string{resultsCollation, "character_set_client", "character_set_connection", "character_set_results", "collation_connection"}

// form is how a variable's value is written in SET.
type form uint8

const (
	formText form = iota + 1
	formNumber
	formCharset // like text, but empty is NULL
)

// replayable are the variables that Dial can set on a fresh link, so that a
// session that changed them can give its link back. Every one of them may
// change answers or errors, and all are in the key.
var replayable = map[string]form{
	resultsCollation:                  formNumber,
	"autocommit":                      formText,
	"big_tables":                      formText,
	"character_set_client":            formCharset,
	"character_set_connection":        formCharset,
	"character_set_results":           formCharset,
	"collation_connection":            formText,
	"cte_max_recursion_depth":         formNumber,
	"default_storage_engine":          formText,
	"default_week_format":             formNumber,
	"div_precision_increment":         formNumber,
	"explicit_defaults_for_timestamp": formText,
	"foreign_key_checks":              formText,
	"group_concat_max_len":            formNumber,
	"innodb_lock_wait_timeout":        formNumber,
	"interactive_timeout":             formNumber,
	"join_buffer_size":                formNumber,
	"lc_messages":                     formText,
	"lc_time_names":                   formText,
	"lock_wait_timeout":               formNumber,
	"low_priority_updates":            formText,
	"max_error_count":                 formNumber,
	"max_execution_time":              formNumber,
	"max_heap_table_size":             formNumber,
	"max_join_size":                   formNumber,
	"max_length_for_sort_data":        formNumber,
	"max_sort_length":                 formNumber,
	"max_statement_time":              formNumber,
	"net_read_timeout":                formNumber,
	"net_write_timeout":               formNumber,
	"old_mode":                        formText,
	"optimizer_switch":                formText,
	"sort_buffer_size":                formNumber,
	"sql_auto_is_null":                formText,
	"sql_big_selects":                 formText,
	"sql_mode":                        formText,
	"sql_notes":                       formText,
	"sql_quote_show_create":           formText,
	"sql_safe_updates":                formText,
	"sql_select_limit":                formNumber,
	"sql_warnings":                    formText,
	"time_zone":                       formText,
	"tmp_table_size":                  formNumber,
	"transaction_isolation":           formText,
	"transaction_read_only":           formText,
	"tx_isolation":                    formText,
	"tx_read_only":                    formText,
	"unique_checks":                   formText,
	"wait_timeout":                    formNumber,
}

// canReplay says whether Dial can set the variable to the value.
func (x setting) canReplay() bool {
	switch replayable[x.name] {
	case formText, formCharset:
		for i := 0; i < len(x.value); i++ {
			if c := x.value[i]; c < ' ' || c > '~' || c == '\\' {
				return false
			}
		}
		return true
	case formNumber:
		if x.name == resultsCollation && x.value == "" {
			return true
		}
		return x.value != "" && strings.Trim(x.value, "0123456789.") == ""
	}
	return false
}

// whole returns the settings with the charset group filled up from initial, if
// any of it is among them: only the whole of it can be brought about.
func (s settings) whole(initial map[string]string) settings {
	for _, name := range charsetGroup {
		if _, ok := s.find(name); ok {
			return s.filled(charsetGroup, initial)
		}
	}
	return s
}

// filled returns the settings with those of the names that are not among them
// at their initial values, if the server has them.
func (s settings) filled(names []string, initial map[string]string) settings {
	for _, name := range names {
		value, known := initial[name]
		if _, ok := s.find(name); !ok && known {
			s = s.with(name, value)
		}
	}
	return s
}

// only returns those of the settings that have one of the names.
func (s settings) only(names []string) settings {
	var out settings
	for _, name := range names {
		if v, ok := s.get(name); ok {
			out = out.with(name, v)
		}
	}
	return out
}

// statement is the SET that brings a connection to these settings, all of
// which can be replayed and whole. SET NAMES comes first, since it alone reaches
// the collation of results and changes the rest of its group; the order of names
// then puts character_set_connection before collation_connection, which it
// would change.
func (s settings) statement(collations map[string]collation) (string, error) {
	var parts []string
	for _, x := range s {
		switch {
		case x.name == resultsCollation && x.value == "":
		case x.name == resultsCollation:
			c, ok := collations[x.value]
			if !ok {
				return "", fmt.Errorf("the upstream has no collation %s", x.value)
			}
			parts = append([]string{fmt.Sprintf("NAMES '%s' COLLATE '%s'", c.charset, c.name)}, parts...)
		case x.name == "character_set_results" && x.value != "": // by the collation
		case replayable[x.name] == formNumber:
			parts = append(parts, "SESSION "+x.name+" = "+x.value)
		case replayable[x.name] == formCharset && x.value == "":
			parts = append(parts, "SESSION "+x.name+" = NULL")
		default:
			parts = append(parts, "SESSION "+x.name+" = '"+strings.ReplaceAll(x.value, "'", "''")+"'")
		}
	}
	return "SET " + strings.Join(parts, ", "), nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// passing are variables that say nothing of later answers, or that the
// session follows by other means.
var passing = map[string]bool{
	"statement_id": true, "last_gtid": true, "gtid_next": false, "last_insert_id": true, "identity": true,
	"warning_count": true, "error_count": true,
}

// oneShot are variables that hold for a moment or move by themselves: they pin
// the link, but are in no key (their readers are not cacheable).
var oneShot = map[string]bool{"timestamp": true, "insert_id": true, "rand_seed1": true, "rand_seed2": true, "pseudo_thread_id": true}
