package feed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"freshet/cache/feed/binlog"
)

// The stream is asked for with the replication protocol's own commands (MySQL
// source documentation, page_protocol_replication): go-mysql's syncer hides
// checksums, buffers ten thousand events and reconnects in ways that repeat
// events, so only its connection is used.

const (
	// heartbeatEvery is how often a silent server shows that it is there.
	heartbeatEvery = time.Second
	// dumpSilence ends a stream that has shown nothing for this long.
	dumpSilence = 10 * time.Second
	// maxEventBytes is how much of one event is kept in memory. A larger one is
	// cut off, and what it is about is taken to have changed whole.
	maxEventBytes = 64 << 20
)

// register announces a replica (COM_REGISTER_SLAVE).
func register(c *client.Conn, serverID uint32) error {
	data := make([]byte, 4, 64)
	data = append(data, mysql.COM_REGISTER_SLAVE)
	data = binary.LittleEndian.AppendUint32(data, serverID)
	const host = "freshet"
	data = append(data, byte(len(host)))
	data = append(data, host...)
	data = append(data, 0, 0)                        // user and password to show
	data = append(data, 0, 0)                        // port
	data = append(data, 0, 0, 0, 0)                  // rank
	data = binary.LittleEndian.AppendUint32(data, 0) // master id
	c.ResetSequence()
	if err := c.WritePacket(data); err != nil {
		return err
	}
	_, err := c.ReadOKPacket()
	return err
}

// prepareDump sets what the server reads from user variables before a dump. It
// returns whether events carry checksums until a format event says so.
func prepareDump(c *client.Conn, facts mysqlFacts, uuid string) (checksum bool, err error) {
	beat := heartbeatEvery.Nanoseconds()
	statement := fmt.Sprintf("SET @source_binlog_checksum = @@global.binlog_checksum, @master_binlog_checksum = @@global.binlog_checksum, "+
		"@source_heartbeat_period = %d, @master_heartbeat_period = %d, @replica_uuid = '%s', @slave_uuid = @replica_uuid", beat, beat, uuid)
	if facts.maria {
		statement += ", @mariadb_slave_capability = 4"
	}
	if _, err := c.Execute(statement); err != nil {
		return false, err
	}
	return facts.vars["binlog_checksum"] != "" && facts.vars["binlog_checksum"] != "NONE", nil
}

// sendAnnotations is MariaDB's flag for annotate events. They are of no use but
// for their length: events without a position are placed by adding lengths up.
const sendAnnotations = 2

// dumpFrom asks for everything after a place (COM_BINLOG_DUMP; MariaDB).
func dumpFrom(c *client.Conn, serverID uint32, file string, offset uint64) error {
	if offset > 1<<32-1 {
		return fmt.Errorf("feed: offset %d is too far for a dump", offset)
	}
	data := make([]byte, 4, 64)
	data = append(data, mysql.COM_BINLOG_DUMP)
	data = binary.LittleEndian.AppendUint32(data, uint32(offset))
	data = binary.LittleEndian.AppendUint16(data, sendAnnotations)
	data = binary.LittleEndian.AppendUint32(data, serverID)
	data = append(data, file...)
	c.ResetSequence()
	return c.WritePacket(data)
}

// dumpAfter asks for every transaction that is not in the set
// (COM_BINLOG_DUMP_GTID; MySQL).
func dumpAfter(c *client.Conn, serverID uint32, set *binlog.GTIDSet) error {
	parsed, err := mysql.ParseMysqlGTIDSet(set.String())
	if err != nil {
		return err
	}
	encoded := parsed.Encode()
	data := make([]byte, 4, 64+len(encoded))
	data = append(data, mysql.COM_BINLOG_DUMP_GTID)
	data = binary.LittleEndian.AppendUint16(data, 0)
	data = binary.LittleEndian.AppendUint32(data, serverID)
	data = binary.LittleEndian.AppendUint32(data, 0) // no file name
	data = binary.LittleEndian.AppendUint64(data, 4) // the first event of a file
	data = binary.LittleEndian.AppendUint32(data, uint32(len(encoded)))
	data = append(data, encoded...)
	c.ResetSequence()
	return c.WritePacket(data)
}

// packet collects one packet, up to maxEventBytes; it is reused.
type packet struct {
	data  []byte
	total int
}

func (p *packet) Write(b []byte) (int, error) {
	p.total += len(b)
	if room := maxEventBytes - len(p.data); room > 0 {
		p.data = append(p.data, b[:min(len(b), room)]...)
	}
	return len(b), nil
}

func (p *packet) reset() {
	if cap(p.data) > 1<<20 {
		p.data = nil
	}
	p.data, p.total = p.data[:0], 0
}

var errStreamEnded = errors.New("the server ended the stream")

// readEvent reads the next event's bytes, which live until the next call. cut
// says that the event is longer than what is kept.
func readEvent(c *client.Conn, p *packet) (data []byte, cut bool, err error) {
	p.reset()
	if err := c.ReadPacketTo(p); err != nil {
		return nil, false, err
	}
	if len(p.data) == 0 {
		return nil, false, io.ErrUnexpectedEOF
	}
	switch p.data[0] {
	case mysql.OK_HEADER:
		return p.data[1:], p.total > len(p.data), nil
	case mysql.ERR_HEADER:
		return nil, false, c.HandleErrorPacket(p.data)
	case mysql.EOF_HEADER:
		return nil, false, errStreamEnded
	}
	return nil, false, fmt.Errorf("feed: packet of unknown kind %#x in the stream", p.data[0])
}

// stream follows the log until the line or ctx ends.
func (s *mysqlSource) stream(ctx context.Context) error {
	conn, release, err := s.logDSN().dial(ctx, "", dumpSilence)
	if err != nil {
		return err
	}
	defer closeQuietly(conn)
	defer release()
	facts, err := s.inspectLog(ctx, conn)
	if err != nil {
		return err
	}
	checksum, err := prepareDump(conn, facts, s.name())
	if err != nil {
		return err
	}
	line := semiLine{}
	if line.asked, err = s.takeSeat(conn, facts); err != nil {
		return err
	}
	if line.asked {
		if err := askSemiSync(conn); err != nil {
			return err
		}
	}
	r, err := s.begin(ctx, conn, facts)
	if err != nil {
		return err
	}
	defer r.close()
	r.checksum = checksum
	return r.follow(conn, &line)
}

// follow applies what comes, until the line ends, and acknowledges what the
// server waits for once its marks are set.
func (r *mysqlReader) follow(conn *client.Conn, line *semiLine) error {
	var p packet
	for {
		data, cut, err := readEvent(conn, &p)
		switch {
		case errorNumber(err) == mysql.ER_MASTER_FATAL_ERROR_READING_BINLOG:
			return fmt.Errorf("%w: %w", errPlaceLost, err)
		case err != nil:
			return err
		}
		data, wants, err := line.strip(data)
		if err != nil {
			return err
		}
		if err := r.event(data, cut); err != nil {
			return err
		}
		if wants {
			// Whatever group ends at or before this place has been applied.
			if err := line.acknowledge(conn, r.file, r.offset); err != nil {
				return err
			}
		} else if err := line.volunteer(conn, r, data); err != nil {
			return err
		}
	}
}

// begin asks for the stream: from where it broke off, if the server's history
// is still the one it was, else from now, with everything forgotten.
func (s *mysqlSource) begin(ctx context.Context, conn *client.Conn, facts mysqlFacts) (*mysqlReader, error) {
	r, err := newMySQLReader(s, facts)
	if err != nil {
		return nil, err
	}
	r.ctx = ctx
	s.mu.Lock()
	place := s.place
	s.mu.Unlock()
	if facts.maria {
		err = s.beginMaria(ctx, conn, r, place, facts)
	} else {
		err = s.beginMySQL(ctx, conn, r, place)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// beginMySQL starts by GTIDs. SHOW BINARY LOG STATUS reads the set and the
// offset one after the other, so starting at the offset could miss a
// transaction that is in neither.
func (s *mysqlSource) beginMySQL(ctx context.Context, conn *client.Conn, r *mysqlReader, place mysqlPlace) error {
	executed, err := readExecuted(conn)
	if err != nil {
		return err
	}
	if err := s.startMySQLCopy(ctx, executed); err != nil {
		return err
	}
	received := s.feed.applier.receivedSet()
	r.resuming = place.known && received != nil && executed.Contains(received)
	if !r.resuming {
		s.startOver()
		received = executed
		s.gateMySQL(executed)
	}
	r.received = received
	return dumpAfter(conn, s.serverID, received)
}

// startOver forgets the place; what was kept from before cannot be trusted.
func (s *mysqlSource) startOver() {
	s.forget()
	s.feed.applier.lostPlace()
}

func readExecuted(conn *client.Conn) (*binlog.GTIDSet, error) {
	rows, err := mysqlRows(conn, "SELECT @@GLOBAL.gtid_executed")
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 || len(rows[0]) != 1 {
		return nil, errors.New("feed: the server does not tell gtid_executed")
	}
	return binlog.ParseGTIDSet(rows[0][0])
}

// beginMaria starts where a consistent snapshot says that its view ends.
func (s *mysqlSource) beginMaria(ctx context.Context, conn *client.Conn, r *mysqlReader, place mysqlPlace, facts mysqlFacts) error {
	applied, err := s.startMariaCopy(ctx, conn)
	if err != nil {
		return err
	}
	if place.known && place.server == facts.identity {
		domains, err := gtidAt(conn, place.file, place.offset)
		if err != nil {
			return err
		}
		if domains != nil && sameDomains(domains, place.domain) {
			r.resuming = true
			r.file, r.offset, r.domain, r.heads = place.file, place.offset, place.domain, place.heads
			return dumpFrom(conn, s.serverID, place.file, place.offset)
		}
	}
	s.startOver()
	snap, err := mariaSnapshot(conn)
	if err != nil {
		return err
	}
	r.domain, err = gtidAt(conn, snap.file, snap.offset)
	if err != nil {
		return err
	}
	if r.domain == nil {
		return fmt.Errorf("feed: the server does not know %s:%d in its own log", snap.file, snap.offset)
	}
	r.file, r.offset = snap.file, snap.offset
	r.heads = joinDomains(r.domain, applied)
	s.gateMaria(r.heads)
	return dumpFrom(conn, s.serverID, snap.file, snap.offset)
}
