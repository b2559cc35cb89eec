package feed

import (
	"strings"

	"freshet/cache/canon"
	"freshet/cache/feed/binlog"
)

// mysqlLayout says how a table map's rows become the table's columns; ok is
// false when they do not have the same number.
func mysqlLayout(m *binlog.TableMap, spec *TableSpec) (layout, bool) {
	if m == nil || len(m.Columns) != len(spec.Columns) {
		return layout{}, false
	}
	l := layout{at: make([]int, len(m.Columns))}
	for i := range l.at {
		l.at[i] = i
	}
	var scratch []byte
	l.canonical = func(dst []byte, i int, raw []byte) ([]byte, bool) {
		var ok bool
		dst, scratch, ok = mysqlCanonical(dst, scratch, m.Columns[i], &spec.Columns[i], raw)
		return dst, ok
	}
	return l, true
}

// mysqlCanonical appends the canonical form of a raw value. ok is false for a
// type that does not go with the column's kind: the definition is another one.
func mysqlCanonical(dst, scratch []byte, col binlog.Column, spec *Column, raw []byte) (out, scratchOut []byte, ok bool) {
	switch spec.Kind {
	case canon.Int:
		magnitude, negative, ok := col.Int(raw, spec.Unsigned)
		switch {
		case !ok:
			return dst, scratch, false
		case negative:
			return canon.AppendInt(dst, -int64(magnitude)), scratch, true
		}
		return canon.AppendUint(dst, magnitude), scratch, true
	case canon.Decimal:
		if scratch, ok = col.AppendDecimal(scratch[:0], raw); !ok {
			return dst, scratch, false
		}
	case canon.Date:
		if scratch, ok = col.AppendDate(scratch[:0], raw); !ok {
			return dst, scratch, false
		}
	case canon.DateTime:
		m, ok := col.Datetime(raw)
		if ok {
			dst, ok = canon.AppendMoment(dst, m.Year, m.Month, m.Day, m.Hour, m.Minute, m.Second, m.Micros)
		}
		return dst, scratch, ok
	case canon.Bytes, canon.BytesTrim, canon.FoldASCII, canon.FoldUTF8:
		if !col.IsString() || !singleByteASCII(spec.Charset) {
			return dst, scratch, false
		}
		dst, ok = canon.AppendText(spec.Kind, dst, raw)
		return dst, scratch, ok
	default:
		return dst, scratch, false
	}
	dst, ok = canon.AppendText(spec.Kind, dst, scratch)
	return dst, scratch, ok
}

// singleByteASCII tells whether a character set writes ASCII as ASCII. In the
// others the log's bytes are not those of a literal.
func singleByteASCII(charset string) bool {
	switch c := strings.ToLower(charset); c {
	case "ucs2", "utf16", "utf16le", "utf32":
		return false
	}
	return true
}
