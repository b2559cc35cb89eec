package fresh

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"freshet/bench/wire"
)

// How the end of the binary log is asked for: MySQL 8.4 gave the statement its
// new name, MariaDB kept the old one.
const (
	newStatus = "SHOW BINARY LOG STATUS"
	oldStatus = "SHOW MASTER STATUS"
)

// openMySQL dumps the binary log from its end (COM_BINLOG_DUMP), with nothing
// between the connection and the events: go-mysql's own syncer hands each
// event from one goroutine to another.
func (s *stream) openMySQL(ctx context.Context, t wire.Target) error {
	c, err := client.ConnectWithContext(ctx, fmt.Sprintf("%s:%d", t.Host, t.Port), t.User, t.Password, "", streamPatience)
	if err != nil {
		return err
	}
	s.hangUp = c.Close
	if err := dumpFromEnd(c); err != nil {
		return errors.Join(err, c.Close())
	}
	go func() {
		for {
			packet, err := c.ReadPacket()
			if err == nil && (len(packet) == 0 || packet[0] != mysql.OK_HEADER) {
				err = errors.New("the server ended the dump")
			}
			if err != nil {
				s.ended <- err
				return
			}
			s.binlogEvent(packet[1:])
		}
	}()
	return nil
}

func dumpFromEnd(c *client.Conn) error {
	_, err := c.Execute("SET @source_binlog_checksum = @@global.binlog_checksum, @master_binlog_checksum = @@global.binlog_checksum, @mariadb_slave_capability = 4")
	if err != nil {
		return err
	}
	end, err := c.Execute(newStatus)
	if err != nil {
		end, err = c.Execute(oldStatus)
	}
	if err != nil {
		return err
	}
	file, err := end.GetString(0, 0)
	if err != nil {
		return err
	}
	text, err := end.GetString(0, 1)
	if err != nil {
		return err
	}
	offset, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return err
	}
	dump := append(make([]byte, 4), mysql.COM_BINLOG_DUMP)
	dump = binary.LittleEndian.AppendUint32(dump, uint32(offset))
	dump = append(dump, 0, 0)
	dump = binary.LittleEndian.AppendUint32(dump, 1<<30+rand.Uint32N(1<<30)) // this replica's number
	c.ResetSequence()
	return c.WritePacket(append(dump, file...))
}

// Where an event's type stands, and the types of interest (MySQL source
// documentation, mysql::binlog::event::Log_event_type).
const (
	eventType      = 4
	xidEvent       = 16
	updateRowsV1   = 24
	updateRowsV2   = 31
	eventHeadBytes = 19
)

func (s *stream) binlogEvent(e []byte) {
	if len(e) < eventHeadBytes {
		return
	}
	switch e[eventType] {
	case updateRowsV1, updateRowsV2:
		s.changed(func(value int64) bool {
			// A BIGINT stands in a row image as it is, little-endian.
			return bytes.Contains(e, binary.LittleEndian.AppendUint64(nil, uint64(value)))
		})
	case xidEvent:
		s.committed()
	}
}
