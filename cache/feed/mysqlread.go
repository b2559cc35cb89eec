package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"

	"freshet/cache/feed/binlog"
	"freshet/cache/feed/row"
)

// mysqlReader applies one run of the binary log. It belongs to the stream's
// goroutine.
//
// The log is a sequence of groups, each opened by a GTID event: one statement
// alone, or a transaction that ends in an XID event, in COMMIT or ROLLBACK as
// text, or in an XA PREPARE event.
type mysqlReader struct {
	source *mysqlSource
	ctx    context.Context // the run's
	facts  mysqlFacts      // of the server whose log it is
	txn    *txn

	format   binlog.Format
	checksum bool
	payload  *binlog.PayloadReader
	ddl      *ddlReader

	resuming bool // the place was kept; else the stream begins at received or file:offset
	started  bool
	received *binlog.GTIDSet
	file     string
	offset   uint64 // of the next event

	group    group
	lastGTID binlog.GTID
	domain   map[uint32]uint64 // MariaDB: the last sequence number of each domain in the log
	heads    map[uint32]uint64 // MariaDB's replicas: of each domain, also if the log lacks it
	maps     map[uint64]*mapped
	parsed   map[uint64]*mapped // table maps as last parsed, by table number
	images   row.Images
	held     map[string]*prepared
}

// group is the group being read.
type group struct {
	open bool
	// transaction says that it has an end of its own; else its first statement
	// is all of it.
	transaction bool
	xa          *prepared // its rows count when XA COMMIT comes
	gtid        binlog.GTID
	maria       binlog.MariaGTID
	server      uint32 // MariaDB: the server_id in it
	content     bool   // there is something in it
}

// prepared is what an XA transaction touched.
type prepared struct {
	tables map[nameKey]bool
	all    bool
}

// mapped is a table map with what the view has for its table.
type mapped struct {
	body   []byte // as it was parsed from
	table  *binlog.TableMap
	key    nameKey
	entry  *followed // nil when nobody follows it
	layout layout
	of     *Table // the definition the layout was made for
	fits   bool
}

// maxPrepared bounds the XA transactions remembered, and the tables of each.
const maxPrepared = 4096

func newMySQLReader(s *mysqlSource, facts mysqlFacts) (*mysqlReader, error) {
	p, err := binlog.NewPayloadReader(maxEventBytes)
	if err != nil {
		return nil, err
	}
	return &mysqlReader{source: s, facts: facts, txn: newTxn(s.feed.applier), payload: p, ddl: newDDLReader(),
		maps: make(map[uint64]*mapped), parsed: make(map[uint64]*mapped), held: s.heldXA()}, nil
}

func (r *mysqlReader) close() { r.payload.Close() }

// raw is the reader's place as one number.
func (r *mysqlReader) raw() (uint64, error) { return rawPlace(r.file, r.offset) }

// event applies one event. cut says that only its beginning is there.
func (r *mysqlReader) event(data []byte, cut bool) error {
	e, err := r.parse(data, cut)
	if err != nil {
		return err
	}
	if e.Flags&binlog.FlagArtificial == 0 && e.Type != binlog.HeartbeatEvent && e.Type != binlog.HeartbeatV2Event {
		r.move(e.Header)
	}
	switch e.Type {
	case binlog.RotateEvent:
		return r.rotate(e)
	case binlog.FormatEvent:
		if r.format, err = binlog.ParseFormat(e.Body); err != nil {
			return err
		}
		r.checksum = r.format.Checksum
		clear(r.parsed)
		return r.idle()
	case binlog.HeartbeatEvent, binlog.HeartbeatV2Event:
		return r.beat(e)
	case binlog.PayloadEvent:
		return r.unpack(e, cut)
	}
	if err := r.apply(e, cut); err != nil {
		return err
	}
	if !r.group.open {
		return r.idle()
	}
	return nil
}

// parse splits the event. The first, made up rotate event comes before any
// format event has said whether there are checksums.
func (r *mysqlReader) parse(data []byte, cut bool) (binlog.Event, error) {
	if cut {
		return binlog.ParseCut(data)
	}
	if len(data) >= binlog.HeaderSize && binlog.Type(data[4]) == binlog.FormatEvent {
		return binlog.Parse(data, false)
	}
	e, err := binlog.Parse(data, r.checksum)
	if err != nil && r.checksum && len(r.format.Server) == 0 {
		return binlog.Parse(data, false)
	}
	return e, err
}

// move goes past an event. Files over 4 GiB make End wrap around; events that
// MariaDB copies without a position are as long as they say. A format event is
// also sent ahead of a stream that begins inside a file.
func (r *mysqlReader) move(h binlog.Header) {
	const fileStart = 4
	switch {
	case h.Type == binlog.FormatEvent && (h.End == 0 || r.offset != fileStart):
	case h.End == 0:
		r.offset += uint64(h.Size)
	default:
		next := r.offset&^0xffffffff | uint64(h.End)
		if next < r.offset {
			next += 1 << 32
		}
		r.offset = next
	}
}

// rotate goes to another file. The first one says where the stream begins.
func (r *mysqlReader) rotate(e binlog.Event) error {
	to, err := binlog.ParseRotate(e.Body)
	if err != nil {
		return err
	}
	r.file, r.offset = to.File, to.Position
	raw, err := r.raw()
	if err != nil {
		return err
	}
	if !r.started {
		r.started = true
		if r.resuming {
			r.source.feed.applier.resume()
		} else {
			r.source.feed.applier.startAt(raw, r.received, r.heads)
		}
		r.source.feed.journal.following(fmt.Sprintf("%s:%d", r.file, r.offset), r.resuming)
	}
	r.source.feed.log.Debug("feed: log file", "file", r.file, "offset", r.offset)
	return r.idle()
}

// idle notes the place between two groups. On MariaDB applied follows it, for
// that is what its snapshots are compared with; on MySQL GTIDs are.
func (r *mysqlReader) idle() error {
	if !r.started || r.group.open {
		return nil
	}
	if r.facts.maria {
		raw, err := r.raw()
		if err != nil {
			return err
		}
		r.source.feed.applier.advance(raw)
	}
	r.source.setPlace(mysqlPlace{known: true, file: r.file, offset: r.offset, server: r.facts.identity, domain: r.domain, heads: r.heads})
	return nil
}

// beat is a heartbeat: the server has sent all it has.
func (r *mysqlReader) beat(e binlog.Event) error {
	r.source.heartbeat.at.Store(Now())
	if r.facts.maria && !r.group.open && string(e.Body) == r.file && uint64(e.End) > r.offset {
		r.offset = uint64(e.End)
		return r.idle()
	}
	return nil
}

// unpack applies a compressed transaction. The events inside have no places.
func (r *mysqlReader) unpack(e binlog.Event, cut bool) error {
	var err error = binlog.ErrTooLarge
	if !cut {
		err = r.payload.Each(e.Body, func(inner binlog.Event) error { return r.apply(inner, false) })
	}
	if errors.Is(err, binlog.ErrTooLarge) {
		r.beginGroup()
		r.group.content = true
		r.txn.everything()
		err = r.finish()
	}
	if err != nil {
		return err
	}
	return r.idle()
}

// apply applies one event of a group, or one that belongs to none.
func (r *mysqlReader) apply(e binlog.Event, cut bool) error {
	switch e.Type {
	case binlog.GTIDEvent, binlog.TaggedGTIDEvent:
		gtid, err := binlog.ParseGTID(e.Type, e.Body)
		r.lastGTID = gtid
		r.beginGroup()
		return err
	case binlog.AnonymousGTIDEvent:
		return errors.New("a transaction without GTID: gtid_mode is no longer ON")
	case binlog.MariaGTIDEvent:
		return r.mariaGTID(e)
	case binlog.QueryEvent, binlog.MariaQueryCompressedEvent:
		return r.query(e, cut)
	case binlog.TableMapEvent:
		return r.tableMap(e)
	case binlog.XIDEvent:
		return r.finish()
	case binlog.XAPrepareEvent:
		return r.xaPrepare(e)
	case binlog.IncidentEvent:
		return fmt.Errorf("%w: the server says that its log lacks events", errPlaceLost)
	}
	switch {
	case binlog.IsRows(e.Type):
		return r.rows(e, cut)
	case harmless(e):
		return nil
	case r.group.open:
		// Statements that the log keeps as text, or what nobody knows.
		r.group.content = true
		r.txn.everything()
		return nil
	}
	return fmt.Errorf("%w: event of unknown type %d", errPlaceLost, e.Type)
}

// harmless tells whether an event changes nothing by itself.
func harmless(e binlog.Event) bool {
	switch e.Type {
	case binlog.StopEvent, binlog.IntVarEvent, binlog.RandEvent, binlog.UserVarEvent, binlog.IgnorableEvent,
		binlog.RowsQueryEvent, binlog.PreviousGTIDsEvent, binlog.TransactionContext, binlog.ViewChangeEvent,
		binlog.BeginLoadEvent, binlog.AppendBlockEvent, binlog.DeleteFileEvent,
		binlog.MariaAnnotateEvent, binlog.MariaCheckpointEvent, binlog.MariaGTIDListEvent, binlog.MariaEncryptionEvent:
		return true
	}
	return e.Flags&binlog.FlagIgnorable != 0
}

func (r *mysqlReader) beginGroup() {
	if !r.group.open {
		r.txn.begin()
	}
	// A group without a GTID of its own continues the one before.
	r.group = group{open: true, gtid: r.lastGTID}
	clear(r.maps)
}

func (r *mysqlReader) mariaGTID(e binlog.Event) error {
	g, err := binlog.ParseMariaGTID(e.Body)
	if err != nil {
		return err
	}
	r.beginGroup()
	r.group.maria, r.group.server = g, e.ServerID
	r.group.transaction = g.Flags&binlog.MariaStandalone == 0
	if g.Flags&binlog.MariaPreparedXA != 0 {
		r.group.xa = &prepared{tables: make(map[nameKey]bool)}
	}
	return nil
}

// finish ends the group: its marks are set, then applied moves.
func (r *mysqlReader) finish() error {
	if !r.group.open {
		return nil
	}
	raw, err := r.raw()
	if err != nil {
		return err
	}
	if r.facts.maria {
		// A copy: the old one is part of the place that is kept.
		r.domain = maps.Clone(r.domain)
		if r.domain == nil {
			r.domain = make(map[uint32]uint64)
		}
		r.domain[r.group.maria.Domain] = max(r.domain[r.group.maria.Domain], r.group.maria.Sequence)
	}
	if err := r.known(); err != nil {
		return err
	}
	c := commit{raw: raw, gtid: r.group.gtid, domain: r.group.maria.Domain, sequence: r.group.maria.Sequence}
	r.group = group{}
	return r.txn.end(c)
}

// statementEnd ends a group that is one statement.
func (r *mysqlReader) statementEnd() error {
	if r.group.transaction {
		return nil
	}
	return r.finish()
}

func (r *mysqlReader) tableMap(e binlog.Event) error {
	if !r.group.open {
		r.beginGroup()
	}
	id, schema, table, err := binlog.TableName(&r.format, e.Body)
	if err != nil {
		return err
	}
	m := r.parsed[id]
	if m == nil || !bytes.Equal(m.body, e.Body) {
		m = &mapped{body: bytes.Clone(e.Body), key: r.source.key(string(schema), string(table))}
		if len(r.parsed) > maxPrepared {
			clear(r.parsed)
		}
		r.parsed[id] = m
	}
	r.maps[id] = m
	r.group.content = true
	if r.group.xa != nil {
		r.group.xa.add(m.key)
	}
	m.entry = r.txn.view.byName[m.key]
	if m.entry == nil {
		return nil
	}
	if m.table == nil {
		// A layout nobody knows: whoever follows the table is told all of it.
		if m.table, err = binlog.ParseTableMap(&r.format, m.body); err != nil {
			m.table = nil
		}
	}
	if of := m.entry.table; of != nil && of != m.of {
		m.of = of
		m.layout, m.fits = mysqlLayout(m.table, &of.Spec)
	}
	return nil
}

func (p *prepared) add(key nameKey) {
	if len(p.tables) >= maxPrepared {
		p.all = true
		return
	}
	p.tables[key] = true
}

func (r *mysqlReader) rows(e binlog.Event, cut bool) error {
	if !r.group.open {
		return fmt.Errorf("%w: rows outside a transaction", errPlaceLost)
	}
	head, err := binlog.RowsTable(&r.format, e.Type, e.Body)
	if err != nil {
		return err
	}
	m := r.maps[head.TableID]
	if m == nil {
		if !binlog.NoTable(head.TableID) {
			r.txn.everything()
		}
		return nil
	}
	if m.entry == nil || !r.txn.wantsRows(m.entry, head.Kind) {
		return nil
	}
	if cut || m.table == nil || m.entry.table != nil && !m.fits {
		r.txn.unreadable(m.entry, head.Kind)
		return nil
	}
	rows, err := binlog.ParseRows(&r.format, e.Type, e.Body, maxEventBytes)
	if err == nil {
		err = rows.Each(m.table, &r.images, func() error {
			r.txn.row(m.entry, rows.Kind, &m.layout, &r.images)
			return nil
		})
	}
	if err != nil {
		// Rows that cannot be read are rows that changed.
		r.source.feed.journal.failed("rows could not be read", fmt.Errorf("%s.%s: %w", m.key.schema, m.key.name, err))
		r.txn.unreadable(m.entry, head.Kind)
	}
	return nil
}
