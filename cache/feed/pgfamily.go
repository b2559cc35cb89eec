package feed

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// MaxHeirs bounds the heirs of a followed table: a probe looks at the
// definition of each.
const MaxHeirs = 256

// pgFamilyLimit is more than a table that is followed can have with its heirs.
const pgFamilyLimit = "300"

// pgFamilySQL finds the table $1 and its heirs, at any depth, unless $2 says
// that it is read without them.
const pgFamilySQL = `WITH RECURSIVE family (oid) AS (SELECT $1::oid
	UNION SELECT i.inhrelid FROM pg_inherits i JOIN family f ON i.inhparent = f.oid WHERE NOT $2::bool) `

// PoliciesSQL is the fingerprint of a table's row-level security, c being its
// row in pg_class: what TableSpec.Policies has.
const PoliciesSQL = `CASE WHEN c.relrowsecurity THEN 'on' || coalesce((SELECT pg_catalog.string_agg(':' || p.oid || '/' || p.xmin, '' ORDER BY p.oid)
	FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid), '') ELSE '' END`

// pgTable is a row of pgTableSQL.
type pgTable struct {
	oid                                    uint32
	schema, name                           string
	kind, persistence                      string
	identity, owner, published, restricted bool
	partial                                bool // the publication leaves kinds of changes out
	byRoot                                 bool // it tells changes of partitions as their root's
	unsentKey                              bool // see pgUnsentKeySQL
	print, policies                        string
	identityKind                           string // pg_class.relreplident
	identityColumns                        []string
}

// pgFamily is a table and, after it, its heirs, by OID.
type pgFamily []*pgTable

// readPgFamily reads a table with its heirs, or without; nothing if it is not
// there.
func readPgFamily(ctx context.Context, c *pgconn.PgConn, oid uint32, only bool) (pgFamily, error) {
	rows, err := pgRows(ctx, c, pgTableSQL, strconv.FormatUint(uint64(oid), 10), strconv.FormatBool(only))
	if err != nil {
		return nil, err
	}
	var out pgFamily
	for _, row := range rows {
		is := func(i int) bool { return string(row[i]) == "t" }
		of, err := strconv.ParseUint(string(row[5]), 10, 32)
		if err != nil {
			return nil, err
		}
		out = append(out, &pgTable{oid: uint32(of), schema: string(row[0]), name: string(row[1]), kind: string(row[2]), persistence: string(row[3]),
			identity: is(4), owner: is(6), published: is(7), print: string(row[8]), restricted: is(9), partial: is(10), unsentKey: is(11),
			identityKind: string(row[12]), identityColumns: strings.Split(string(row[13]), "\n"), byRoot: is(14), policies: string(row[15])})
	}
	if len(out) > 0 && out[0].oid != oid {
		return nil, nil // dropped while its heirs are still being dropped
	}
	return out, nil
}

// heirFault is a reason against one of a table's heirs.
type heirFault struct {
	heir string
	err  error
}

func (e *heirFault) Error() string { return e.heir + ", which is read with it: " + e.err.Error() }
func (e *heirFault) Unwrap() error { return e.err }

// refuse says why the table cannot be followed, nil when it can.
func (f pgFamily) refuse(user string) error {
	for i, t := range f {
		if err := t.refuse(user); err != nil && i > 0 {
			return &heirFault{t.full(), err}
		} else if err != nil {
			return err
		}
	}
	return nil
}

// fits tells whether this is the family of a definition.
func (f pgFamily) fits(spec *TableSpec) bool {
	if len(f) == 0 || f[0].schema != spec.Schema || f[0].name != spec.Name || f[0].policies != spec.Policies {
		return false
	}
	return slices.EqualFunc(f[1:], spec.Heirs, func(t *pgTable, oid uint32) bool { return t.oid == oid })
}

// unpublished are the tables with rows that are not in the publication.
func (f pgFamily) unpublished() []*pgTable {
	var out []*pgTable
	for _, t := range f {
		if t.kind == "r" && !t.published {
			out = append(out, t)
		}
	}
	return out
}

func (f pgFamily) prints() *pgPrint {
	p := &pgPrint{}
	for _, t := range f {
		p.oids, p.texts = append(p.oids, t.oid), append(p.texts, t.print)
	}
	return p
}

// facts says what the log has of the rows: what it has of those of each table.
func (f pgFamily) facts(columns []Column) tableFacts {
	var out tableFacts
	var images []string
	for _, t := range f {
		if t.kind != "r" {
			continue
		}
		images = append(images, map[string]string{"d": "default", "f": "full", "i": "index", "n": "nothing"}[t.identityKind])
		if t.identityKind == "f" {
			continue
		}
		if out.known == nil {
			out.mend = "ALTER TABLE " + t.full() + " REPLICA IDENTITY FULL"
			out.known = slices.Repeat([]bool{true}, len(columns))
		}
		for i, c := range columns {
			out.known[i] = out.known[i] && slices.Contains(t.identityColumns, c.Name)
		}
	}
	slices.Sort(images)
	out.image = "replica identity " + strings.Join(slices.Compact(images), " or ")
	if len(images) == 0 {
		out.image = "no rows of its own"
	}
	return out
}
