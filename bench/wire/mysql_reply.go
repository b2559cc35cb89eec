package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// Kinds of MySQL messages in a reply.
const (
	KindOK      = "ok"
	KindErr     = "err"
	KindEOF     = "eof"
	KindColumns = "columns" // a result set's column count
	KindColumn  = "column"
	KindParam   = "param"
	KindRow     = "row"
	KindPrepare = "prepare"
	KindFile    = "file" // LOCAL INFILE request
	KindText    = "text" // COM_STATISTICS
)

// ReadResults reads the reply to COM_QUERY or COM_STMT_EXECUTE, all its results
// included. file is what a LOAD DATA LOCAL INFILE is answered with.
func (c *MySQLConn) ReadResults(file []byte) ([]Message, error) {
	var out []Message
	for {
		b, err := c.first()
		if err != nil {
			return out, err
		}
		var status uint16
		switch {
		case b[0] == 0xff:
			return append(out, Message{KindErr, b}), nil
		case b[0] == 0x00:
			out = append(out, Message{KindOK, b})
			if status, err = okStatus(b); err != nil {
				return out, err
			}
		case b[0] == 0xfb:
			out = append(out, Message{KindFile, b})
			if err := c.sendFile(file); err != nil {
				return out, err
			}
			continue
		default:
			out = append(out, Message{KindColumns, b})
			if out, status, err = c.resultSet(out, b); err != nil {
				return out, err
			}
		}
		if status&statusMoreResults == 0 {
			return out, nil
		}
	}
}

func (c *MySQLConn) sendFile(file []byte) error {
	if len(file) > 0 {
		if err := c.write(file); err != nil {
			return err
		}
	}
	return c.write(nil)
}

// first reads a packet that must not be empty.
func (c *MySQLConn) first() ([]byte, error) {
	b, err := c.ReadPacket()
	if err != nil {
		return nil, err
	}
	if len(b) == 0 {
		return nil, malformed("empty packet")
	}
	return b, nil
}

// resultSet reads column definitions and rows, up to the packet that ends the
// set, whose status it returns. An error packet ends everything.
func (c *MySQLConn) resultSet(out []Message, head []byte) ([]Message, uint16, error) {
	n, rest, ok := lenenc(head)
	if !ok || len(rest) != 0 || n == 0 || n > 1<<16 {
		return out, 0, malformed("column count")
	}
	out, err := c.definitions(out, KindColumn, int(n))
	if err != nil {
		return out, 0, err
	}
	if c.Caps&CapDeprecateEOF == 0 {
		b, err := c.first()
		if err != nil {
			return out, 0, err
		}
		if b[0] == 0xff {
			return append(out, Message{KindErr, b}), 0, nil
		}
		out = append(out, Message{KindEOF, b})
		status, err := eofStatus(b)
		if err != nil || status&statusCursorExists != 0 {
			return out, status, err
		}
	}
	return c.ReadRows(out)
}

// definitions reads n column definitions.
func (c *MySQLConn) definitions(out []Message, kind string, n int) ([]Message, error) {
	for i := 0; i < n; i++ {
		b, err := c.first()
		if err != nil {
			return out, err
		}
		out = append(out, Message{kind, b})
	}
	return out, nil
}

// ReadRows reads rows up to the packet that ends them (also the reply to
// COM_STMT_FETCH) and returns its status.
func (c *MySQLConn) ReadRows(out []Message) ([]Message, uint16, error) {
	for {
		b, err := c.first()
		if err != nil {
			return out, 0, err
		}
		switch {
		case b[0] == 0xff:
			return append(out, Message{KindErr, b}), 0, nil
		case b[0] == 0xfe && c.Caps&CapDeprecateEOF != 0 && len(b) < maxPacketBytes:
			status, err := okStatus(b)
			return append(out, Message{KindOK, b}), status, err
		case b[0] == 0xfe && c.Caps&CapDeprecateEOF == 0 && len(b) < 9:
			status, err := eofStatus(b)
			return append(out, Message{KindEOF, b}), status, err
		}
		out = append(out, Message{KindRow, b})
	}
}

// Prepared is what COM_STMT_PREPARE answered.
type Prepared struct {
	ID      uint32
	Columns int
	Params  int
}

// Prepare sends COM_STMT_PREPARE and reads its whole reply. When the server
// refuses, the reply is one err message and Prepared is zero.
func (c *MySQLConn) Prepare(sql string) (Prepared, []Message, error) {
	if err := c.Send(append([]byte{ComStmtPrepare}, sql...)); err != nil {
		return Prepared{}, nil, err
	}
	b, err := c.first()
	if err != nil {
		return Prepared{}, nil, err
	}
	if b[0] == 0xff {
		return Prepared{}, []Message{{KindErr, b}}, nil
	}
	if len(b) < 12 || b[0] != 0 {
		return Prepared{}, nil, malformed("COM_STMT_PREPARE_OK")
	}
	p := Prepared{
		ID:      binary.LittleEndian.Uint32(b[1:]),
		Columns: int(binary.LittleEndian.Uint16(b[5:])),
		Params:  int(binary.LittleEndian.Uint16(b[7:])),
	}
	out := []Message{{KindPrepare, b}}
	for _, part := range []struct {
		kind string
		n    int
	}{{KindParam, p.Params}, {KindColumn, p.Columns}} {
		if part.n == 0 {
			continue
		}
		if out, err = c.definitions(out, part.kind, part.n); err != nil {
			return p, out, err
		}
		if c.Caps&CapDeprecateEOF == 0 {
			if out, err = c.definitions(out, KindEOF, 1); err != nil {
				return p, out, err
			}
		}
	}
	return p, out, nil
}

// ReadSimple reads a reply of one packet: OK, ERR, EOF or a text.
func (c *MySQLConn) ReadSimple() ([]Message, error) {
	b, err := c.first()
	if err != nil {
		return nil, err
	}
	kind := KindText
	switch {
	case b[0] == 0xff:
		kind = KindErr
	case b[0] == 0x00:
		kind = KindOK
	case b[0] == 0xfe:
		kind = KindEOF
	}
	return []Message{{kind, b}}, nil
}

// Query runs text for its effect; an ERR packet comes back as *MySQLError.
func (c *MySQLConn) Query(sql string) ([]Message, error) {
	if err := c.Send(append([]byte{ComQuery}, sql...)); err != nil {
		return nil, err
	}
	out, err := c.ReadResults(nil)
	if err != nil {
		return out, err
	}
	if last := out[len(out)-1]; last.Kind == KindErr {
		return out, errOf(last.Body)
	}
	return out, nil
}

// okStatus reads an OK packet's status flags (also of one with header 0xfe).
func okStatus(b []byte) (uint16, error) {
	at, err := OKStatusOffset(b)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint16(b[at:]), nil
}

// OKStatusOffset is where an OK packet's two status bytes stand; the two of
// the warning count follow them.
func OKStatusOffset(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, malformed("OK packet")
	}
	rest := b[1:]
	for i := 0; i < 2; i++ { // affected rows, last insert id
		var ok bool
		if _, rest, ok = lenenc(rest); !ok {
			return 0, malformed("OK packet")
		}
	}
	if len(rest) < 4 {
		return 0, malformed("OK packet")
	}
	return len(b) - len(rest), nil
}

func eofStatus(b []byte) (uint16, error) {
	if len(b) != 5 || b[0] != 0xfe {
		return 0, malformed(fmt.Sprintf("EOF packet of %d bytes", len(b)))
	}
	return binary.LittleEndian.Uint16(b[3:]), nil
}

// lenenc reads a length-encoded integer (manual: Protocol::LengthEncodedInteger).
func lenenc(b []byte) (uint64, []byte, bool) {
	if len(b) == 0 {
		return 0, nil, false
	}
	size := 0
	switch b[0] {
	case 0xfc:
		size = 2
	case 0xfd:
		size = 3
	case 0xfe:
		size = 8
	case 0xfb, 0xff:
		return 0, nil, false
	default:
		return uint64(b[0]), b[1:], true
	}
	if len(b) < 1+size {
		return 0, nil, false
	}
	var n uint64
	for i := size; i > 0; i-- {
		n = n<<8 | uint64(b[i])
	}
	return n, b[1+size:], true
}

// TextRow splits a text result row into its columns; nil is NULL.
func TextRow(b []byte) ([][]byte, error) {
	var out [][]byte
	for len(b) > 0 {
		if b[0] == 0xfb {
			out, b = append(out, nil), b[1:]
			continue
		}
		n, rest, ok := lenenc(b)
		if !ok || n > uint64(len(rest)) {
			return nil, malformed("text row")
		}
		out, b = append(out, rest[:n:n]), rest[n:]
	}
	return out, nil
}

// Table runs text and splits its first result set: the columns' names and rows.
func (c *MySQLConn) Table(sql string) (names []string, rows [][][]byte, err error) {
	reply, err := c.Query(sql)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range reply {
		switch m.Kind {
		case KindColumn: // catalog, schema, table, original table, name (manual: ColumnDefinition41)
			parts, err := TextRow(firstStrings(m.Body, 5))
			if err != nil || len(parts) != 5 {
				return nil, nil, malformed("column definition")
			}
			names = append(names, string(parts[4]))
		case KindRow:
			row, err := TextRow(m.Body)
			if err != nil {
				return nil, nil, err
			}
			rows = append(rows, row)
		}
	}
	return names, rows, nil
}

// firstStrings is the part of b that its first n length-encoded strings take;
// all of b if they do not fit.
func firstStrings(b []byte, n int) []byte {
	rest := b
	for range n {
		size, after, ok := lenenc(rest)
		if !ok || size > uint64(len(after)) {
			return b
		}
		rest = after[size:]
	}
	return b[:len(b)-len(rest)]
}

// SortStateChanges brings what an OK packet holds after its warning count (the
// info text, then session state changes: a type and a string each) into one
// order; the server's own has no meaning. Malformed bytes come back as they are.
func SortStateChanges(b []byte) []byte {
	info := firstStrings(b, 1)
	n, block, ok := lenenc(b[len(info):])
	if !ok || n != uint64(len(block)) {
		return b
	}
	var changes [][]byte
	for rest := block; len(rest) > 0; {
		size, after, ok := lenenc(rest[1:])
		if !ok || size > uint64(len(after)) {
			return b
		}
		end := len(rest) - len(after) + int(size)
		changes, rest = append(changes, rest[:end]), rest[end:]
	}
	slices.SortFunc(changes, bytes.Compare)
	out := append([]byte(nil), b[:len(b)-len(block)]...)
	return append(out, bytes.Join(changes, nil)...)
}
