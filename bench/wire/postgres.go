package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
)

// PostgresConn is one authenticated connection. It is owned by one goroutine.
type PostgresConn struct {
	Net        net.Conn
	Parameters map[string]string // ParameterStatus at start
	r          *bufio.Reader
}

// PostgresOptions are what a client chooses at start.
type PostgresOptions struct {
	Parameters map[string]string // startup parameters besides user and database
}

// DialPostgres connects and authenticates (pgconn does; it knows SCRAM, md5 and
// sslmode), then takes the connection over. A refusal is a *pgconn.PgError.
func DialPostgres(ctx context.Context, t Target, o PostgresOptions) (*PostgresConn, error) {
	cfg, err := pgconn.ParseConfig(t.DSN())
	if err != nil {
		return nil, err
	}
	for k, v := range o.Parameters {
		cfg.RuntimeParams[k] = v
	}
	pc, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	h, err := pc.Hijack()
	if err != nil {
		return nil, closing(pc.Conn(), err)
	}
	return &PostgresConn{Net: h.Conn, Parameters: h.ParameterStatuses, r: bufio.NewReaderSize(h.Conn, 32<<10)}, nil
}

// Close says goodbye (Terminate) and closes the socket.
func (c *PostgresConn) Close() error {
	if _, err := c.Net.Write([]byte{'X', 0, 0, 0, 4}); err != nil {
		return closing(c.Net, err)
	}
	return c.Net.Close()
}

// Send writes messages already encoded.
func (c *PostgresConn) Send(b []byte) error {
	_, err := c.Net.Write(b)
	return err
}

// ReadMessage reads one message (manual: Message Formats). The bytes are the caller's.
func (c *PostgresConn) ReadMessage() (Message, error) {
	var h [5]byte
	if _, err := io.ReadFull(c.r, h[:]); err != nil {
		return Message{}, err
	}
	n := binary.BigEndian.Uint32(h[1:])
	if n < 4 || n > MaxMessageBytes {
		return Message{}, malformed(fmt.Sprintf("message %q of length %d", h[0], n))
	}
	body := make([]byte, n-4)
	if _, err := io.ReadFull(c.r, body); err != nil {
		return Message{}, noEOF(err)
	}
	return Message{Kind: string(h[:1]), Body: body}, nil
}

// ReadUntil reads up to and with the message for which done says so. copyIn is
// sent when the server asks for it (CopyInResponse).
func (c *PostgresConn) ReadUntil(done func(Message) bool, copyIn []byte) ([]Message, error) {
	var out []Message
	for {
		m, err := c.ReadMessage()
		if err != nil {
			return out, err
		}
		out = append(out, m)
		if m.Kind == "G" {
			if err := c.Send(copyIn); err != nil {
				return out, err
			}
		}
		if done(m) {
			return out, nil
		}
	}
}

// ReadReady reads up to the n-th ReadyForQuery.
func (c *PostgresConn) ReadReady(n int, copyIn []byte) ([]Message, error) {
	return c.ReadUntil(func(m Message) bool {
		if m.Kind == "Z" {
			n--
		}
		return n == 0
	}, copyIn)
}

// Query runs text for its effect; the first ErrorResponse comes back as an error.
func (c *PostgresConn) Query(sql string) ([]Message, error) {
	if err := c.Send(AppendQuery(nil, sql)); err != nil {
		return nil, err
	}
	out, err := c.ReadReady(1, nil)
	if err != nil {
		return out, err
	}
	for _, m := range out {
		if m.Kind == "E" {
			return out, PostgresError(m.Body)
		}
	}
	return out, nil
}

// PostgresError reads an ErrorResponse's severity, code and message.
func PostgresError(body []byte) *pgconn.PgError {
	return &pgconn.PgError{Code: field(body, 'C'), Severity: field(body, 'S'), Message: field(body, 'M')}
}

// field finds one field of an ErrorResponse.
func field(b []byte, code byte) string {
	for len(b) > 1 {
		value, rest, ok := bytes.Cut(b[1:], []byte{0})
		if !ok {
			return ""
		}
		if b[0] == code {
			return string(value)
		}
		b = rest
	}
	return ""
}

// DataRow splits a DataRow into its columns; nil is NULL.
func DataRow(b []byte) ([][]byte, error) {
	if len(b) < 2 {
		return nil, malformed("DataRow")
	}
	n := int(binary.BigEndian.Uint16(b))
	b = b[2:]
	out := make([][]byte, 0, n)
	for i := 0; i < n; i++ {
		if len(b) < 4 {
			return nil, malformed("DataRow")
		}
		size := int32(binary.BigEndian.Uint32(b))
		b = b[4:]
		if size == -1 {
			out = append(out, nil)
			continue
		}
		if size < 0 || int(size) > len(b) {
			return nil, malformed("DataRow")
		}
		out, b = append(out, b[:size:size]), b[size:]
	}
	return out, nil
}

// Table runs text and splits its result: the columns' names and rows.
func (c *PostgresConn) Table(sql string) (names []string, rows [][][]byte, err error) {
	reply, err := c.Query(sql)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range reply {
		switch m.Kind {
		case "T":
			if names, err = columnNames(m.Body); err != nil {
				return nil, nil, err
			}
		case "D":
			row, err := DataRow(m.Body)
			if err != nil {
				return nil, nil, err
			}
			rows = append(rows, row)
		}
	}
	return names, rows, nil
}

// columnNames reads a RowDescription: each name is followed by 18 bytes.
func columnNames(b []byte) ([]string, error) {
	if len(b) < 2 {
		return nil, malformed("RowDescription")
	}
	n := int(binary.BigEndian.Uint16(b))
	b = b[2:]
	var names []string
	for range n {
		name, rest, ok := bytes.Cut(b, []byte{0})
		if !ok || len(rest) < 18 {
			return nil, malformed("RowDescription")
		}
		names, b = append(names, string(name)), rest[18:]
	}
	return names, nil
}
