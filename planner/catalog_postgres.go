package planner

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"freshet/cache/canon"
	"freshet/cache/feed"
)

// firstUserOID is FirstNormalObjectId: objects below it came with the server.
const firstUserOID = 16384

// postgresString writes a string literal that means the same whatever
// standard_conforming_strings says.
func postgresString(s string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}

// namesSQL tells of a type t whether it is regclass or one of its kind, or an array,
// a domain, a range or a record with one.
const namesSQL = `EXISTS (WITH RECURSIVE k(oid) AS (SELECT t.oid UNION SELECT x.oid FROM k JOIN pg_catalog.pg_type y ON y.oid = k.oid
			CROSS JOIN LATERAL (SELECT y.typelem UNION ALL SELECT y.typbasetype
				UNION ALL SELECT g.rngsubtype FROM pg_catalog.pg_range g WHERE g.rngtypid = y.oid
				UNION ALL SELECT b.atttypid FROM pg_catalog.pg_attribute b WHERE b.attrelid = y.typrelid AND b.attnum > 0) x(oid) WHERE x.oid <> 0)
		SELECT FROM k JOIN pg_catalog.pg_type z ON z.oid = k.oid WHERE z.oid < 16384 AND z.typname ~ '^reg')`

// postgresTables looks up all relations of one name, in every schema.
func (k *catalog) postgresTables(ctx context.Context, name string) (*listing, error) {
	return k.lookup(ctx, "\x00"+name, func(ctx context.Context) ([]*relation, error) {
		rows, err := k.query(ctx, 14, `SELECT n.nspname, c.oid, c.relkind, c.relpersistence, `+feed.PoliciesSQL+`,
			`+heirsSQL+`, n.oid, a.attname, a.atttypid, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attgenerated <> '',
			t.typtype, coalesce(co.collisdeterministic, true), `+namesSQL+`
			FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
			LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
			LEFT JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
			LEFT JOIN pg_catalog.pg_collation co ON co.oid = a.attcollation
			WHERE c.relname = `+postgresString(name)+` AND c.relkind IN ('r', 'v', 'm', 'f', 'p', 'S', 'c', 't', 'i', 'I')
			AND n.nspname !~ '^pg_(toast_)?temp' ORDER BY c.oid, a.attnum`)
		if err != nil {
			return nil, err
		}
		var out []*relation
		for _, row := range rows {
			oid, err := strconv.ParseUint(text(row[1]), 10, 32)
			if err != nil {
				return nil, err
			}
			if len(out) == 0 || out[len(out)-1].spec.OID != uint32(oid) {
				r := &relation{schema: text(row[0]), name: name, reason: postgresReason(row, oid)}
				r.spec = feed.TableSpec{Schema: r.schema, Name: name, OID: uint32(oid), Policies: text(row[4])}
				if err := r.addHeirs(text(row[5])); err != nil {
					return nil, err
				}
				out = append(out, r)
			}
			if row[7] != nil {
				if err := out[len(out)-1].addPostgresColumn(row[7:]); err != nil {
					return nil, err
				}
			}
		}
		for _, r := range out {
			r.index(false)
			if err := k.postgresPolicies(ctx, r); err != nil {
				return nil, err
			}
			r.part()
			if err := k.postgresView(ctx, r); err != nil {
				return nil, err
			}
		}
		return out, nil
	})
}

// postgresView reads a view's definition. The server leaves out the schemas of
// names that the search path finds, so none but its own is in it meanwhile.
func (k *catalog) postgresView(ctx context.Context, r *relation) error {
	if r.reason != aView {
		return nil
	}
	rows, err := k.query(ctx, 2, `SELECT pg_catalog.set_config('search_path', 'pg_catalog', true),
		pg_catalog.pg_get_viewdef(`+strconv.FormatUint(uint64(r.spec.OID), 10)+`::pg_catalog.oid)`)
	if err != nil {
		return err
	}
	if len(rows) == 1 && text(rows[0][1]) != "" {
		r.reason, r.definition = "", text(rows[0][1])
	}
	return nil
}

// aView is the reason against a view until its definition is read.
const aView = "a view whose definition cannot be read"

func postgresReason(row []*string, oid uint64) string {
	schema := text(row[0])
	switch kind := text(row[2]); {
	case oid < firstUserOID || schema == "pg_catalog" || schema == "information_schema":
		return "a system table"
	case kind == "v":
		return aView
	case kind == "m":
		return "a materialized view: REFRESH … CONCURRENTLY changes it without a trace in the log or the catalog"
	case kind == "f":
		return "a foreign table, whose changes no stream here shows"
	case kind != "r" && kind != "p":
		return "not a table"
	case text(row[3]) == "u":
		return "an unlogged table, whose changes are not in the log"
	case text(row[3]) != "p":
		return "a temporary table"
	}
	return ""
}

// heirsSQL lists the OIDs of the tables whose rows are read with those of c, in
// order: partitions and tables that inherit, at any depth.
var heirsSQL = `CASE WHEN c.relkind IN ('r', 'p') THEN (WITH RECURSIVE heirs (oid) AS (
	SELECT i.inhrelid FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid
	UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN heirs h ON i.inhparent = h.oid)
	SELECT pg_catalog.string_agg(h.oid::text, ',' ORDER BY h.oid) FROM (SELECT oid FROM heirs LIMIT ` + strconv.Itoa(feed.MaxHeirs+1) + `) h) END`

// addHeirs takes what heirsSQL lists.
func (r *relation) addHeirs(list string) error {
	if list == "" {
		return nil
	}
	for _, part := range strings.Split(list, ",") {
		oid, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return err
		}
		r.spec.Heirs = append(r.spec.Heirs, uint32(oid))
	}
	if len(r.spec.Heirs) > feed.MaxHeirs && r.reason == "" {
		r.reason = fmt.Sprintf("more than %d partitions or heirs", feed.MaxHeirs)
	}
	return nil
}

// part makes what ONLY reads of a table that has heirs, once its columns are
// known.
func (r *relation) part() {
	if len(r.spec.Heirs) == 0 || r.reason != "" && len(r.spec.Heirs) <= feed.MaxHeirs {
		return
	}
	r.only = &relation{schema: r.schema, name: r.name, columns: r.columns, byName: r.byName, spec: r.spec, foreign: r.foreign,
		policies: r.policies, shielded: r.shielded}
	r.only.spec.Heirs, r.only.spec.Only = nil, true
}

// addPostgresColumn takes attname, atttypid, the type's name, whether it is
// generated, typtype, whether its collation is deterministic, whether it names.
func (r *relation) addPostgresColumn(row []*string) error {
	oid, err := strconv.ParseUint(text(row[1]), 10, 32)
	if err != nil {
		return err
	}
	isTrue := func(i int) bool { return text(row[i]) == "t" || text(row[i]) == "true" }
	c := column{name: text(row[0]), generated: isTrue(3), builtIn: oid < firstUserOID, names: isTrue(6)}
	if !c.generated {
		c.compare.Kind = canon.PostgresKind(uint32(oid), isTrue(5))
	}
	switch oid {
	case 1082, 1114, 1184:
		c.clock = clockDate
	case 1266:
		c.clock = clockOfDay
	case 20, 21, 23, 26, 700, 701, 1083, 1186, 1700:
		c.clock = clockNone
	}
	// An enum's operators are built in; those of other new types are not.
	r.foreign = r.foreign || oid >= firstUserOID && text(row[4]) != "e"
	r.columns = append(r.columns, c)
	r.spec.Columns = append(r.spec.Columns, feed.Column{Name: c.name, Kind: c.compare.Kind, Type: text(row[2])})
	return nil
}

// searchPath returns the schemas that an unqualified name is looked up in.
func (k *catalog) searchPath(ctx context.Context, s Scope) ([]string, *fact, error) {
	raw := s.SearchPath
	var f *fact
	if raw == "" {
		key := s.Database + "\x00" + s.User
		o, err := load(ctx, k, func() *once[string] { return k.paths[key] }, func(o *once[string]) { k.paths[key] = o },
			func(ctx context.Context) (string, error) { return k.defaultPath(ctx, s) })
		if err != nil {
			return nil, nil, err
		}
		raw, f = o.value, &o.fact
	}
	path := splitPath(raw)
	for i, p := range path {
		if p == "$user" {
			path[i] = s.User
		}
	}
	if !contains(path, "pg_catalog") {
		path = append([]string{"pg_catalog"}, path...)
	}
	return path, f, nil
}

// defaultPath asks what search_path a session of the scope's user begins with
// (ALTER ROLE and ALTER DATABASE … SET, then the server's own).
func (k *catalog) defaultPath(ctx context.Context, s Scope) (string, error) {
	rows, err := k.query(ctx, 1, `SELECT coalesce((SELECT substr(v, 13) FROM pg_catalog.pg_db_role_setting r
		CROSS JOIN LATERAL unnest(r.setconfig) v
		WHERE v LIKE 'search\_path=%' AND r.setdatabase IN (0, (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = `+postgresString(s.Database)+`))
		AND r.setrole IN (0, (SELECT a.oid FROM pg_catalog.pg_roles a WHERE a.rolname = `+postgresString(s.User)+`))
		ORDER BY r.setrole <> 0 DESC, r.setdatabase <> 0 DESC LIMIT 1), current_setting('search_path'))`)
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return text(rows[0][0]), nil
}

// splitPath reads a search_path setting: names separated by commas, folded
// unless quoted.
func splitPath(raw string) []string {
	var out []string
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == ' ' || c == ',' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v':
			i++
		case c == '"':
			var name strings.Builder
			for i++; i < len(raw); i++ {
				if raw[i] == '"' {
					if i+1 >= len(raw) || raw[i+1] != '"' {
						break
					}
					i++
				}
				name.WriteByte(raw[i])
			}
			i++
			out = append(out, name.String())
		default:
			end := i
			for end < len(raw) && raw[end] != ',' {
				end++
			}
			out = append(out, strings.ToLower(strings.TrimSpace(raw[i:end])))
			i = end
		}
	}
	return out
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}
