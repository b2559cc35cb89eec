package fresh

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"freshet/bench/versus"
	"freshet/bench/wire"
)

// barePublication is what the bare client's tables are in.
const barePublication = "freshet_bench_fresh"

// openPostgres follows the tables by logical replication from a temporary slot.
func (s *stream) openPostgres(ctx context.Context, t wire.Target, tables []string) error {
	dsn := t.DSN()
	err := versus.Exec(ctx, dsn, "DROP PUBLICATION IF EXISTS "+barePublication,
		"CREATE PUBLICATION "+barePublication+" FOR TABLE "+strings.Join(tables, ", "))
	if err != nil {
		return err
	}
	cfg, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return err
	}
	cfg.RuntimeParams["replication"] = "database"
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	s.hangUp = func() error {
		ctx, cancel := context.WithTimeout(context.Background(), streamPatience)
		defer cancel()
		// The reader has the connection; its end is what ends the reader.
		return errors.Join(conn.Conn().Close(), versus.Exec(ctx, dsn, "DROP PUBLICATION "+barePublication))
	}
	slot := fmt.Sprintf("freshet_bench_%d", rand.Uint32())
	if err := conn.Exec(ctx, "CREATE_REPLICATION_SLOT "+slot+" TEMPORARY LOGICAL pgoutput NOEXPORT_SNAPSHOT").Close(); err != nil {
		return errors.Join(err, s.hangUp())
	}
	conn.Frontend().SendQuery(&pgproto3.Query{String: "START_REPLICATION SLOT " + slot +
		" LOGICAL 0/0 (proto_version '1', publication_names '" + barePublication + "')"})
	if err := conn.Frontend().Flush(); err != nil {
		return errors.Join(err, s.hangUp())
	}
	go func() { s.ended <- s.follow(conn) }()
	return nil
}

// follow reads until the line ends.
func (s *stream) follow(conn *pgconn.PgConn) error {
	var last uint64
	for {
		message, err := conn.ReceiveMessage(context.Background())
		if err != nil {
			return err
		}
		switch m := message.(type) {
		case *pgproto3.ErrorResponse:
			return pgconn.ErrorResponseToPgError(m)
		case *pgproto3.CopyData:
			if err := s.copied(conn, m.Data, &last); err != nil {
				return err
			}
		}
	}
}

// What the replication messages hold before what is of use (manual, "Streaming
// Replication Protocol"): XLogData two positions and a clock, a keepalive one
// position, a clock and whether an answer is wanted.
const (
	dataHead  = 1 + 3*8
	beatBytes = 1 + 2*8 + 1
)

func (s *stream) copied(conn *pgconn.PgConn, data []byte, last *uint64) error {
	switch {
	case len(data) == beatBytes && data[0] == 'k':
		*last = max(*last, binary.BigEndian.Uint64(data[1:]))
		if data[beatBytes-1] == 0 {
			return nil
		}
		return s.acknowledge(conn, *last)
	case len(data) <= dataHead || data[0] != 'w':
		return nil
	}
	*last = max(*last, binary.BigEndian.Uint64(data[1:]))
	switch body := data[dataHead:]; body[0] {
	case 'U':
		s.changed(func(value int64) bool { return bytes.Contains(body, strconv.AppendInt(nil, value, 10)) })
	case 'C':
		s.committed()
	}
	return nil
}

// acknowledge is a standby status update.
func (s *stream) acknowledge(conn *pgconn.PgConn, at uint64) error {
	const postgresEpoch = 946684800
	data := []byte{'r'}
	for range 3 {
		data = binary.BigEndian.AppendUint64(data, at)
	}
	data = append(binary.BigEndian.AppendUint64(data, uint64(time.Now().UnixMicro()-postgresEpoch*1e6)), 0)
	b, err := (&pgproto3.CopyData{Data: data}).Encode(nil)
	if err != nil {
		return err
	}
	_, err = conn.Conn().Write(b)
	return err
}
