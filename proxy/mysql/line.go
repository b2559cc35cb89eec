package mysql

import (
	"errors"
	"fmt"
	"io"
	"net"

	wire "freshet/protocol/mysql"
)

// line is a connection to the upstream as Dial uses it: blocking, off the
// loop. It never reads past the packet it wants, so that the loop can go on
// with the same connection.
type line struct {
	conn net.Conn
	caps wire.Capability
	seq  uint8
	// collation is that of the last query's last column.
	collation uint16
}

func (l *line) read() ([]byte, error) {
	var head [wire.HeaderLen]byte
	if _, err := io.ReadFull(l.conn, head[:]); err != nil {
		return nil, err
	}
	h, err := wire.DecodeHeader(head[:])
	if err != nil {
		return nil, err
	}
	if h.Length == wire.MaxPayload {
		return nil, wire.ErrTooLarge
	}
	p := make([]byte, h.Length)
	if _, err := io.ReadFull(l.conn, p); err != nil {
		return nil, err
	}
	l.seq = h.Seq + 1
	return p, nil
}

func (l *line) write(payload []byte) error {
	b, _ := wire.AppendPacket(nil, l.seq, payload)
	_, err := l.conn.Write(b)
	return err
}

// query runs one statement and returns its rows; a nil cell is NULL.
func (l *line) query(text string) ([][][]byte, error) {
	l.seq = 0
	if err := l.write(wire.AppendQuery(nil, l.caps, text)); err != nil {
		return nil, err
	}
	var t wire.Tracker
	t.Begin(wire.ComQuery, l.caps, 1)
	var rows [][][]byte
	for !t.Done() {
		p, err := l.read()
		if err != nil {
			return nil, err
		}
		event, err := t.Packet(wire.Header{Length: len(p), Seq: l.seq - 1}, p)
		if err != nil {
			return nil, err
		}
		switch event {
		case wire.EventColumn:
			c, err := wire.DecodeColumn(p, l.caps)
			if err != nil {
				return nil, err
			}
			l.collation = c.Collation
		case wire.EventRow:
			row, err := wire.DecodeTextRow(nil, p, int(t.Columns))
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		case wire.EventLocalInfile:
			return nil, errors.New("mysql: the server asks for a file")
		}
	}
	if t.Failed {
		return nil, fmt.Errorf("%.60q: %w", text, t.Error)
	}
	return rows, nil
}
