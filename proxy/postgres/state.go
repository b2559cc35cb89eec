package postgres

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"freshet/planner"
)

// state is the answer to the state query: what the session has on top of what
// its startup parameters gave it.
type state struct {
	// settings is the select list that sets what was set in the session, by
	// name in order, or "": canonical, and what is run to get it on another link.
	settings        string
	customs         []string // the customised options among them
	searchPath      string
	standardStrings string // standard_conforming_strings
	encoding        string // client_encoding
	isolation       string // default_transaction_isolation
	role            string // "" or the role and user that SET ROLE and the like have made of the session
	// pins says in words what cannot be moved to another link, or "".
	pins string
	// temporary: tables of the session's own may stand in for others.
	temporary bool
	// names are the prepared statements that were not made by us.
	names []string
	// ours is how many of ours the link has.
	ours string
}

// stateQuery asks for a state. It names everything with its schema, since the
// session may have put anything into its search path. Settings without a
// place in pg_settings (customised options made by setting them) are asked for
// by name.
func stateQuery(prefix, user string, customs []string) string {
	var extra strings.Builder
	for _, name := range customs {
		fmt.Fprintf(&extra, ` UNION ALL SELECT %s, pg_catalog.current_setting(%[1]s, true)`, literal(name))
	}
	return `SELECT (SELECT pg_catalog.string_agg(pg_catalog.format('pg_catalog.set_config(%L, %L, false)', s.n, s.v), ', ' ORDER BY s.n)` +
		` FROM (SELECT name, setting FROM pg_catalog.pg_settings WHERE source OPERATOR(pg_catalog.=) 'session'::pg_catalog.text` + extra.String() + `) AS s(n, v) WHERE s.v IS NOT NULL),` +
		` pg_catalog.current_setting('search_path'), pg_catalog.current_setting('standard_conforming_strings'), pg_catalog.current_setting('client_encoding'),` +
		` CASE WHEN pg_catalog.current_setting('role') OPERATOR(pg_catalog.=) 'none'::pg_catalog.text AND SESSION_USER OPERATOR(pg_catalog.=) ` + literal(user) + `::pg_catalog.name` +
		` THEN '' ELSE pg_catalog.format('%I as %I', SESSION_USER, CURRENT_USER) END,` +
		` pg_catalog.concat_ws(', ',` +
		` CASE WHEN EXISTS (SELECT 1 FROM pg_catalog.pg_listening_channels()) THEN 'LISTEN' END,` +
		` CASE WHEN EXISTS (SELECT 1 FROM pg_catalog.pg_locks AS l WHERE l.locktype OPERATOR(pg_catalog.=) 'advisory'::pg_catalog.text AND l.pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()) THEN 'advisory locks' END,` +
		` CASE WHEN EXISTS (SELECT 1 FROM pg_catalog.pg_cursors) THEN 'cursors' END),` +
		` pg_catalog.pg_my_temp_schema() OPERATOR(pg_catalog.<>) 0::pg_catalog.oid AND EXISTS (SELECT 1 FROM pg_catalog.pg_class AS c WHERE c.relnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()),` +
		` (SELECT pg_catalog.string_agg(pg_catalog.encode(pg_catalog.convert_to(p.name, 'UTF8'), 'hex'), ',') FROM pg_catalog.pg_prepared_statements AS p WHERE NOT pg_catalog.starts_with(p.name, ` + literal(prefix) + `)),` +
		` (SELECT pg_catalog.count(*) FROM pg_catalog.pg_prepared_statements AS p WHERE pg_catalog.starts_with(p.name, ` + literal(prefix) + `)),` +
		` pg_catalog.current_setting('default_transaction_isolation')`
}

const stateColumns = 10

// literal quotes a string in a way that holds whatever
// standard_conforming_strings is.
func literal(s string) string {
	s = strings.ReplaceAll(s, "'", "''")
	if strings.Contains(s, `\`) {
		return ` E'` + strings.ReplaceAll(s, `\`, `\\`) + `'`
	}
	return `'` + s + `'`
}

// readState reads the row that answers stateQuery.
func readState(row [][]byte) (state, error) {
	if len(row) != stateColumns {
		return state{}, errors.New("session state: unexpected number of columns")
	}
	s := state{
		settings: string(row[0]), searchPath: string(row[1]), standardStrings: string(row[2]), encoding: string(row[3]),
		role: string(row[4]), pins: string(row[5]), temporary: string(row[6]) == "t", ours: string(row[8]), isolation: string(row[9]),
	}
	if len(row[7]) > 0 {
		for h := range strings.SplitSeq(string(row[7]), ",") {
			name, err := hex.DecodeString(h)
			if err != nil {
				return state{}, fmt.Errorf("session state: statement name: %w", err)
			}
			s.names = append(s.names, string(name))
		}
	}
	return s, nil
}

// customsAmong tells which of the names are customised options that exist.
func (s *state) customsAmong(names []string) (found []string) {
	for _, name := range names {
		if strings.Contains(s.settings, "set_config("+literal(name)+",") {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// scope is what decides the meaning of names in the state.
func (s *state) scope(user, database string) planner.Scope {
	sc := planner.Scope{Database: database, SearchPath: s.searchPath, User: user, Charset: s.encoding}
	if s.standardStrings == "off" {
		sc.SQLMode = "off"
	}
	if s.role != "" {
		sc.User = s.role
	}
	return sc
}

// context is everything besides the text and the parameters that can change
// an answer, in bytes that say exactly what they were made of.
func (s *state) context(key string) []byte {
	return []byte(strings.Join([]string{key, s.settings, s.searchPath, s.role}, "\x00\x00"))
}

// pinnedBy says why the link cannot be given back, or "".
func (s *state) pinnedBy() string {
	var why []string
	if s.pins != "" {
		why = append(why, s.pins)
	}
	if s.temporary {
		why = append(why, "temporary tables")
	}
	if s.role != "" {
		why = append(why, "role "+s.role)
	}
	if len(s.names) > 0 {
		why = append(why, "prepared statements")
	}
	return strings.Join(why, ", ")
}
