package feed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"freshet/cache/feed/binlog"
)

// gtidSighting is what a MySQL server tells of its transactions. One that is in
// gtid_executed can be read by other sessions; one that can be read is there,
// or still in gtid_owned: a commit first becomes readable and then passes from
// the one to the other, at once. So executed tells from below what is visible,
// and both together tell from above, if owned is read first.
type gtidSighting struct {
	owned, executed *binlog.GTIDSet
	gate            *binlog.GTIDSet // what was received before the stream began
}

func (s gtidSighting) sees(c *commit) bool { return s.executed.Has(c.gtid) }

func (s gtidSighting) covered(l *ledger) bool {
	return l.received != nil && l.received.Contains(s.executed) && l.received.Contains(s.owned)
}

// opens is true at once where the upstream's own log is followed: what
// gtid_executed lacked when the stream began comes in the stream. A replica can
// be ahead of it: what the upstream's semi-synchronous replication holds back.
func (s gtidSighting) opens() bool { return s.gate == nil || s.executed.Contains(s.gate) }

// mariaSighting is the place in the log that a consistent snapshot ends at:
// commits become readable in the order of the log.
type mariaSighting struct{ raw uint64 }

func (s mariaSighting) sees(c *commit) bool    { return c.raw <= s.raw }
func (s mariaSighting) covered(l *ledger) bool { return l.raw >= s.raw }
func (s mariaSighting) opens() bool            { return true }

// probe asks for a snapshot. It is always whole: definitions change in the log.
func (s *mysqlSource) probe(ctx context.Context, _ bool) (seen sighting, whole bool, err error) {
	err = s.probes.Use(ctx, func(_ context.Context, c *client.Conn) (err error) {
		switch {
		case s.fact().maria && s.from != nil:
			seen, err = s.probeMariaGTID(c)
		case s.fact().maria:
			seen, err = s.probeMaria(c)
		default:
			seen, err = s.probeMySQL(c)
		}
		return err
	})
	return seen, true, err
}

func (s *mysqlSource) probeMySQL(c *client.Conn) (sighting, error) {
	// The order counts, see gtidSighting; the server takes them as they stand.
	rows, err := mysqlRows(c, "SELECT @@GLOBAL.gtid_owned, @@GLOBAL.gtid_executed")
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 || len(rows[0]) != 2 {
		return nil, errors.New("feed: the server does not tell gtid_executed")
	}
	owned, err := binlog.ParseGTIDSet(ownerOf.ReplaceAllString(rows[0][0], ""))
	if err != nil {
		return nil, err
	}
	if text := rows[0][1]; s.lastSeen == nil || text != s.lastText {
		executed, err := binlog.ParseGTIDSet(text)
		if err != nil {
			return nil, err
		}
		if s.lastSeen != nil && !executed.Contains(s.lastSeen) {
			s.lastSeen = nil
			err := errors.New("gtid_executed has shrunk: the log was reset")
			s.feed.lose(err)
			return nil, err
		}
		s.lastText, s.lastSeen = text, executed
	}
	gate, _ := s.gates()
	return gtidSighting{owned, s.lastSeen, gate}, nil
}

// ownerOf is the thread that gtid_owned names behind each GTID.
var ownerOf = regexp.MustCompile(`#\d+`)

// mariaPlace is what MariaDB tells with a consistent snapshot.
type mariaPlace struct {
	file    string
	offset  uint64
	raw     uint64
	domains map[uint32]uint64 // gtid_binlog_pos; it may run ahead of the snapshot
}

// begins takes where a snapshot begins from SHOW STATUS, names in small letters.
func (p *mariaPlace) begins(status map[string]string) (err error) {
	p.file = status["binlog_snapshot_file"]
	if p.offset, err = strconv.ParseUint(status["binlog_snapshot_position"], 10, 40); err != nil {
		return fmt.Errorf("feed: the server tells no binlog_snapshot_position: %w", err)
	}
	p.raw, err = rawPlace(p.file, p.offset)
	return err
}

// mariaSnapshot asks, in one round trip, where in the log a snapshot taken now
// ends (MariaDB knowledge base, "Enhancements for START TRANSACTION WITH
// CONSISTENT SNAPSHOT"; gtid_binlog_pos runs ahead of what can be read, but
// tells whether the log was reset).
func mariaSnapshot(c *client.Conn) (mariaPlace, error) {
	var p mariaPlace
	status := make(map[string]string)
	var failed error
	each := func(r *mysql.Result, err error) {
		if err != nil {
			failed = err
			return
		}
		if r.Resultset == nil {
			return
		}
		for i := range r.RowNumber() {
			name, err1 := r.GetString(i, 0)
			value, err2 := r.GetString(i, 1)
			if failed = errors.Join(failed, err1, err2); failed == nil {
				status[strings.ToLower(name)] = strings.Clone(value)
			}
		}
	}
	_, err := c.ExecuteMultiple("START TRANSACTION WITH CONSISTENT SNAPSHOT; SHOW STATUS LIKE 'binlog_snapshot_%'; "+
		"SELECT 'gtid', @@GLOBAL.gtid_binlog_pos; COMMIT", each)
	if err = errors.Join(err, failed); err != nil {
		return p, err
	}
	if err := p.begins(status); err != nil {
		return p, err
	}
	p.domains, err = parseMariaGTIDs(status["gtid"])
	return p, err
}

func (s *mysqlSource) probeMaria(c *client.Conn) (sighting, error) {
	p, err := mariaSnapshot(c)
	if err == nil {
		err = s.forwards(p)
	}
	return mariaSighting{p.raw}, err
}

// forwards loses the place when the log goes backwards.
func (s *mysqlSource) forwards(p mariaPlace) error {
	back := p.raw < s.lastRaw || !within(s.lastDomains, p.domains)
	s.lastRaw, s.lastDomains = p.raw, p.domains
	if back {
		err := errors.New("the log goes backwards: it was reset")
		s.readable = mariaReadable{}
		s.feed.lose(err)
		return err
	}
	return nil
}

// gtidAt returns the last sequence number of each domain before a place in
// MariaDB's log; nil when the log has no such place.
func gtidAt(c *client.Conn, file string, offset uint64) (map[uint32]uint64, error) {
	rows, err := mysqlRows(c, fmt.Sprintf("SELECT IFNULL(BINLOG_GTID_POS(%s, %d), 'none')", quoteMySQL(file), offset))
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 || rows[0][0] == "none" {
		return nil, nil
	}
	return parseMariaGTIDs(rows[0][0])
}

// parseMariaGTIDs reads domain-server-sequence triples. Several of one domain
// give the highest sequence.
func parseMariaGTIDs(text string) (map[uint32]uint64, error) {
	origins, err := parseMariaOrigins(text)
	if err != nil {
		return nil, err
	}
	domains := make(map[uint32]uint64, len(origins))
	for at, sequence := range origins {
		domains[at.domain] = max(domains[at.domain], sequence)
	}
	return domains, nil
}

// parseMariaOrigins is parseMariaGTIDs with servers apart.
func parseMariaOrigins(text string) (map[mariaOrigin]uint64, error) {
	origins := make(map[mariaOrigin]uint64)
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		fields := strings.Split(part, "-")
		if len(fields) != 3 {
			return nil, fmt.Errorf("feed: %q is not a MariaDB GTID", part)
		}
		domain, err1 := strconv.ParseUint(fields[0], 10, 32)
		server, err2 := strconv.ParseUint(fields[1], 10, 32)
		sequence, err3 := strconv.ParseUint(fields[2], 10, 64)
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, fmt.Errorf("feed: %q is not a MariaDB GTID", part)
		}
		at := mariaOrigin{uint32(domain), uint32(server)}
		origins[at] = max(origins[at], sequence)
	}
	return origins, nil
}

func sameDomains(a, b map[uint32]uint64) bool { return maps.Equal(a, b) }

// heartbeat remembers when the server last said that it has nothing more to
// send, as Now gives it.
type heartbeat struct{ at atomic.Int64 }

// stuckAfter is how long a probe may wait for a stream that says it has nothing
// to send: then what the probe saw will never come. A set of purged GTIDs was
// added, or the sender reads a log that is no longer written.
const stuckAfter = 3 * time.Second

func (s *mysqlSource) nudge(context.Context, time.Duration) {
	if s.from != nil {
		return // a replica that lags has nothing to send either
	}
	begun, waiting := s.feed.applier.oldestPending()
	if waiting && s.heartbeat.at.Load()-begun > int64(stuckAfter) {
		s.feed.lose(errors.New("the stream does not bring what the server has committed"))
	}
}
