package canon

import (
	"encoding/binary"
	"strconv"
)

// exactDouble is 2^53: below it every integer is one double, so comparing an
// integer column with a string (MySQL does that in doubles) is exact.
const exactDouble = 1 << 53

// exactDigits is how many decimal digits a double always keeps apart.
const exactDigits = 15

// MySQLColumn is what MySQL's rules of comparison ask of a column.
type MySQLColumn struct {
	Kind Kind
	// Digits is NUMERIC_PRECISION of a decimal column, DATETIME_PRECISION of a
	// DATETIME.
	Digits int
}

// moment gives a moment that was appended to dst from at on, if the column can
// hold it. One with more digits than the column equals nothing there, but
// MariaDB cuts them off when it looks into an index (seen on 10.11).
func (c MySQLColumn) moment(dst []byte, at int, ok bool) ([]byte, bool) {
	if !ok {
		return dst, false
	}
	step := uint64(1)
	for range 6 - min(max(c.Digits, 0), 6) {
		step *= 10
	}
	if binary.BigEndian.Uint64(dst[at:])%step != 0 {
		return dst[:at], false
	}
	return dst, true
}

// AppendMySQLInt appends a whole number, literal or integer parameter, compared with
// the column. Text compared with a number is done in doubles: refused.
func AppendMySQLInt(c MySQLColumn, dst []byte, magnitude uint64, negative bool) ([]byte, bool) {
	if negative && magnitude > 1<<63 {
		return dst, false
	}
	switch c.Kind {
	case Int:
		if negative {
			return AppendInt(dst, -int64(magnitude)), true
		}
		return AppendUint(dst, magnitude), true
	case Decimal:
		if negative && magnitude != 0 {
			dst = append(dst, '-')
		}
		return decimalUint(dst, magnitude), true
	}
	return dst, false
}

// AppendMySQLDecimal appends a decimal literal or NEWDECIMAL parameter compared with
// the column. More than 65 digits, or 30 after the point, would be rounded.
func AppendMySQLDecimal(c MySQLColumn, dst, text []byte) ([]byte, bool) {
	switch c.Kind {
	case Int:
		return intText(dst, text)
	case Decimal:
		whole, fraction, ok := DecimalDigits(text)
		if !ok || fraction > 30 || whole+fraction > 65 {
			return dst, false
		}
		return decimalText(dst, text)
	}
	return dst, false
}

// AppendMySQLString appends a string literal or parameter compared with the column.
// sameCharset says that the string's bytes are in the column's character set
// as they stand; otherwise only ASCII is taken. Numbers compare with strings
// as doubles, so they are taken only where doubles are exact.
func AppendMySQLString(c MySQLColumn, dst, text []byte, sameCharset bool) ([]byte, bool) {
	switch c.Kind {
	case Int:
		v, _, ok := parseInt(text)
		if !ok || text[0] == '+' || v >= exactDouble {
			return dst, false
		}
		return intText(dst, text)
	case Decimal:
		whole, fraction, ok := DecimalDigits(text)
		if !ok || whole+fraction > exactDigits || c.Digits < 1 || c.Digits > exactDigits {
			return dst, false
		}
		return decimalText(dst, text)
	case Bytes, BytesTrim, FoldASCII, FoldUTF8:
		if !sameCharset && !ASCII(text) {
			return dst, false
		}
		return AppendText(c.Kind, dst, text)
	case Date:
		return dateText(dst, text)
	case DateTime:
		at := len(dst)
		dst, ok := momentText(dst, text)
		return c.moment(dst, at, ok)
	}
	return dst, false
}

// MySQL field types (manual, "Protocol::MYSQL_TYPE_*"), as parameters carry
// them, and the flag that marks an unsigned one in COM_STMT_EXECUTE.
const (
	typeTiny       = 0x01
	typeShort      = 0x02
	typeLong       = 0x03
	typeLongLong   = 0x08
	typeInt24      = 0x09
	typeTimestamp  = 0x07
	typeDate       = 0x0a
	typeDateTime   = 0x0c
	typeVarchar    = 0x0f
	typeDecimal    = 0x00
	typeNewDecimal = 0xf6
	typeTinyBlob   = 0xf9
	typeMediumBlob = 0xfa
	typeLongBlob   = 0xfb
	typeBlob       = 0xfc
	typeVarString  = 0xfd
	typeString     = 0xfe

	// FlagUnsigned is set in the type of an unsigned parameter.
	FlagUnsigned = 0x8000
)

// AppendMySQLParam appends a binary-protocol parameter compared with the column.
// data is the value alone, without the length that strings carry on the wire.
// sameCharset is AppendMySQLString's.
func AppendMySQLParam(c MySQLColumn, dst []byte, fieldType uint32, data []byte, sameCharset bool) ([]byte, bool) {
	unsigned := fieldType&FlagUnsigned != 0
	switch fieldType &^ FlagUnsigned {
	case typeTiny, typeShort, typeLong, typeInt24, typeLongLong:
		magnitude, negative, ok := mysqlInt(fieldType&^FlagUnsigned, unsigned, data)
		if !ok {
			return dst, false
		}
		return AppendMySQLInt(c, dst, magnitude, negative)
	case typeDecimal, typeNewDecimal:
		return AppendMySQLDecimal(c, dst, data)
	case typeVarchar, typeVarString, typeString, typeTinyBlob, typeMediumBlob, typeLongBlob, typeBlob:
		return AppendMySQLString(c, dst, data, sameCharset)
	case typeDate, typeDateTime, typeTimestamp:
		return appendMySQLMoment(c, dst, data)
	}
	return dst, false
}

// appendMySQLMoment appends a DATE, DATETIME or TIMESTAMP parameter. A DATE
// column compares with one as its day's midnight.
func appendMySQLMoment(c MySQLColumn, dst, data []byte) ([]byte, bool) {
	year, month, day, hour, minute, second, micros, ok := mysqlMoment(data)
	switch {
	case ok && c.Kind == DateTime:
		at := len(dst)
		dst, ok = AppendMoment(dst, year, month, day, hour, minute, second, micros)
		return c.moment(dst, at, ok)
	case ok && c.Kind == Date && hour|minute|second|micros == 0:
		return appendDate(dst, year, month, day)
	}
	return dst, false
}

// ParamClass groups parameter types that MySQL compares alike, so that an IN
// list of mixed ones, which it may compare as doubles, can be told.
type ParamClass uint8

const (
	ClassNone ParamClass = iota // not comparable exactly
	ClassNumber
	ClassString
	ClassDate
)

// ParamClassOf returns the class of a binary-protocol parameter's type.
func ParamClassOf(fieldType uint32) ParamClass {
	switch fieldType &^ FlagUnsigned {
	case typeTiny, typeShort, typeLong, typeInt24, typeLongLong, typeDecimal, typeNewDecimal:
		return ClassNumber
	case typeVarchar, typeVarString, typeString, typeTinyBlob, typeMediumBlob, typeLongBlob, typeBlob:
		return ClassString
	case typeDate, typeDateTime, typeTimestamp:
		return ClassDate
	}
	return ClassNone
}

// mysqlInt decodes an integer parameter; its length must be the type's.
func mysqlInt(fieldType uint32, unsigned bool, data []byte) (magnitude uint64, negative, ok bool) {
	var v uint64
	var bits uint
	switch {
	case fieldType == typeTiny && len(data) == 1:
		v, bits = uint64(data[0]), 8
	case fieldType == typeShort && len(data) == 2:
		v, bits = uint64(binary.LittleEndian.Uint16(data)), 16
	case (fieldType == typeLong || fieldType == typeInt24) && len(data) == 4:
		v, bits = uint64(binary.LittleEndian.Uint32(data)), 32
	case fieldType == typeLongLong && len(data) == 8:
		v, bits = binary.LittleEndian.Uint64(data), 64
	default:
		return 0, false, false
	}
	if unsigned || v>>(bits-1) == 0 {
		return v, false, true
	}
	return -(v | ^uint64(0)<<(bits-1)), true, true
}

func decimalInt(dst []byte, v int64) []byte {
	if v < 0 {
		return decimalUint(append(dst, '-'), -uint64(v))
	}
	return decimalUint(dst, uint64(v))
}

// decimalUint writes a whole number as decimalText would: zero has no digits.
func decimalUint(dst []byte, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return strconv.AppendUint(dst, v, 10)
}
