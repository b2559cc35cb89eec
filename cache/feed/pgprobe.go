package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// pgSnapshot is a PostgreSQL snapshot: transactions numbered below xmin have
// ended, those from xmax on have not, and between only the running ones have
// not (manual, "Transaction ID and Snapshot Information Functions").
type pgSnapshot struct {
	xmin, xmax uint64
	running    []uint64 // sorted
}

func parseSnapshot(text string) (pgSnapshot, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return pgSnapshot{}, fmt.Errorf("feed: %q is not a snapshot", text)
	}
	var s pgSnapshot
	var err1, err2 error
	s.xmin, err1 = strconv.ParseUint(parts[0], 10, 64)
	s.xmax, err2 = strconv.ParseUint(parts[1], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return pgSnapshot{}, fmt.Errorf("feed: %q is not a snapshot", text)
	}
	for _, part := range strings.FieldsFunc(parts[2], func(r rune) bool { return r == ',' }) {
		x, err := strconv.ParseUint(part, 10, 64)
		if err != nil {
			return pgSnapshot{}, fmt.Errorf("feed: %q is not a snapshot", text)
		}
		s.running = append(s.running, x)
	}
	slices.Sort(s.running)
	return s, nil
}

// sees tells whether a transaction has ended. xid is the number's low half;
// the whole one is within two billion of xmax.
func (s pgSnapshot) sees(xid uint32) bool {
	full := s.xmax + uint64(int64(int32(xid-uint32(s.xmax))))
	if full >= s.xmax {
		return false
	}
	if full < s.xmin {
		return true
	}
	_, runs := slices.BinarySearch(s.running, full)
	return !runs
}

// pgSighting is a snapshot and where the log's end was after it was taken.
type pgSighting struct {
	snapshot pgSnapshot
	end      uint64
	gate     uint64
	standby  bool // the stream is a standby's
}

func (s pgSighting) sees(c *commit) bool { return s.snapshot.sees(c.xid) }
func (s pgSighting) covered(l *ledger) bool {
	return l.raw >= s.end && (!s.standby || l.vouched >= s.end)
}
func (s pgSighting) opens() bool { return s.snapshot.xmin >= s.gate }

// probeSQL takes a snapshot, then reads where the log ends, and, if anything
// moved since the last probe, the fingerprints: of the tables that are
// followed ($3), of everything else that can change what a statement means,
// and of the names there are. All in one statement, so in one snapshot. They take
// the server some milliseconds where many tables are followed, so whoever only
// wants to know what can be read asks for none ($4).
//
// That the end of the log has not moved is not enough: a transaction is in the
// log before it is in snapshots.
var probeSQL = `SELECT p.snapshot, p.lsn, p.moved,
	CASE WHEN p.moved AND $4::boolean THEN (` + pgPrintsSQL + `) END,
	CASE WHEN p.moved AND $4::boolean THEN (` + pgWorldSQL + `) END,
	CASE WHEN p.moved AND $4::boolean THEN (` + pgNamesSQL + `) END
FROM (SELECT s.snapshot, s.lsn, s.snapshot <> $1::text OR s.lsn <> $2::text AS moved
	FROM (SELECT pg_current_snapshot()::text AS snapshot, pg_current_wal_insert_lsn()::text AS lsn OFFSET 0) s OFFSET 0) p`

// probe asks for a snapshot, and tells of changed definitions before it
// returns: a probe is not proven before they are marked.
func (s *pgSource) probe(ctx context.Context, whole bool) (sighting, bool, error) {
	var seen pgSighting
	err := s.probes.Use(ctx, func(ctx context.Context, c *pgconn.PgConn) (err error) {
		seen, whole, err = s.probeOn(ctx, c, whole)
		return err
	})
	if err == nil && s.copy.config != nil {
		seen.standby = true
		err = s.vouch(ctx)
	}
	if err != nil {
		return nil, false, err
	}
	return seen, whole, nil
}

func (s *pgSource) probeOn(ctx context.Context, c *pgconn.PgConn, whole bool) (pgSighting, bool, error) {
	s.mu.Lock()
	watched := make(map[nameKey]*pgPrint, len(s.prints))
	oids := make([]string, 0, len(s.prints))
	for key, p := range s.prints {
		watched[key] = p
		for _, oid := range p.oids {
			oids = append(oids, strconv.FormatUint(uint64(oid), 10))
		}
	}
	world, names, gate := s.world, s.names, s.gate
	s.mu.Unlock()
	if world == "" {
		s.lastSnapshot, s.lastLSN = "", ""
	}
	if err := s.prepareProbe(ctx, c); err != nil {
		return pgSighting{}, false, err
	}
	result := c.ExecPrepared(ctx, probeName,
		[][]byte{[]byte(s.lastSnapshot), []byte(s.lastLSN), []byte("{" + strings.Join(oids, ",") + "}"),
			strconv.AppendBool(nil, whole)}, nil, nil).Read()
	rows, err := result.Rows, result.Err
	if err != nil {
		return pgSighting{}, false, err
	}
	if len(rows) != 1 || len(rows[0]) != 6 {
		return pgSighting{}, false, errors.New("feed: the server does not answer a probe")
	}
	row := rows[0]
	seen := pgSighting{gate: gate}
	if seen.snapshot, err = parseSnapshot(string(row[0])); err != nil {
		return seen, false, err
	}
	if seen.end, err = parseLSN(string(row[1])); err != nil {
		return seen, false, err
	}
	moved := string(row[2]) == "t"
	if moved && !whole {
		return seen, false, nil
	}
	if moved {
		s.compare(watched, string(row[3]), world, string(row[4]), names, string(row[5]))
	}
	s.lastSnapshot, s.lastLSN = string(row[0]), string(row[1])
	return seen, true, nil
}

const probeName = "probe"

// prepareProbe prepares the probe once on each line: planning it takes longer
// than running it.
func (s *pgSource) prepareProbe(ctx context.Context, c *pgconn.PgConn) error {
	if s.prepared == c {
		return nil
	}
	if _, err := c.Prepare(ctx, probeName, probeSQL, nil); err != nil {
		return err
	}
	s.prepared = c
	return nil
}

// compare tells the applier what is not as it was.
func (s *pgSource) compare(watched map[nameKey]*pgPrint, prints, world, newWorld, names, newNames string) {
	now := make(map[string]string, len(watched))
	for _, part := range strings.FieldsFunc(prints, func(r rune) bool { return r == ',' }) {
		oid, print, _ := strings.Cut(part, ":")
		now[oid] = print
	}
	var changed []nameKey
	for key, p := range watched {
		for i, oid := range p.oids {
			if now[strconv.FormatUint(uint64(oid), 10)] != p.texts[i] {
				changed = append(changed, key)
				break
			}
		}
	}
	s.mu.Lock()
	s.world, s.names = newWorld, newNames
	// The first time, whatever the planner has read may be older.
	all := world != newWorld
	if all {
		clear(s.prints)
	}
	for _, key := range changed {
		// Only the one that was compared: the keeper may have made it anew.
		if s.prints[key] == watched[key] {
			delete(s.prints, key)
		}
	}
	s.mu.Unlock()
	switch {
	case all:
		s.untidy.Store(true)
		s.feed.applier.everything()
	case len(changed) > 0:
		s.untidy.Store(true)
		s.feed.applier.redefined(changed)
	}
	if !all && names != "" && names != newNames {
		// No answer that is kept can be wrong, but plans may say of a relation
		// that it does not exist.
		s.feed.applier.onSchema("", "")
	}
}
