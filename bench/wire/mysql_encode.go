package wire

import (
	"encoding/binary"
	"math"
	"time"
)

// Types of the MySQL binary protocol that AppendStmtExecute sends.
const (
	typeTiny      = 1
	typeDouble    = 5
	typeNull      = 6
	typeLongLong  = 8
	typeDatetime  = 12
	typeBlob      = 252
	typeVarString = 253
)

// CursorReadOnly asks COM_STMT_EXECUTE for a cursor.
const CursorReadOnly byte = 1

// LongData is a parameter whose value went ahead by COM_STMT_SEND_LONG_DATA.
type LongData struct{}

// AppendStmtExecute adds COM_STMT_EXECUTE's payload (manual: COM_STMT_EXECUTE).
// args are nil, int64, uint64, float64, bool, string, []byte, time.Time or
// LongData; anything else is sent as NULL. bound are the types as the last execute of
// this statement sent them, nil for the first: when they still fit they are
// not sent again. It returns the types now bound.
func AppendStmtExecute(b []byte, id uint32, flags byte, args []any, bound []byte) ([]byte, []byte) {
	b = append(b, ComStmtExecute)
	b = binary.LittleEndian.AppendUint32(b, id)
	b = append(b, flags, 1, 0, 0, 0)
	if len(args) == 0 {
		return b, bound
	}
	nulls := len(b)
	b = append(b, make([]byte, (len(args)+7)/8)...)
	if fits(args, bound) {
		b = append(b, 0)
	} else {
		bound = nil
		for _, a := range args {
			t, unsigned := mysqlType(a)
			bound = append(bound, t, unsigned)
		}
		b = append(append(b, 1), bound...)
	}
	for i, a := range args {
		switch v := a.(type) {
		case int64:
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		case uint64:
			b = binary.LittleEndian.AppendUint64(b, v)
		case float64:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		case string:
			b = append(AppendLenenc(b, uint64(len(v))), v...)
		case []byte:
			b = append(AppendLenenc(b, uint64(len(v))), v...)
		case time.Time:
			b = append(b, 11) // the length of a full date, time and microseconds
			b = binary.LittleEndian.AppendUint16(b, uint16(v.Year()))
			b = append(b, byte(v.Month()), byte(v.Day()), byte(v.Hour()), byte(v.Minute()), byte(v.Second()))
			b = binary.LittleEndian.AppendUint32(b, uint32(v.Nanosecond()/1000))
		case bool:
			if v {
				b = append(b, 1)
			} else {
				b = append(b, 0)
			}
		case LongData:
		default:
			b[nulls+i/8] |= 1 << (i % 8)
		}
	}
	return b, bound
}

// fits says whether the bound types serve args: NULL fits any of them.
func fits(args []any, bound []byte) bool {
	if len(bound) != 2*len(args) {
		return false
	}
	for i, a := range args {
		t, unsigned := mysqlType(a)
		if t != typeNull && (bound[2*i] != t || bound[2*i+1] != unsigned) {
			return false
		}
	}
	return true
}

func mysqlType(a any) (t, unsigned byte) {
	switch a.(type) {
	case int64:
		return typeLongLong, 0
	case uint64:
		return typeLongLong, 0x80
	case float64:
		return typeDouble, 0
	case bool:
		return typeTiny, 0
	case string:
		return typeVarString, 0
	case []byte, LongData:
		return typeBlob, 0
	case time.Time:
		return typeDatetime, 0
	}
	return typeNull, 0
}

// AppendLenenc adds a length-encoded integer.
func AppendLenenc(b []byte, n uint64) []byte {
	switch {
	case n < 0xfb:
		return append(b, byte(n))
	case n < 1<<16:
		return append(b, 0xfc, byte(n), byte(n>>8))
	case n < 1<<24:
		return append(b, 0xfd, byte(n), byte(n>>8), byte(n>>16))
	}
	return binary.LittleEndian.AppendUint64(append(b, 0xfe), n)
}

// AppendPacket frames a payload shorter than 16 MiB - 1 as one packet.
func AppendPacket(b []byte, seq byte, payload []byte) []byte {
	n := len(payload)
	b = append(b, byte(n), byte(n>>8), byte(n>>16), seq)
	return append(b, payload...)
}
