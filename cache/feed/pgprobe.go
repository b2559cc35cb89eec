package feed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

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

// glanceSQL takes a snapshot, then reads where the log ends.
const glanceSQL = `SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text`

// probeSQL is glanceSQL with the fingerprints: of the tables that are followed
// ($1), of everything else that can change what a statement means, and, if they
// are asked for ($2), of the names there are and of what came with the server. All
// in one statement, so in one snapshot.
var probeSQL = `SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text,
	(` + pgPrintsSQL + `), (` + pgWorldSQL + `), CASE WHEN $2::boolean THEN (` + pgNamesSQL + `) END, CASE WHEN $2 THEN (` + pgBuiltinsSQL + `) END`

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

// probeOn glances first: where nothing has moved since the last whole probe, the
// glance is as good as one. That the end of the log has not moved is not enough: a
// transaction is in the log before it is in snapshots.
//
// Names and what came with the server are looked at seldom. No answer can be wrong
// for want of the names, and what a superuser does to the server's own functions is
// noticed within twice Config.ProbeEvery.
func (s *pgSource) probeOn(ctx context.Context, c *pgconn.PgConn, whole bool) (pgSighting, bool, error) {
	s.mu.Lock()
	w := pgWatch{prints: maps.Clone(s.prints), world: s.world, names: s.names, builtins: s.builtins}
	gate := s.gate
	s.mu.Unlock()
	if w.world == "" {
		s.lastSnapshot, s.lastLSN = "", ""
	}
	if err := s.prepareProbe(ctx, c); err != nil {
		return pgSighting{}, false, err
	}
	row, err := pgProbeRow(ctx, c, glanceName)
	if err != nil {
		return pgSighting{}, false, err
	}
	moved := string(row[0]) != s.lastSnapshot || string(row[1]) != s.lastLSN
	seldom := w.names == "" || time.Since(s.named) >= s.feed.cfg.ProbeEvery
	if !whole || !moved && !(s.owing && seldom) {
		seen, err := readSighting(row, gate)
		return seen, !moved, err
	}
	if row, err = pgProbeRow(ctx, c, probeName, w.oids(), strconv.AppendBool(nil, seldom)); err != nil {
		return pgSighting{}, false, err
	}
	if s.owing = !seldom; seldom {
		s.named = time.Now()
	}
	seen, err := readSighting(row, gate)
	if err != nil {
		return seen, false, err
	}
	s.compare(w, pgWatch{world: string(row[3]), names: string(row[4]), builtins: string(row[5])}, string(row[2]))
	s.lastSnapshot, s.lastLSN = string(row[0]), string(row[1])
	return seen, true, nil
}

// pgWatch is what a probe's fingerprints are compared with.
type pgWatch struct {
	prints       map[nameKey]*pgPrint
	world, names string
	builtins     string
}

// oids are the tables', as an array's text.
func (w *pgWatch) oids() []byte {
	list := []byte("{")
	for _, p := range w.prints {
		for _, oid := range p.oids {
			if len(list) > 1 {
				list = append(list, ',')
			}
			list = strconv.AppendUint(list, uint64(oid), 10)
		}
	}
	return append(list, '}')
}

// The probe's prepared statements, and how many columns they have.
const (
	glanceName = "glance"
	probeName  = "probe"
)

var probeColumns = map[string]int{glanceName: 2, probeName: 6}

// pgProbeRow runs one of the probe's statements.
func pgProbeRow(ctx context.Context, c *pgconn.PgConn, name string, params ...[]byte) ([][]byte, error) {
	result := c.ExecPrepared(ctx, name, params, nil, nil).Read()
	if result.Err != nil {
		return nil, result.Err
	}
	if len(result.Rows) != 1 || len(result.Rows[0]) != probeColumns[name] {
		return nil, errors.New("feed: the server does not answer a probe")
	}
	return result.Rows[0], nil
}

func readSighting(row [][]byte, gate uint64) (pgSighting, error) {
	seen := pgSighting{gate: gate}
	var err error
	if seen.snapshot, err = parseSnapshot(string(row[0])); err != nil {
		return seen, err
	}
	seen.end, err = parseLSN(string(row[1]))
	return seen, err
}

// prepareProbe prepares the probe once on each line: planning it takes longer
// than running it.
func (s *pgSource) prepareProbe(ctx context.Context, c *pgconn.PgConn) error {
	if s.prepared == c {
		return nil
	}
	for name, sql := range map[string]string{glanceName: glanceSQL, probeName: probeSQL} {
		if _, err := c.Prepare(ctx, name, sql, nil); err != nil {
			return err
		}
	}
	s.prepared = c
	return nil
}

// compare tells the applier what is not as it was.
func (s *pgSource) compare(w, seen pgWatch, prints string) {
	if seen.names == "" { // not asked for
		seen.names, seen.builtins = w.names, w.builtins
	}
	now := make(map[string]string, len(w.prints))
	for _, part := range strings.FieldsFunc(prints, func(r rune) bool { return r == ',' }) {
		oid, print, _ := strings.Cut(part, ":")
		now[oid] = print
	}
	var changed []nameKey
	for key, p := range w.prints {
		for i, oid := range p.oids {
			if now[strconv.FormatUint(uint64(oid), 10)] != p.texts[i] {
				changed = append(changed, key)
				break
			}
		}
	}
	s.mu.Lock()
	s.world, s.names, s.builtins = seen.world, seen.names, seen.builtins
	// The first time, whatever the planner has read may be older.
	all := seen.world != w.world || w.builtins != "" && seen.builtins != w.builtins
	if all {
		clear(s.prints)
	}
	for _, key := range changed {
		// Only the one that was compared: the keeper may have made it anew.
		if s.prints[key] == w.prints[key] {
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
	if !all && w.names != "" && seen.names != w.names {
		// No answer that is kept can be wrong, but plans may say of a relation
		// that it does not exist.
		s.feed.applier.onSchema("", "")
	}
}
