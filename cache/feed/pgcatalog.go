package feed

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// A row's xmin is the transaction that wrote it, so it changes with every
// change of the row; what vacuum and analyze write to the catalog in place
// leaves it alone.

// pgPrintSQL is the fingerprint of one table, c being its row in pg_class: the
// table itself with its file and privileges, its columns with theirs, the types
// made by users that it has and those within them, its policies, ancestors and descendants, the
// indexes that can identify its rows, that it is published, and relations
// elsewhere of the same name, which could take its place in a search path.
const pgPrintSQL = `md5(concat_ws('|', c.xmin, c.relname, c.relnamespace, c.relfilenode, c.relkind, c.relpersistence,
	c.relreplident, c.relrowsecurity, c.relforcerowsecurity, c.relispartition, c.relowner, c.relacl,
	(SELECT string_agg(concat_ws(':', a.attnum, a.xmin), ',' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0),
	(WITH RECURSIVE k(oid) AS (
			SELECT a.atttypid FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND a.atttypid >= 16384
			UNION SELECT x.oid FROM k JOIN pg_type t ON t.oid = k.oid CROSS JOIN LATERAL (SELECT t.typelem UNION ALL SELECT t.typbasetype
				UNION ALL SELECT r.rngsubtype FROM pg_range r WHERE r.rngtypid = t.oid OR to_jsonb(r) ->> 'rngmultitypid' = t.oid::text
				UNION ALL SELECT b.atttypid FROM pg_attribute b WHERE b.attrelid = t.typrelid AND b.attnum > 0) x(oid) WHERE x.oid >= 16384)
		SELECT string_agg(concat_ws(':', t.oid, t.xmin, (SELECT string_agg(concat_ws(':', e.oid, e.xmin), ';' ORDER BY e.oid)
			FROM pg_enum e WHERE e.enumtypid = t.oid), (SELECT string_agg(concat_ws(':', b.attnum, b.xmin), ';' ORDER BY b.attnum)
			FROM pg_attribute b WHERE b.attrelid = t.typrelid AND b.attnum > 0)), ',' ORDER BY t.oid)
		FROM k JOIN pg_type t ON t.oid = k.oid),
	(SELECT string_agg(concat_ws(':', p.oid, p.xmin), ',' ORDER BY p.oid) FROM pg_policy p WHERE p.polrelid = c.oid),
	(SELECT string_agg(concat_ws(':', i.inhrelid, i.inhparent, i.xmin), ',' ORDER BY i.inhrelid, i.inhparent)
		FROM pg_inherits i WHERE i.inhrelid = c.oid OR i.inhparent = c.oid),
	(SELECT string_agg(concat_ws(':', x.indexrelid, x.xmin), ',' ORDER BY x.indexrelid)
		FROM pg_index x WHERE x.indrelid = c.oid AND (x.indisprimary OR x.indisreplident)),
	(SELECT string_agg(concat_ws(':', r.xmin, p.xmin), ',') FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
		WHERE r.prrelid = c.oid AND p.pubname = 'freshet'),
	(SELECT string_agg(concat_ws(':', o.oid, o.relnamespace), ',' ORDER BY o.oid)
		FROM pg_class o WHERE o.relname = c.relname AND o.relpersistence <> 't' AND o.oid <> c.oid)))`

const pgPrintsSQL = `SELECT coalesce(string_agg(concat_ws(':', c.oid, ` + pgPrintSQL + `), ','), '')
	FROM pg_class c WHERE c.oid = ANY ($1::oid[])`

// pgWorldSQL is the fingerprint of what belongs to no followed table: views
// with their privileges, their columns' names and what could take a view's place, functions,
// operators, casts, conversions and collations made by users, how text is taken
// apart for searching, schemas, roles with their
// members, and settings that sessions begin with. It is read for each proof, so it
// comes to views by their rules: pg_class has a row for every index, too.
const pgWorldSQL = `SELECT md5(concat_ws('|',
	(SELECT string_agg(concat_ws(':', w.oid, w.xmin, v.print), ',' ORDER BY w.oid) FROM pg_rewrite w
		CROSS JOIN LATERAL (SELECT CASE WHEN c.relkind IN ('v', 'm') THEN concat_ws(':', c.oid, c.xmin,
			(SELECT count(*) FROM pg_class o WHERE o.relname = c.relname AND o.relpersistence <> 't'),
			(SELECT string_agg(concat_ws(':', a.attnum, a.attname), ';' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0)) END AS print
			FROM pg_class c WHERE c.oid = w.ev_class AND c.relpersistence <> 't' OFFSET 0) v WHERE w.oid >= 16384),
	(SELECT concat_ws(':', count(*), sum(f.oid::bigint), sum(f.xmin::text::bigint)) FROM pg_proc f WHERE f.oid >= 16384),
	(SELECT concat_ws(':', count(*), sum(o.oid::bigint), sum(o.xmin::text::bigint)) FROM pg_operator o WHERE o.oid >= 16384),
	(SELECT concat_ws(':', count(*), sum(k.oid::bigint), sum(k.xmin::text::bigint)) FROM pg_cast k WHERE k.oid >= 16384),
	(SELECT concat_ws(':', count(*), sum(l.oid::bigint), sum(l.xmin::text::bigint)) FROM pg_collation l WHERE l.oid >= 16384),
	(SELECT concat_ws(':', count(*), sum(v.oid::bigint), sum(v.xmin::text::bigint)) FROM pg_conversion v WHERE v.oid >= 16384),
	(SELECT concat_ws(':', count(*), sum(t.oid::bigint), sum(t.xmin::text::bigint)) FROM pg_ts_config t),
	(SELECT concat_ws(':', sum(t.n), sum(t.mapcfg::bigint * t.n), sum(t.xmin::text::bigint * t.n))
		FROM (SELECT mapcfg, xmin, count(*) AS n FROM pg_ts_config_map GROUP BY mapcfg, xmin) t),
	(SELECT concat_ws(':', count(*), sum(t.oid::bigint), sum(t.xmin::text::bigint)) FROM pg_ts_dict t),
	(SELECT string_agg(concat_ws(':', n.oid, n.xmin), ',' ORDER BY n.oid) FROM pg_namespace n WHERE n.nspname !~ '^pg_(toast_)?temp'),
	(SELECT string_agg(concat_ws(':', r.oid, r.rolname, r.rolsuper, r.rolinherit, r.rolcanlogin, r.rolbypassrls), ',' ORDER BY r.oid) FROM pg_roles r),
	(SELECT string_agg(concat_ws(':', m.roleid, m.member, m.xmin), ',' ORDER BY m.roleid, m.member, m.grantor) FROM pg_auth_members m),
	(SELECT string_agg(concat_ws(':', d.setdatabase, d.setrole, d.xmin), ',' ORDER BY d.setdatabase, d.setrole) FROM pg_db_role_setting d),
	(SELECT concat_ws(':', b.datdba, b.datacl) FROM pg_database b WHERE b.datname = current_database())))`

// pgNamesSQL is the fingerprint of which relations there are.
const pgNamesSQL = `SELECT concat_ws(':', count(*), sum(c.oid::bigint), sum(hashtext(c.relname)::bigint)) FROM pg_class c
	WHERE c.oid >= 16384 AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't'`

// pgBuiltinsSQL is the fingerprint of the server's own functions, operators and
// casts, which a superuser can take from others or replace. There are thousands,
// so they are looked at now and then, and not in each proof.
const pgBuiltinsSQL = `SELECT string_agg(concat_ws(':', b.kind, b.x, b.n), ',' ORDER BY b.kind, b.x::text) FROM (
	SELECT 'f' AS kind, xmin AS x, count(*) AS n FROM pg_proc WHERE oid < 16384 GROUP BY xmin
	UNION ALL SELECT 'o', xmin, count(*) FROM pg_operator WHERE oid < 16384 GROUP BY xmin
	UNION ALL SELECT 'c', xmin, count(*) FROM pg_cast WHERE oid < 16384 GROUP BY xmin) b`

// pgUnsentKeySQL tells whether the replica identity of c holds a generated
// column that the publication leaves out: from PostgreSQL 18 on, the server
// refuses updates and deletes of such a table once it is published. Virtual
// ones are never published, stored ones if the publication says so.
const pgUnsentKeySQL = `(current_setting('server_version_num')::int >= 180000 AND EXISTS (SELECT FROM pg_attribute a
	WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND (a.attgenerated = 'v' OR a.attgenerated = 's' AND NOT EXISTS
		(SELECT FROM pg_publication p WHERE p.pubname = 'freshet' AND to_jsonb(p) ->> 'pubgencols' = 's'))
	AND (c.relreplident = 'f' OR EXISTS (SELECT FROM pg_index x WHERE x.indrelid = c.oid AND a.attnum = ANY (x.indkey) AND
		CASE c.relreplident WHEN 'd' THEN x.indisprimary WHEN 'i' THEN x.indisreplident ELSE false END))))`

// pgTableSQL is what must be known of a table before it is followed, and of its
// heirs, after it.
const pgTableSQL = pgFamilySQL + `SELECT n.nspname, c.relname, c.relkind, c.relpersistence,
	c.relreplident = 'f' OR EXISTS (SELECT FROM pg_index x WHERE x.indrelid = c.oid AND x.indisvalid AND x.indimmediate AND
		CASE c.relreplident WHEN 'd' THEN x.indisprimary WHEN 'i' THEN x.indisreplident ELSE false END),
	c.oid,
	pg_has_role(c.relowner, 'USAGE'),
	EXISTS (SELECT FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid WHERE r.prrelid = c.oid AND p.pubname = 'freshet'),
	` + pgPrintSQL + `,
	EXISTS (SELECT FROM pg_publication_tables t WHERE t.pubname = 'freshet' AND t.schemaname = n.nspname AND t.tablename = c.relname
		AND (to_jsonb(t) ->> 'rowfilter' IS NOT NULL OR jsonb_array_length(to_jsonb(t) -> 'attnames') <
			(SELECT count(*) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''))),
	EXISTS (SELECT FROM pg_publication p WHERE p.pubname = 'freshet' AND NOT (p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate)),
	` + pgUnsentKeySQL + `,
	c.relreplident,
	(SELECT coalesce(string_agg(a.attname, E'\n'), '') FROM pg_attribute a JOIN pg_index x ON x.indrelid = c.oid AND a.attnum = ANY (x.indkey)
		WHERE a.attrelid = c.oid AND CASE c.relreplident WHEN 'd' THEN x.indisprimary WHEN 'i' THEN x.indisreplident ELSE false END),
	EXISTS (SELECT FROM pg_publication p WHERE p.pubname = 'freshet' AND p.pubviaroot),
	` + PoliciesSQL + `
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.oid IN (SELECT f.oid FROM family f LIMIT ` + pgFamilyLimit + `) ORDER BY c.oid <> $1::oid, c.oid`

func (t *pgTable) full() string { return quoteIdent(t.schema) + "." + quoteIdent(t.name) }

// mendable is a reason against a table that a statement takes away.
type mendable struct{ why, mend string }

func (m *mendable) Error() string { return m.why + "; mend: " + m.mend }

// refuse says why the rows of a table cannot be followed, nil when they can. A
// partitioned table has none of its own.
func (t *pgTable) refuse(user string) error {
	switch {
	case t.kind == "p":
		return nil
	case t.kind == "f":
		return errors.New("it is a foreign table, whose changes no stream here shows")
	case t.kind != "r":
		return errors.New("it is not an ordinary table")
	case t.persistence == "t":
		return errors.New("it is a temporary table, which other sessions do not see")
	case t.persistence != "p":
		return &mendable{"it is unlogged, so its changes are not in the log", "ALTER TABLE " + t.full() + " SET LOGGED"}
	case !t.identity:
		// Publishing it would make its updates and deletes fail.
		return &mendable{"it has no replica identity", "ALTER TABLE " + t.full() + " REPLICA IDENTITY FULL, or give it a primary key"}
	case t.unsentKey:
		return &mendable{"its replica identity holds a generated column, which is not published", "ALTER TABLE " + t.full() +
			" REPLICA IDENTITY DEFAULT, with a primary key"}
	case t.restricted:
		return &mendable{"publication " + publication + " leaves rows or columns of it out", "ALTER PUBLICATION " + publication + " DROP TABLE " + t.full()}
	case t.partial:
		return &mendable{"publication " + publication + " leaves kinds of changes out", "ALTER PUBLICATION " + publication +
			" SET (publish = 'insert, update, delete, truncate')"}
	case t.byRoot:
		return &mendable{"publication " + publication + " tells changes of partitions as their root's", "ALTER PUBLICATION " + publication +
			" SET (publish_via_partition_root = false)"}
	case !t.published && !t.owner:
		return &mendable{"role " + user + " does not own it, so it may not publish it",
			"as a superuser, ALTER PUBLICATION " + publication + " ADD TABLE " + t.full() + ", or GRANT the owner's role TO " + quoteIdent(user)}
	}
	return nil
}

// vet asks the catalog whether the table can be published.
func (s *pgSource) vet(spec *TableSpec) error {
	if spec.OID < 16384 {
		return errors.New("it belongs to the server")
	}
	ctx, cancel := context.WithTimeout(context.Background(), sideTimeout)
	defer cancel()
	return s.vets.Use(ctx, func(ctx context.Context, c *pgconn.PgConn) error {
		family, err := readPgFamily(ctx, c, spec.OID, spec.Only)
		if err != nil {
			return err
		}
		if len(family) == 0 {
			return errors.New("it is not there any more")
		}
		return family.refuse(s.fact().user)
	})
}

// makePublication makes the publication if it is not there. It is never for all
// tables: that would make updates and deletes fail on those without replica
// identity.
func makePublication(ctx context.Context, c *pgconn.PgConn) error {
	rows, err := pgRows(ctx, c, `SELECT puballtables, pubinsert AND pubupdate AND pubdelete AND pubtruncate,
		coalesce(to_jsonb(p) ->> 'pubgencols', 's') = 's' FROM pg_publication p WHERE pubname = $1`, publication)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		err := pgExec(ctx, c, "CREATE PUBLICATION "+publication)
		if code := pgCode(err); err != nil && code != pgDuplicateObject && code != pgUniqueViolation {
			return err
		}
		// Another Freshet may have been quicker, and this server may know more.
		if rows, err = pgRows(ctx, c, "SELECT to_jsonb(p) ->> 'pubgencols' = 'n' FROM pg_publication p WHERE pubname = $1", publication); err != nil {
			return err
		}
		if len(rows) == 1 && string(rows[0][0]) == "t" {
			return pgExec(ctx, c, publishGenerated)
		}
		return nil
	}
	if string(rows[0][0]) == "t" {
		return fmt.Errorf("the server cannot be followed: publication %s is FOR ALL TABLES; mend: DROP PUBLICATION %s", publication, publication)
	}
	if string(rows[0][1]) != "t" {
		if err := pgExec(ctx, c, "ALTER PUBLICATION "+publication+" SET (publish = 'insert, update, delete, truncate')"); err != nil {
			return err
		}
	}
	if string(rows[0][2]) != "t" {
		return pgExec(ctx, c, publishGenerated)
	}
	return nil
}

// publishGenerated has stored generated columns published, where they can be.
const publishGenerated = "ALTER PUBLICATION " + publication + " SET (publish_generated_columns = stored)"

// inspect publishes tables, waits, table by table, until every transaction that
// may have begun before has ended, and compares their definitions.
func (s *pgSource) inspect(ctx context.Context, tables []*Table) (verdict, error) {
	var v verdict
	err := s.queries.Use(ctx, func(ctx context.Context, c *pgconn.PgConn) error {
		for _, tb := range tables {
			if err := s.inspectOne(ctx, c, tb, &v); err != nil {
				return err
			}
		}
		return nil
	})
	return v, err
}

func (s *pgSource) inspectOne(ctx context.Context, c *pgconn.PgConn, tb *Table, v *verdict) error {
	family, err := readPgFamily(ctx, c, tb.Spec.OID, tb.Spec.Only)
	if err != nil {
		return err
	}
	fits := family.fits(&tb.Spec) && family.refuse(s.fact().user) == nil
	if fits {
		if fits, err = s.columnsFit(ctx, c, &tb.Spec); err != nil {
			return err
		}
	}
	key := keyOf(s, &tb.Spec)
	if !fits {
		delete(s.gates, tb)
		if s.misfits[key]++; s.misfits[key] <= misfitLimit {
			v.bad = append(v.bad, tb)
		}
		return nil
	}
	if missing := family.unpublished(); len(missing) > 0 {
		delete(s.gates, tb)
		return s.publish(ctx, c, tb, missing, v)
	}
	ended, err := s.ended(ctx, c, tb)
	if err != nil {
		return err
	}
	if !ended {
		v.later = append(v.later, tb)
		return nil
	}
	delete(s.gates, tb)
	delete(s.misfits, key)
	s.feed.cfg.Tracker.learn(tb, family.facts(tb.Spec.Columns))
	s.mu.Lock()
	s.prints[key] = family.prints()
	s.mu.Unlock()
	v.good = append(v.good, tb)
	return nil
}

// publish adds tables to the publication. It waits for whoever is changing
// their definition or vacuuming them, for as long as lock_timeout says.
func (s *pgSource) publish(ctx context.Context, c *pgconn.PgConn, tb *Table, missing []*pgTable, v *verdict) error {
	for _, t := range missing {
		err := pgExec(ctx, c, "ALTER PUBLICATION "+publication+" ADD TABLE ONLY "+t.full())
		if pgCode(err) == pgUndefinedObject {
			err = makePublication(ctx, c) // somebody dropped it
		}
		switch pgCode(err) {
		case "":
			if err != nil {
				return err
			}
		case pgDuplicateObject, pgLockNotAvailable, pgDeadlock, pgUndefinedTable, pgUniqueViolation:
			v.later = append(v.later, tb)
			return nil
		default:
			// It was not refused before: the role was allowed less meanwhile.
			s.feed.journal.failed("a table could not be published", fmt.Errorf("%s: %w", t.full(), err))
			return nil
		}
	}
	v.later = append(v.later, tb)
	return nil
}

// ended tells whether every transaction that may have begun before the table
// was published has ended. Their changes are not published, even if they come
// after.
func (s *pgSource) ended(ctx context.Context, c *pgconn.PgConn, tb *Table) (bool, error) {
	rows, err := pgRows(ctx, c, "SELECT pg_snapshot_xmin(s.s)::text, pg_snapshot_xmax(s.s)::text FROM (SELECT pg_current_snapshot() AS s OFFSET 0) s")
	if err != nil {
		return false, err
	}
	if len(rows) != 1 || len(rows[0]) != 2 {
		return false, errors.New("feed: the server does not tell its snapshot")
	}
	xmin, err1 := strconv.ParseUint(string(rows[0][0]), 10, 64)
	xmax, err2 := strconv.ParseUint(string(rows[0][1]), 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return false, err
	}
	gate, known := s.gates[tb]
	if !known {
		gate = xmax
		s.gates[tb] = gate
	}
	return xmin >= gate, nil
}

// columnsFit tells whether the catalog has the columns of the definition, by
// name, type and order.
func (s *pgSource) columnsFit(ctx context.Context, c *pgconn.PgConn, spec *TableSpec) (bool, error) {
	rows, err := pgRows(ctx, c, `SELECT a.attname, format_type(a.atttypid, a.atttypmod), format_type(a.atttypid, NULL), t.typname
		FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
		WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`, strconv.FormatUint(uint64(spec.OID), 10))
	if err != nil || len(rows) != len(spec.Columns) {
		return false, err
	}
	for i, col := range spec.Columns {
		row := rows[i]
		if string(row[0]) != col.Name {
			return false, nil
		}
		if col.Type != "" && col.Type != string(row[1]) && col.Type != string(row[2]) && col.Type != string(row[3]) &&
			!strings.HasSuffix(col.Type, "."+string(row[1])) && !strings.HasSuffix(string(row[1]), "."+col.Type) { // in one's search path or not
			return false, nil
		}
	}
	return true, nil
}

// tend takes tables out of the publication that have lost their replica
// identity, or have one that is not published whole: their updates and deletes
// would fail.
func (s *pgSource) tend(ctx context.Context) {
	if !s.untidy.Swap(false) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := s.queries.Use(ctx, func(ctx context.Context, c *pgconn.PgConn) error {
		rows, err := pgRows(ctx, c, `SELECT n.nspname, c.relname FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
			JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE p.pubname = $1 AND (c.relreplident <> 'f' AND NOT EXISTS (SELECT FROM pg_index x WHERE x.indrelid = c.oid
			AND x.indisvalid AND x.indimmediate AND
			CASE c.relreplident WHEN 'd' THEN x.indisprimary WHEN 'i' THEN x.indisreplident ELSE false END)
			OR `+pgUnsentKeySQL+`)`, publication)
		if err != nil {
			return err
		}
		for _, row := range rows {
			t := pgTable{schema: string(row[0]), name: string(row[1])}
			if err := pgExec(ctx, c, "ALTER PUBLICATION "+publication+" DROP TABLE ONLY "+t.full()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		s.untidy.Store(true)
		s.feed.journal.failed("a table without replica identity is still published", err)
	}
}
