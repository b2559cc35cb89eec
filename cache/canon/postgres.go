package canon

import "encoding/binary"

// PostgreSQL type OIDs whose equality this package knows (pg_type.dat).
const (
	OIDBool        uint32 = 16
	OIDBytea       uint32 = 17
	OIDInt8        uint32 = 20
	OIDInt2        uint32 = 21
	OIDInt4        uint32 = 23
	OIDText        uint32 = 25
	OIDUnknown     uint32 = 705
	OIDBpchar      uint32 = 1042
	OIDVarchar     uint32 = 1043
	OIDDate        uint32 = 1082
	OIDTimestamp   uint32 = 1114
	OIDTimestamptz uint32 = 1184
	OIDNumeric     uint32 = 1700
	OIDUUID        uint32 = 2950
)

// PostgresKind returns the kind of a column of a built-in type, None when its
// equality is not proven. deterministic is the column's collation's
// collisdeterministic; it matters to text only.
func PostgresKind(oid uint32, deterministic bool) Kind {
	switch oid {
	case OIDInt2, OIDInt4, OIDInt8:
		return Int
	case OIDNumeric:
		return Decimal
	case OIDText, OIDVarchar:
		if deterministic {
			return Bytes
		}
	case OIDBpchar:
		if deterministic {
			return BytesTrim
		}
	case OIDUUID:
		return UUID
	case OIDBool:
		return Bool
	case OIDDate:
		return Date
	case OIDBytea:
		return Bytea
	case OIDTimestamp:
		return DateTime
	case OIDTimestamptz:
		return Instant
	}
	return None
}

// Compares tells whether `column = parameter` has the meaning of kind's
// equality when the parameter was declared with this type (0: not declared, so
// it takes the column's type).
func Compares(kind Kind, oid uint32) bool {
	switch oid {
	case 0, OIDUnknown:
		return kind != None
	case OIDInt2, OIDInt4, OIDInt8:
		return kind == Int || kind == Decimal
	case OIDText, OIDVarchar:
		// bpchar = text strips the column's padding: fewer rows match than
		// BytesTrim says, never more.
		return kind == Bytes || kind == BytesTrim
	case OIDBpchar:
		// text = bpchar strips the parameter's padding, which Bytes keeps.
		return kind == BytesTrim
	}
	return kind != None && PostgresKind(oid, true) == kind
}

// AppendBinary appends the canonical form of a PostgreSQL binary value of the given
// type compared with a column of this kind. oid 0 means that the type was
// inferred from the column; the length then has to be one the kind can have.
func AppendBinary(kind Kind, dst []byte, oid uint32, data []byte) (canonical []byte, ok bool) {
	if oid == OIDUnknown {
		oid = 0
	}
	if !Compares(kind, oid) {
		return dst, false
	}
	switch oid {
	case OIDInt2, OIDInt4, OIDInt8:
		v, ok := intBinary(oid, data)
		if !ok {
			return dst, false
		}
		if kind == Decimal {
			return decimalInt(dst, v), true
		}
		return AppendInt(dst, v), true
	}
	switch kind {
	case Int:
		v, ok := intBinary(0, data)
		if !ok {
			return dst, false
		}
		return AppendInt(dst, v), true
	case Decimal:
		return numericBinary(dst, data)
	case Bytes, Bytea:
		return append(dst, data...), true
	case BytesTrim:
		return append(dst, trimPadding(data)...), true
	case UUID:
		return append(dst, data...), len(data) == 16
	case Bool:
		// boolrecv takes any byte but zero as true.
		if len(data) != 1 {
			return dst, false
		}
		return append(dst, min(data[0], 1)), true
	case Date:
		return dateBinary(dst, data)
	case DateTime, Instant:
		return momentBinary(dst, data)
	}
	return dst, false
}

// intBinary decodes int2, int4 or int8 as oid says, or by length for oid 0.
func intBinary(oid uint32, data []byte) (int64, bool) {
	switch {
	case len(data) == 2 && (oid == 0 || oid == OIDInt2):
		return int64(int16(binary.BigEndian.Uint16(data))), true
	case len(data) == 4 && (oid == 0 || oid == OIDInt4):
		return int64(int32(binary.BigEndian.Uint32(data))), true
	case len(data) == 8 && (oid == 0 || oid == OIDInt8):
		return int64(binary.BigEndian.Uint64(data)), true
	}
	return 0, false
}
