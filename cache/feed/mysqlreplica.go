package feed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"

	"freshet/cache/feed/binlog"
)

// The log of a replica tells of the upstream's transactions under the names
// that they have there (GTIDs), at places of its own. So probes, which the
// upstream answers, are compared with it by name.
//
// A proof then says that the replica's log was read up to a transaction. That
// all that the upstream did came with it takes more: that the replica leaves
// nothing out (filters, skipped errors), and that it has done nothing of its own,
// for its log has the old rows as they were there. The first is asked before
// the stream begins and every second, the second of each transaction.

// mysqlCopy is what is known of the replica whose log is followed.
type mysqlCopy struct {
	facts mysqlFacts // mysqlSource.mu
	// unlike is the replica that was found not to be like the upstream.
	// mysqlSource.mu.
	unlike string
	// gate and gateDomains (MariaDB) are what the replica had when the stream
	// began, whether the upstream shows it already or not. mysqlSource.mu.
	gate        *binlog.GTIDSet
	gateDomains map[uint32]uint64
	watched     time.Time // the keeper's
	// What the upstream was last seen to have; the stream's goroutine's.
	had      *binlog.GTIDSet
	hadMaria map[mariaOrigin]uint64
}

// mariaOrigin is where MariaDB's sequence numbers are counted.
type mariaOrigin struct{ domain, server uint32 }

func (s *mysqlSource) gates() (*binlog.GTIDSet, map[uint32]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.copy.gate, s.copy.gateDomains
}

// inspectLog looks at the server whose log is to be followed, at the other end
// of conn, and at the upstream, and refuses those that cannot be.
func (s *mysqlSource) inspectLog(ctx context.Context, conn *client.Conn) (mysqlFacts, error) {
	if s.from == nil {
		facts, err := s.inspectServer(conn, true)
		if err == nil {
			s.mu.Lock()
			s.facts = facts
			s.mu.Unlock()
		}
		return facts, err
	}
	up, err := s.inspectUpstream(ctx)
	if err != nil {
		return mysqlFacts{}, err
	}
	facts, err := s.inspectReplica(conn, up)
	if err != nil {
		return facts, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.copy.unlike == facts.identity {
		return facts, s.ofReplica(errSkipped)
	}
	s.facts, s.copy.facts = up, facts
	return facts, nil
}

// ofReplica says whom an error is about.
func (s *mysqlSource) ofReplica(err error) error {
	return fmt.Errorf("the replica at %s: %w", s.from.addr, err)
}

// inspectReplica is inspectServer of the replica.
func (s *mysqlSource) inspectReplica(conn *client.Conn, up mysqlFacts) (mysqlFacts, error) {
	facts, err := s.inspectServer(conn, true)
	if err != nil {
		return facts, s.ofReplica(err)
	}
	needs, err := replicaNeeds(conn, up, facts)
	if err != nil {
		return facts, s.ofReplica(denied(err, facts.replicaGrant()+" ON *.* TO '"+s.from.user+"'@'%'"))
	}
	if err := refuse(needs, noReplica); err != nil {
		return facts, s.ofReplica(err)
	}
	return facts, nil
}

// errAlone wraps the news that a replica has what the upstream has not.
var errAlone = errors.New("the replica has transactions that the upstream does not have, so their rows may differ; mend: make the replica anew from the upstream")

// errSkipped wraps the news that a replica left out a transaction; what it left
// out before the stream began nobody can tell.
var errSkipped = errors.New("the replica skipped a transaction of the upstream, so their rows may differ; " +
	"mend: make the replica anew from the upstream, then restart Freshet")

// startMySQLCopy refuses a replica that had executed more than the upstream.
func (s *mysqlSource) startMySQLCopy(ctx context.Context, executed *binlog.GTIDSet) error {
	if s.from == nil {
		return nil
	}
	if err := s.askHad(ctx); err != nil {
		return err
	}
	if !s.copy.had.Contains(executed) {
		return s.ofReplica(errAlone)
	}
	return nil
}

// gateMySQL has nothing be visible before the upstream shows all of the set.
func (s *mysqlSource) gateMySQL(set *binlog.GTIDSet) {
	if s.from == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copy.gate = set.Clone()
}

func (s *mysqlSource) gateMaria(domains map[uint32]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copy.gateDomains = maps.Clone(domains)
}

// startMariaCopy refuses a replica that has logged more than the upstream, and
// returns what it had applied, in its log or, when it was made from a copy,
// before that.
func (s *mysqlSource) startMariaCopy(ctx context.Context, conn *client.Conn) (map[uint32]uint64, error) {
	if s.from == nil {
		return nil, nil
	}
	rows, err := mysqlRows(conn, "SELECT @@GLOBAL.gtid_slave_pos, @@GLOBAL.gtid_binlog_state")
	if err != nil {
		return nil, err
	}
	applied, err := parseMariaGTIDs(rows[0][0])
	if err != nil {
		return nil, err
	}
	logged, err := parseMariaOrigins(rows[0][0] + "," + rows[0][1])
	if err != nil {
		return nil, err
	}
	if err := s.askHad(ctx); err != nil {
		return nil, err
	}
	for origin, sequence := range logged {
		if s.copy.hadMaria[origin] < sequence {
			return nil, s.ofReplica(errAlone)
		}
	}
	return applied, nil
}

// askHad asks the upstream what it has logged, readable or not.
func (s *mysqlSource) askHad(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sideTimeout)
	defer cancel()
	return s.origins.Use(ctx, func(_ context.Context, c *client.Conn) error {
		if s.fact().maria {
			rows, err := mysqlRows(c, "SELECT @@GLOBAL.gtid_binlog_state, @@GLOBAL.gtid_slave_pos")
			if err != nil {
				return err
			}
			s.copy.hadMaria, err = parseMariaOrigins(rows[0][0] + "," + rows[0][1])
			return err
		}
		// In this order: see gtidSighting.
		rows, err := mysqlRows(c, "SELECT @@GLOBAL.gtid_owned, @@GLOBAL.gtid_executed")
		if err != nil {
			return err
		}
		owned, err1 := binlog.ParseGTIDSet(ownerOf.ReplaceAllString(rows[0][0], ""))
		executed, err2 := binlog.ParseGTIDSet(rows[0][1])
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		executed.Join(owned)
		s.copy.had = executed
		return nil
	})
}

// known refuses a transaction of the replica's own. Those that carry the name
// of the upstream need no look: only it gives that away.
func (r *mysqlReader) known() error {
	s := r.source
	if s.from == nil {
		return nil
	}
	own, had := r.origin()
	if r.skipped() {
		s.mu.Lock()
		s.copy.unlike = r.facts.identity
		s.mu.Unlock()
		return fmt.Errorf("%w: %w", errPlaceLost, s.ofReplica(errSkipped))
	}
	if r.facts.maria {
		at, now := r.heads[r.group.maria.Domain], r.group.maria.Sequence
		if now <= at {
			return fmt.Errorf("%w: the replica's log has number %d of domain %d after %d", errPlaceLost, now, r.group.maria.Domain, at)
		}
		r.heads = maps.Clone(r.heads) // the old one is part of the place that is kept
		r.heads[r.group.maria.Domain] = now
	}
	if own || had() {
		return nil
	}
	if err := s.askHad(r.ctx); err != nil {
		return err
	}
	if !had() {
		return fmt.Errorf("%w: %w", errPlaceLost, s.ofReplica(errAlone))
	}
	return nil
}

// skipped tells whether the replica left out a transaction of the upstream: it
// logs it empty, or (MariaDB, whose numbers have no gaps) not at all. Whoever
// keeps databases out of the upstream's own log has empty ones there.
func (r *mysqlReader) skipped() bool {
	up := r.source.fact()
	if !r.group.content && len(up.doDB)+len(up.ignoreDB) == 0 {
		return true
	}
	g := &r.group.maria
	return r.facts.maria && g.Sequence > r.heads[g.Domain]+1
}

// origin tells whether the group's name is one that only the upstream gives,
// and how to see whether the upstream had it when it was last asked.
func (r *mysqlReader) origin() (own bool, had func() bool) {
	c, up := &r.source.copy, r.source.fact()
	if r.facts.maria {
		g := &r.group
		at := mariaOrigin{g.maria.Domain, g.server}
		return strconv.FormatUint(uint64(g.server), 10) == up.vars["server_id"], func() bool { return c.hadMaria[at] >= g.maria.Sequence }
	}
	gtid := r.group.gtid
	source, _, _ := strings.Cut(gtid.Source, ":")
	return source == strings.ReplaceAll(strings.ToLower(up.identity), "-", ""), func() bool { return c.had.Has(gtid) }
}

// joinDomains is the newest of each domain in either; nil without any.
func joinDomains(a, b map[uint32]uint64) map[uint32]uint64 {
	if b == nil {
		return nil
	}
	out := maps.Clone(b)
	for domain, sequence := range a {
		out[domain] = max(out[domain], sequence)
	}
	return out
}
