package feed

import (
	"errors"

	"freshet/cache"
	"freshet/cache/feed/binlog"
)

// commit is one received transaction, as probes can recognise it.
type commit struct {
	at   cache.Position
	raw  uint64      // where it ends in the upstream's log
	xid  uint32      // PostgreSQL
	gtid binlog.GTID // MySQL
	// MariaDB: its place in its replication domain.
	domain   uint32
	sequence uint64
}

// sighting is what one probe saw: a snapshot of the upstream.
type sighting interface {
	// sees tells whether the transaction is in the snapshot.
	sees(c *commit) bool
	// covered tells whether all that the snapshot holds has been applied.
	covered(l *ledger) bool
	// opens tells whether transactions that were logged before the stream
	// began are all in the snapshot.
	opens() bool
}

// probe is a sighting with the ticket and the time its question was asked at.
type probe struct {
	ticket uint64
	begun  int64
	// glance says that definitions may have changed unseen: it tells what is
	// visible, and proves nothing.
	glance bool
	sighting
}

// maxWaiting bounds the transactions received and not yet seen by a probe.
const maxWaiting = 1 << 18

// maxPending bounds the probes waiting for the stream.
const maxPending = 64

var errNoProbes = errors.New("a quarter of a million transactions came while no probe answered")

// ledger keeps the two orders of events apart: the order in which the stream
// delivers transactions, and the order in which they can be read.
type ledger struct {
	raw uint64 // the stream is applied up to here
	// received are the transactions applied, or before the stream's beginning
	// (MySQL; nil elsewhere).
	received *binlog.GTIDSet
	// domains is the same of a MariaDB replica: the newest of each domain.
	domains map[uint32]uint64
	// vouched is how far a PostgreSQL standby is known to have replayed the
	// primary's own log.
	vouched uint64
	applied cache.Position
	visible cache.Position
	open    bool // visible is known
	// published is the visible that the store was last told.
	published cache.Position
	waiting   []commit
	newest    *probe
	pending   []probe
}

// clear forgets everything but that positions rise.
func (l *ledger) clear() { *l = ledger{applied: l.applied} }

// cut forgets the probes: the stream is interrupted, its place kept.
func (l *ledger) cut() { l.newest, l.pending = nil, nil }

// reach moves the stream on. What has been received and is not waiting is
// visible, so visible follows.
func (l *ledger) reach(raw uint64, p cache.Position) {
	l.raw, l.applied = max(l.raw, raw), p
	if l.open && len(l.waiting) == 0 {
		l.visible = p
	}
}

// commit adds a transaction, applied already.
func (l *ledger) commit(c commit) error {
	if len(l.waiting) >= maxWaiting {
		return errNoProbes
	}
	if l.received != nil && c.gtid.Source != "" {
		l.received.Add(c.gtid)
	}
	if l.domains != nil {
		l.domains[c.domain] = max(l.domains[c.domain], c.sequence)
	}
	if !l.open || len(l.waiting) > 0 || l.newest == nil || !l.newest.sees(&c) {
		l.waiting = append(l.waiting, c)
	}
	l.reach(c.raw, c.at)
	return nil
}

// sighted takes a probe's answer in.
func (l *ledger) sighted(p probe) {
	l.newest = &p
	l.open = l.open || p.opens()
	seen := 0
	for seen < len(l.waiting) && p.sees(&l.waiting[seen]) {
		seen++
	}
	if seen > 0 && l.open {
		l.visible = max(l.visible, l.waiting[seen-1].at)
	}
	if l.waiting = l.waiting[seen:]; len(l.waiting) == 0 {
		l.waiting = nil
		if l.open {
			l.visible = max(l.visible, l.applied)
		}
	}
	if p.glance {
		return
	}
	if len(l.pending) == maxPending {
		// Neither the oldest, which is proven first, nor the newest, which
		// proves most: every second one in between.
		kept := l.pending[:1]
		for i := 2; i < len(l.pending); i += 2 {
			kept = append(kept, l.pending[i])
		}
		l.pending = kept
	}
	l.pending = append(l.pending, p)
}

// proven takes the probes out that the stream has caught up with and returns
// the newest of them. What an older one saw the newer one saw too, so one that
// waits for a transaction which was given up holds nobody up.
func (l *ledger) proven() (newest probe, ok bool) {
	n := len(l.pending)
	for n > 0 && !l.pending[n-1].covered(l) {
		n--
	}
	if n == 0 {
		return probe{}, false
	}
	newest = l.pending[n-1]
	l.pending = append(l.pending[:0], l.pending[n:]...)
	return newest, true
}
