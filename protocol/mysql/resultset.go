package mysql

import (
	"encoding/binary"
	"math"
	"strconv"
)

// Result is a whole result set made up by the proxy. Cells are text; nil is
// NULL. In binary form a TypeLongLong or TypeDouble column's text is parsed, and
// text that is no number is sent as NULL; every other column is sent as text.
type Result struct {
	Columns  []Column
	Rows     [][]*string
	Status   Status
	Warnings uint16
}

// Append appends the framed packets of the result for a client with these
// capabilities, text for COM_QUERY or binary for COM_STMT_EXECUTE, starting at
// seq, and returns the sequence number that follows.
func (s *Result) Append(dst []byte, seq uint8, caps Capability, binaryRows bool) ([]byte, uint8) {
	dst, seq = AppendColumns(dst, seq, caps, s.Columns, s.Status)
	for _, row := range s.Rows {
		var mark int
		dst, mark = BeginPacket(dst)
		if binaryRows {
			dst = AppendBinaryRow(dst, s.Columns, row)
		} else {
			dst = AppendTextRow(dst, row)
		}
		dst, seq = EndPacket(dst, mark, seq)
	}
	dst, mark := BeginPacket(dst)
	dst = AppendResultEnd(dst, caps, s.Status, s.Warnings)
	return EndPacket(dst, mark, seq)
}

// AppendColumns appends the framed packets that come before the rows: the
// count, the definitions, and their EOF where the client wants one.
func AppendColumns(dst []byte, seq uint8, caps Capability, columns []Column, status Status) ([]byte, uint8) {
	dst, mark := BeginPacket(dst)
	dst = AppendLenenc(dst, uint64(len(columns)))
	if caps.Has(ClientOptionalResultsetMetadata) {
		// The manual shows the flag first; servers write it last.
		dst = append(dst, metadataFull)
	}
	dst, seq = EndPacket(dst, mark, seq)
	return AppendDefinitions(dst, seq, caps, columns, status)
}

// AppendDefinitions appends column definitions, framed, and their EOF where
// the client wants one.
func AppendDefinitions(dst []byte, seq uint8, caps Capability, columns []Column, status Status) ([]byte, uint8) {
	var mark int
	for i := range columns {
		dst, mark = BeginPacket(dst)
		dst = columns[i].Append(dst, caps)
		dst, seq = EndPacket(dst, mark, seq)
	}
	if caps.Has(ClientDeprecateEOF) {
		return dst, seq
	}
	dst, mark = BeginPacket(dst)
	eof := EOF{Status: status}
	dst = eof.Append(dst)
	return EndPacket(dst, mark, seq)
}

// AppendTextRow appends the payload of a row for COM_QUERY
// ("ProtocolText::ResultsetRow").
func AppendTextRow(dst []byte, cells []*string) []byte {
	for _, c := range cells {
		if c == nil {
			dst = append(dst, lenencNull)
			continue
		}
		dst = AppendLenencString(dst, *c)
	}
	return dst
}

// DecodeTextRow appends the cells of a text row of n columns to dst; a nil cell
// is NULL, an empty one is not nil. Cells alias p.
func DecodeTextRow(dst [][]byte, p []byte, n int) ([][]byte, error) {
	const what = "text row"
	r := reader{b: p}
	for range n {
		if len(r.b) > 0 && r.b[0] == lenencNull {
			r.take(1)
			dst = append(dst, nil)
			continue
		}
		cell := r.lenencString()
		if r.bad {
			return dst, malformed(what)
		}
		dst = append(dst, cell)
	}
	return dst, r.end(what)
}

// AppendBinaryRow appends the payload of a row for COM_STMT_EXECUTE ("Binary
// Protocol Resultset Row"): the NULL bitmap starts at bit 2.
func AppendBinaryRow(dst []byte, columns []Column, cells []*string) []byte {
	dst = append(dst, 0)
	bitmap := len(dst)
	for range (len(cells) + 7 + 2) / 8 {
		dst = append(dst, 0)
	}
	for i, c := range cells {
		out, ok := dst, c != nil
		if ok {
			out, ok = appendBinaryCell(dst, columns[i].Type, *c)
		}
		if !ok {
			dst[bitmap+(i+2)/8] |= 1 << ((i + 2) % 8)
			continue
		}
		dst = out
	}
	return dst
}

func appendBinaryCell(dst []byte, t FieldType, text string) ([]byte, bool) {
	switch t {
	case TypeLongLong:
		if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			return binary.LittleEndian.AppendUint64(dst, uint64(v)), true
		}
		v, err := strconv.ParseUint(text, 10, 64)
		return binary.LittleEndian.AppendUint64(dst, v), err == nil
	case TypeDouble:
		v, err := strconv.ParseFloat(text, 64)
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v)), err == nil
	}
	return AppendLenencString(dst, text), true
}
