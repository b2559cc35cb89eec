package feed

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/client"
)

// mariaGTIDSighting is what MariaDB tells of its transactions by name.
// gtid_binlog_pos, read first, runs ahead of what can be read, so it tells from
// above what is visible; from below that is what it said before the log came to
// where a later snapshot begins.
type mariaGTIDSighting struct {
	logged, readable, gate map[uint32]uint64
}

func (s mariaGTIDSighting) sees(c *commit) bool { return s.readable[c.domain] >= c.sequence }

func (s mariaGTIDSighting) covered(l *ledger) bool {
	return l.domains != nil && within(s.logged, l.domains)
}

func (s mariaGTIDSighting) opens() bool { return within(s.gate, s.readable) }

// within tells whether every domain of a has come as far in b.
func within(a, b map[uint32]uint64) bool {
	for domain, sequence := range a {
		if b[domain] < sequence {
			return false
		}
	}
	return true
}

// mariaReadable is what earlier probes told; the prober's alone.
type mariaReadable struct {
	domains map[uint32]uint64 // can be read
	held    mariaMark         // will be, once a snapshot begins at held.raw or later
	last    uint64            // where the last snapshot began
	looked  uint64            // the place that was last looked up
}

// mariaMark says that the domains were logged before the log came to raw.
type mariaMark struct {
	domains map[uint32]uint64
	raw     uint64
}

// probeMariaGTID asks, in one round trip and in this order, what is logged,
// where the log ends and where a snapshot begins in it.
func (s *mysqlSource) probeMariaGTID(c *client.Conn) (sighting, error) {
	answers, err := mysqlMany(c, "SELECT @@GLOBAL.gtid_binlog_pos; SHOW MASTER STATUS; START TRANSACTION WITH CONSISTENT SNAPSHOT; "+
		"SHOW STATUS LIKE 'binlog_snapshot_%'; COMMIT", 5)
	if err != nil {
		return nil, err
	}
	p := mariaPlace{}
	end := uint64(0)
	if len(answers[0]) == 1 && len(answers[1]) == 1 && len(answers[1][0]) >= 2 {
		if p.domains, err = parseMariaGTIDs(answers[0][0][0]); err == nil {
			end, err = textPlace(answers[1][0][0], answers[1][0][1])
		}
	}
	if err != nil || end == 0 {
		return nil, fmt.Errorf("feed: the server does not tell where its log ends: %w", err)
	}
	status := make(map[string]string, len(answers[3]))
	for _, row := range answers[3] {
		status[strings.ToLower(row[0])] = row[1]
	}
	if err := p.begins(status); err != nil {
		return nil, err
	}
	if err := s.forwards(p); err != nil {
		return nil, err
	}
	if err := s.readable.sighted(c, p, end); err != nil {
		return nil, err
	}
	_, gate := s.gates()
	return mariaGTIDSighting{logged: p.domains, readable: s.readable.domains, gate: gate}, nil
}

func textPlace(file, offset string) (uint64, error) {
	n, err := strconv.ParseUint(offset, 10, 40)
	if err != nil {
		return 0, fmt.Errorf("feed: %q is not a place in a log", offset)
	}
	return rawPlace(file, n)
}

// sighted takes in that p.domains were logged before the log came to end, and
// that a snapshot began at p. Where commits wait, or the log has gone on to
// another file without any, the snapshot stays behind the end: then it is
// looked up, once, what was logged before it.
func (m *mariaReadable) sighted(c *client.Conn, p mariaPlace, end uint64) error {
	now := mariaMark{p.domains, end}
	switch {
	case p.raw >= now.raw:
		m.raise(now.domains)
		m.held = mariaMark{}
	case m.held.domains != nil && p.raw >= m.held.raw:
		m.raise(m.held.domains)
		m.held = now
	case m.held.domains == nil:
		m.held = now
	}
	if p.raw < now.raw && p.raw == m.last && p.raw != m.looked {
		domains, err := gtidAt(c, p.file, p.offset)
		if err != nil {
			return err
		}
		m.raise(domains)
		m.looked = p.raw
	}
	m.last = p.raw
	return nil
}

// raise makes a new map: earlier sightings keep the old one.
func (m *mariaReadable) raise(domains map[uint32]uint64) {
	if m.domains == nil {
		m.domains = make(map[uint32]uint64)
	}
	m.domains = joinDomains(domains, m.domains)
}
