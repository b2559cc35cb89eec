package planner

import (
	"regexp"
	"slices"
	"strings"

	"freshet/planner/scan"
)

// changing are functions that change a session, or run a text that nobody has
// read; all but the last four are built in.
var changing = []string{
	"set_config", "setseed", "pg_advisory_lock", "pg_advisory_lock_shared", "pg_try_advisory_lock",
	"pg_try_advisory_lock_shared", "pg_advisory_unlock", "pg_advisory_unlock_shared", "pg_advisory_unlock_all",
	"pg_replication_origin_session_setup", "pg_replication_origin_session_reset",
	"pg_create_physical_replication_slot", "pg_create_logical_replication_slot",
	"pg_copy_physical_replication_slot", "pg_copy_logical_replication_slot",
	"query_to_xml", "query_to_xmlschema", "query_to_xml_and_xmlschema", "ts_stat", "ts_rewrite",
	"set_limit", "dblink_connect", "dblink_connect_u", "dblink_disconnect",
}

func changingList() string {
	var quoted []string
	for _, name := range changing {
		quoted = append(quoted, "'"+name+"'")
	}
	return strings.Join(quoted, ", ")
}

// function is one that users wrote, or, with neither name nor language, a stored
// expression.
type function struct {
	name, language, source string
	extension, rooted      bool
	unnamed                bool // it computes names of settings
}

// changes tells whether it may change the session by itself.
func (f *function) changes() bool {
	switch f.language {
	case "internal", "c":
		return false
	case "sql", "plpgsql":
		return changesSession(f.source, f.language == "sql")
	}
	return true
}

// maxCallees bounds the work of callers.
const maxCallees = 50

// callers follows the functions that compute names of settings to those that
// mention them, and tells whether there is any and whether one of all is run by
// something that is no function.
func callers(all []function) (unnamed, byWrites bool) {
	seen := map[string]bool{}
	var todo []function
	for _, f := range all {
		if f.unnamed {
			todo = append(todo, f)
		}
	}
	for unnamed = len(todo) > 0; len(todo) > 0; todo = todo[1:] {
		callee := todo[0]
		if byWrites = callee.rooted || len(seen) > maxCallees; byWrites {
			break
		}
		if seen[callee.name] || callee.name == "" {
			continue
		}
		seen[callee.name] = true
		for _, f := range all {
			if strings.Contains(strings.ToLower(f.source), strings.ToLower(callee.name)) {
				todo = append(todo, f)
			}
		}
	}
	return unnamed, byWrites
}

// changesSession tells whether a function's source, in SQL or PL/pgSQL, may
// change the session that runs it. It errs on the side of yes.
func changesSession(source string, sql bool) bool {
	opt := scan.Options{Postgres: true, AnsiQuotes: true, NoBackslash: true}
	if sourceChanges(source, opt, sql) {
		return true
	}
	if strings.IndexByte(source, '\\') < 0 {
		return false
	}
	opt.NoBackslash = false // how it is read hangs on standard_conforming_strings
	return sourceChanges(source, opt, sql)
}

// sourceChanges looks for calls of what changes a session, for statements that
// do, and for texts that are executed.
func sourceChanges(source string, opt scan.Options, sql bool) bool {
	s := scan.New(source, opt)
	starts, previous := true, ""
	for {
		t := s.Next()
		word := ""
		switch t.Kind {
		case scan.End:
			return false
		case scan.Broken:
			return true
		case scan.Word:
			word = strings.ToLower(source[t.Start:t.End])
			if starts && statementChanges(word, s, source, sql) {
				return true
			}
		case scan.Quoted:
			raw := source[t.Start:t.End]
			if raw[0] != '"' {
				return true // U&"…" may spell anything
			}
			word = strings.Trim(raw, `"`)
		default:
			word = source[t.Start:t.End]
		}
		if t.Kind != scan.String && wordChanges(word, previous) {
			return true
		}
		starts = false
		switch word {
		case ";", ">>", "begin", "then", "else", "loop":
			starts = t.Kind != scan.String
		}
		previous = word
	}
}

// statementChanges judges the first word of a statement. It may read on.
func statementChanges(word string, s *scan.Scanner, source string, sql bool) bool {
	switch word {
	case "reset", "discard", "prepare", "deallocate", "listen", "unlisten", "load", "do":
		return true // MERGE's THEN DO NOTHING too; it does not matter
	case "declare", "close", "fetch", "move":
		return sql // in PL/pgSQL, variables and cursors that end with the transaction
	case "set":
	default:
		return false
	}
	next := func() string {
		t := s.Next()
		return strings.ToLower(source[t.Start:t.End])
	}
	switch next() {
	case "constraints", "transaction":
		return false
	case "local":
		// It ends with the transaction, but a customised option stays, empty.
		return next() == "" || next() == "."
	}
	return true
}

// wordChanges judges a word by itself.
func wordChanges(word, previous string) bool {
	switch word {
	case "execute", "pg_settings", "pg_temp":
		return true
	case "temp", "temporary":
		switch previous {
		case "create", "local", "global", "replace", "into":
			return true
		}
	}
	return slices.Contains(changing, word)
}

var (
	// callsSetConfig finds calls, callsWithName those with a name as it stands,
	// also inside a string, where quotes are doubled.
	callsSetConfig = regexp.MustCompile(`(?i)\bset_config"?\s*\(`)
	callsWithName  = regexp.MustCompile(`(?i)\bset_config"?\s*\(\s*'{1,2}([^'\\]+)'{1,2}(?:::text)?\s*,`)
	setsWithName   = regexp.MustCompile(`(?i)\bset\s+(?:(?:session|local)\s+)?([a-z_][\w$]*(?:\.[a-z_][\w$]*)+)\s*(?:=|\bto\b)`)
)

// settingsIn lists the customised options that a source sets; all is false if
// it computes names.
func settingsIn(source string) (names []string, all bool) {
	named := callsWithName.FindAllStringSubmatch(source, -1)
	for _, m := range append(named, setsWithName.FindAllStringSubmatch(source, -1)...) {
		if strings.Contains(m[1], ".") && len(m[1]) < 64 {
			names = append(names, m[1])
		}
	}
	return names, len(named) == len(callsSetConfig.FindAllStringIndex(source, -1))
}
