package feed

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

func checkPostgres(ctx context.Context, dsn, from string) []Finding {
	var out findings
	s, err := newPostgres(nil, dsn, from)
	if out.failed(err, "mend the DSN") {
		return out
	}
	conn, err := s.connect(ctx, false)
	if out.failed(err, "start the server, or mend the DSN's address, user or password") {
		return out
	}
	defer func() {
		if err := conn.Close(ctx); err != nil {
			return // nothing is told after the findings
		}
	}()
	facts, err := readPgFacts(ctx, conn)
	facts.elsewhere = from != ""
	if out.failed(err, "") {
		return out
	}
	out.good("PostgreSQL %s at %s:%d, database %s", facts.version, s.config.Host, s.config.Port, facts.database)
	out.needs(facts.needs())
	if from != "" {
		out.pgReplica(ctx, s, conn, facts)
	} else if facts.replication && facts.senders < facts.sendersMost { // else it is said above
		replica, err := s.connect(ctx, true)
		if !out.failed(err, "allow replication connections of "+facts.user+" in pg_hba.conf") {
			out.good("role %s is let in for replication", facts.user)
			out.failed(replica.Close(ctx), "")
		}
	}
	out.pgLeftovers(ctx, conn)
	out.pgTables(ctx, conn, facts)
	return out
}

// pgLeftovers lists the publication and the slots that Freshets made. A slot
// is temporary, so one that is not active is none of theirs or being ended.
func (f *findings) pgLeftovers(ctx context.Context, c *pgconn.PgConn) {
	slots, err := pgRows(ctx, c, "SELECT slot_name, active, coalesce(pg_wal_lsn_diff(pg_current_wal_insert_lsn(), restart_lsn)::bigint, 0) "+
		"FROM pg_replication_slots WHERE slot_name LIKE $1 ORDER BY 1", strings.ReplaceAll(slotPrefix, "_", `\_`)+"%")
	if f.failed(err, "") {
		return
	}
	for _, row := range slots {
		if string(row[1]) == "t" {
			f.good("slot %s is in use and holds %s bytes of the log", row[0], row[2])
		} else {
			f.bad("SELECT pg_drop_replication_slot("+quoteText(string(row[0]))+")", "slot %s is left over and holds %s bytes of the log", row[0], row[2])
		}
	}
	publications, err := pgRows(ctx, c, "SELECT puballtables, (SELECT count(*) FROM pg_publication_rel r WHERE r.prpubid = p.oid) "+
		"FROM pg_publication p WHERE pubname = $1", publication)
	if f.failed(err, "") {
		return
	}
	for _, row := range publications {
		switch {
		case string(row[0]) == "t":
			f.bad("DROP PUBLICATION "+publication, "publication %s is FOR ALL TABLES: updates and deletes fail on tables without replica identity", publication)
		case len(slots) == 0:
			f.good("publication %s with %s tables was left by a Freshet that is gone; it holds no log, and the next one uses it", publication, row[1])
		default:
			f.good("publication %s has %s tables", publication, row[1])
		}
	}
}

func (f *findings) pgTables(ctx context.Context, c *pgconn.PgConn, facts pgFacts) {
	rows, err := pgRows(ctx, c, "SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid >= 16384 "+
		"AND c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY n.nspname, c.relname")
	if f.failed(err, "") {
		return
	}
	exact := 0
	for _, row := range rows {
		oid, err := strconv.ParseUint(string(row[0]), 10, 32)
		if err != nil {
			f.failed(err, "")
			return
		}
		family, err := readPgFamily(ctx, c, uint32(oid), false)
		if f.failed(err, "") {
			return
		}
		if len(family) == 0 {
			continue
		}
		err = family.refuse(facts.user)
		if fault := (*heirFault)(nil); errors.As(err, &fault) {
			continue // the heir is told of by itself
		}
		if err == nil && len(family) > MaxHeirs+1 {
			err = fmt.Errorf("more than %d tables are read with it", MaxHeirs)
		}
		if err != nil {
			mend := ""
			var m *mendable
			if errors.As(err, &m) {
				mend = m.mend
			}
			f.bad(mend, "table %s: %v", family[0].full(), err)
			continue
		}
		exact++
	}
	f.good("%d of %d tables can be followed", exact, len(rows))
}
