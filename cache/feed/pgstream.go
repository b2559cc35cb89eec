package feed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"freshet/cache/feed/cursor"
	"freshet/cache/feed/pgoutput"
)

// pgLine is the line that the stream comes on. The stream's goroutine reads,
// anyone writes.
type pgLine struct {
	conn    *pgconn.PgConn
	writing sync.Mutex
	applied atomic.Uint64 // what may be forgotten upstream
	held    atomic.Uint64 // unless 0, nothing beyond it is confirmed: see tryCommit
	heard   atomic.Int64  // when anything last came, as Now gives it

	confirmed uint64 // the stream's goroutine's: what it confirmed last
	tried     string // leaseLoop's: the settings that commits were tried under
}

const (
	// pingEvery is how often an answer is asked for, pgSilence how long none
	// may come: decoding a large transaction of other tables takes its time.
	pingEvery = time.Second
	pgSilence = 30 * time.Second
	// maxPgMessage bounds one message of the stream.
	maxPgMessage = 256 << 20
)

// confirmable is what is applied and not held. The order counts: what was
// applied before nothing was held may be confirmed.
func (l *pgLine) confirmable() uint64 {
	at := l.applied.Load()
	if held := l.held.Load(); held != 0 {
		at = min(at, held)
	}
	return at
}

// confirm tells the server at once what has been applied, if that is news:
// commits wait for it.
func (l *pgLine) confirm() error {
	at := l.confirmable()
	if at <= l.confirmed {
		return nil
	}
	l.confirmed = at
	return l.status(false)
}

// status tells the server what has been applied, and asks for an answer. It is
// the standby status update of the manual's "Streaming Replication Protocol".
func (l *pgLine) status(reply bool) error {
	at := l.confirmable()
	data := make([]byte, 0, 40)
	data = append(data, 'r')
	for range 3 { // written, flushed, applied
		data = binary.BigEndian.AppendUint64(data, at)
	}
	const postgresEpoch = 946684800
	data = binary.BigEndian.AppendUint64(data, uint64(time.Now().UnixMicro()-postgresEpoch*1e6))
	if reply {
		data = append(data, 1)
	} else {
		data = append(data, 0)
	}
	message, err := (&pgproto3.CopyData{Data: data}).Encode(nil)
	if err != nil {
		return err
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	conn := l.conn.Conn()
	if err := conn.SetWriteDeadline(time.Now().Add(sideTimeout)); err != nil {
		return err
	}
	_, err = conn.Write(message)
	return err
}

// connectStream opens the line that the stream is to come on.
func (s *pgSource) connectStream(ctx context.Context) (*pgconn.PgConn, error) {
	if s.copy.config != nil {
		return s.connectStandby(ctx)
	}
	return s.connect(ctx, true)
}

// stream follows the log until the line or ctx ends.
func (s *pgSource) stream(ctx context.Context) error {
	conn, err := s.connectStream(ctx)
	if err != nil {
		return err
	}
	line := &pgLine{conn: conn}
	defer s.hangUp(line)
	stop := context.AfterFunc(ctx, func() { closeLine(conn.Conn()) })
	defer stop()
	begin, err := s.beginStream(ctx, conn)
	if err != nil {
		return err
	}
	conn.Frontend().SetMaxBodyLen(maxPgMessage)
	line.applied.Store(begin)
	line.heard.Store(Now())
	s.mu.Lock()
	s.line = line
	s.mu.Unlock()
	s.feed.applier.start(begin, nil)
	s.feed.journal.following(lsnText(begin), false)
	var pings sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer pings.Wait()
	defer cancel()
	pings.Go(func() { s.ping(ctx, line) })
	r := newPgReader(s, line)
	for {
		message, err := conn.ReceiveMessage(context.Background())
		if err != nil {
			return err
		}
		line.heard.Store(Now())
		switch m := message.(type) {
		case *pgproto3.CopyData:
			if err = r.message(m.Data); err == nil && s.feed.cfg.Synchronous {
				err = line.confirm()
			}
		case *pgproto3.ErrorResponse:
			err = pgconn.ErrorResponseToPgError(m)
		case *pgproto3.CopyDone, *pgproto3.CommandComplete:
			err = errStreamEnded
		}
		if err != nil {
			return err
		}
	}
}

func closeLine(c net.Conn) {
	if c != nil {
		closeQuietly(c)
	}
}

// hangUp ends the line; the temporary slot goes with it.
func (s *pgSource) hangUp(line *pgLine) {
	s.mu.Lock()
	s.line = nil
	clear(s.prints)
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := line.conn.Close(ctx); err != nil {
		return // the stream's end has been told already
	}
}

// ping keeps the server's acknowledgements going and notices a dead line.
func (s *pgSource) ping(ctx context.Context, line *pgLine) {
	for sleep(ctx, pingEvery) {
		if Now()-line.heard.Load() > int64(pgSilence) {
			s.feed.cut(fmt.Errorf("feed: nothing was heard from the server for %s", pgSilence))
			return
		}
		if err := line.status(true); err != nil {
			s.feed.cut(err)
			return
		}
	}
}

// beginStream makes the slot and starts replication from it. It returns where
// the stream begins. Making the slot waits for every transaction that runs.
func (s *pgSource) beginStream(ctx context.Context, conn *pgconn.PgConn) (uint64, error) {
	name, listed, err := s.prepareStream(ctx, conn)
	if err != nil {
		return 0, err
	}
	if s.feed.cfg.Synchronous {
		if err := pgExec(ctx, conn, "SET application_name = "+quoteText(name)); err != nil {
			return 0, err
		}
	}
	if listed {
		defer s.standIn(ctx, name)()
	}
	if s.copy.config != nil {
		defer s.logSnapshots(ctx)()
	}
	slot, err := newSlotName()
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	s.slot = slot
	s.mu.Unlock()
	results, err := conn.Exec(ctx, "CREATE_REPLICATION_SLOT "+slot+" TEMPORARY LOGICAL pgoutput NOEXPORT_SNAPSHOT").ReadAll()
	if err != nil {
		return 0, err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) < 2 {
		return 0, errors.New("feed: the server does not tell where the slot begins")
	}
	begin, err := parseLSN(string(results[0].Rows[0][1]))
	if err != nil {
		return 0, err
	}
	// Whatever was logged before the slot's beginning is not sent, and may not
	// be readable yet: nothing is visible until all of it has ended.
	next, err := pgNextXID(ctx, conn)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	s.gate = next
	s.world, s.names, s.builtins = "", "", ""
	s.mu.Unlock()
	return begin, startReplication(conn, slot)
}

// prepareStream reads the facts anew, makes the publication and chooses the
// stream's name; listed says that commits wait for that name. The walsender of
// a database takes simple queries.
func (s *pgSource) prepareStream(ctx context.Context, conn *pgconn.PgConn) (name string, listed bool, err error) {
	side, err := s.connect(ctx, false)
	if err != nil {
		return "", false, err
	}
	facts, err := readPgFacts(ctx, side)
	facts.elsewhere = s.copy.config != nil
	if err == nil && s.copy.config == nil {
		facts.senders = 0 // one of them is this line
		err = sameServer(ctx, conn, facts)
	}
	if err == nil {
		err = facts.refuse()
	}
	if err == nil {
		err = makePublication(ctx, side)
	}
	if err == nil && s.copy.config != nil {
		err = s.meetStandby(ctx, conn, side, facts)
	}
	if err == nil {
		name, listed, err = s.chooseSeat(ctx, side)
	}
	if err = errors.Join(err, side.Close(ctx)); err != nil {
		return "", false, err
	}
	s.mu.Lock()
	s.facts = facts
	s.mu.Unlock()
	return name, listed, nil
}

// sameServer refuses a line to another server than the facts are of.
func sameServer(ctx context.Context, conn *pgconn.PgConn, facts pgFacts) error {
	identity, err := pgIdentity(ctx, conn)
	if err == nil && facts.identity != identity {
		err = errors.New("feed: two connections to the upstream reach two servers")
	}
	return err
}

// pgNextXID returns the number that the next transaction will have at least.
func pgNextXID(ctx context.Context, conn *pgconn.PgConn) (uint64, error) {
	r, err := conn.Exec(ctx, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text").ReadAll()
	if err != nil {
		return 0, err
	}
	if len(r) != 1 || len(r[0].Rows) != 1 {
		return 0, errors.New("feed: the server does not tell its snapshot")
	}
	return strconv.ParseUint(string(r[0].Rows[0][0]), 10, 64)
}

// startReplication asks for the stream and waits until the server is in it.
func startReplication(conn *pgconn.PgConn, slot string) error {
	return sendReplication(conn, "START_REPLICATION SLOT "+slot+
		" LOGICAL 0/0 (proto_version '1', publication_names '"+quoteIdent(publication)+"')")
}

func sendReplication(conn *pgconn.PgConn, command string) error {
	conn.Frontend().SendQuery(&pgproto3.Query{String: command})
	if err := conn.Frontend().Flush(); err != nil {
		return err
	}
	for {
		message, err := conn.ReceiveMessage(context.Background())
		if err != nil {
			return err
		}
		switch m := message.(type) {
		case *pgproto3.CopyBothResponse:
			return nil
		case *pgproto3.ErrorResponse:
			return pgconn.ErrorResponseToPgError(m)
		case *pgproto3.ReadyForQuery:
			return errStreamEnded
		}
	}
}

// nudge asks the server to say how far it has sent. When the log beyond what
// the probe saw has not been flushed, which only a busy server does at once, a
// tiny transaction flushes it.
func (s *pgSource) nudge(ctx context.Context, waited time.Duration) {
	s.mu.Lock()
	line := s.line
	s.mu.Unlock()
	if line == nil {
		return
	}
	if err := line.status(true); err != nil {
		s.feed.cut(err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if s.copy.config != nil {
		if err := s.vouch(ctx); err != nil {
			s.feed.journal.failed("the replica does not say how far it is", err)
		}
	}
	if waited < flushAfter || time.Since(s.flushed) < flushAfter {
		return
	}
	s.flushed = time.Now()
	err := s.probes.Use(ctx, func(ctx context.Context, c *pgconn.PgConn) error {
		_, err := pgRows(ctx, c, `SELECT CASE WHEN pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn() OR
			pg_current_wal_flush_lsn() < $1::pg_lsn THEN pg_logical_emit_message(true, 'freshet', '') END`, s.lastLSN)
		return err
	})
	if err != nil && ctx.Err() == nil {
		s.feed.journal.failed("the log could not be flushed", err)
	}
}

// flushAfter is how long the server may take to flush its log by itself.
const flushAfter = 20 * time.Millisecond

// message applies one replication message.
func (r *pgReader) message(data []byte) error {
	if len(data) == 0 {
		return cursor.ErrShort
	}
	switch data[0] {
	case pgoutput.KeepaliveID:
		return r.keepalive(data[1:])
	case pgoutput.DataID:
		message, err := pgoutput.ParseData(data[1:])
		if err != nil {
			return err
		}
		return r.logical(message[0], message[1:])
	}
	return fmt.Errorf("feed: replication message of unknown kind %q", data[0])
}
