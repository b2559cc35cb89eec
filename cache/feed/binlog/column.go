package binlog

import (
	"encoding/binary"
	"fmt"

	"freshet/cache/feed/cursor"
)

// ColumnType is a column's type code as row images use it.
type ColumnType byte

// The type codes of a table map event (MySQL manual, "Protocol::MYSQL_TYPE_*",
// and MariaDB's compressed columns).
const (
	TypeTiny           ColumnType = 1
	TypeShort          ColumnType = 2
	TypeLong           ColumnType = 3
	TypeFloat          ColumnType = 4
	TypeDouble         ColumnType = 5
	TypeNull           ColumnType = 6
	TypeTimestamp      ColumnType = 7
	TypeLongLong       ColumnType = 8
	TypeInt24          ColumnType = 9
	TypeDate           ColumnType = 10
	TypeTime           ColumnType = 11
	TypeDatetime       ColumnType = 12
	TypeYear           ColumnType = 13
	TypeVarchar        ColumnType = 15
	TypeBit            ColumnType = 16
	TypeTimestamp2     ColumnType = 17
	TypeDatetime2      ColumnType = 18
	TypeTime2          ColumnType = 19
	TypeBlobCompressed ColumnType = 140
	TypeVarCompressed  ColumnType = 141
	TypeVector         ColumnType = 242
	TypeJSON           ColumnType = 245
	TypeNewDecimal     ColumnType = 246
	TypeEnum           ColumnType = 247
	TypeSet            ColumnType = 248
	TypeBlob           ColumnType = 252
	TypeVarString      ColumnType = 253
	TypeString         ColumnType = 254
	TypeGeometry       ColumnType = 255
)

// Column is one column as a table map event describes it: Type is the real one
// (ENUM and SET are told from STRING), Meta its length, precision or the like.
type Column struct {
	Type ColumnType
	Meta uint16
}

// readMeta reads one column's piece of the metadata block.
func readMeta(c *cursor.Cursor, t ColumnType) (Column, error) {
	switch t {
	case TypeTiny, TypeShort, TypeLong, TypeNull, TypeTimestamp, TypeLongLong, TypeInt24,
		TypeDate, TypeTime, TypeDatetime, TypeYear:
		return Column{Type: t}, nil
	case TypeFloat, TypeDouble, TypeBlob, TypeBlobCompressed, TypeGeometry, TypeVector, TypeJSON,
		TypeTime2, TypeDatetime2, TypeTimestamp2:
		return Column{t, uint16(c.U8())}, nil
	case TypeVarchar, TypeVarCompressed, TypeVarString, TypeBit:
		return Column{t, c.Little16()}, nil
	case TypeNewDecimal:
		high, low := c.U8(), c.U8() // precision, scale
		return Column{t, uint16(high)<<8 | uint16(low)}, nil
	case TypeString:
		high, low := c.U8(), c.U8()
		return stringColumn(high, low), nil
	}
	return Column{}, fmt.Errorf("binlog: column type %d is not known", t)
}

// stringColumn undoes the packing of a STRING's two bytes: the real type, with
// bits 8 and 9 of a CHAR's length hidden, inverted, in its bits 4 and 5.
func stringColumn(high, low byte) Column {
	if high&0x30 != 0x30 {
		return Column{TypeString, uint16(low) | uint16(high&0x30^0x30)<<4}
	}
	switch ColumnType(high) {
	case TypeEnum, TypeSet:
		return Column{ColumnType(high), uint16(low)}
	}
	return Column{TypeString, uint16(low)}
}

// decimalBytes is how many bytes so many decimal digits take.
var decimalBytes = [10]int{0, 1, 1, 2, 2, 3, 3, 4, 4, 4}

// DecimalSize returns the length of a NEWDECIMAL, in bytes.
func DecimalSize(precision, scale int) (int, bool) {
	whole := precision - scale
	if whole < 0 || scale < 0 || precision > 65 {
		return 0, false
	}
	return whole/9*4 + decimalBytes[whole%9] + scale/9*4 + decimalBytes[scale%9], true
}

// measure returns where a value lies in data, which starts at the value: the
// length of its length prefix and of the value itself, in bytes.
func (col Column) measure(data []byte) (prefix, size int, err error) {
	meta := int(col.Meta)
	switch col.Type {
	case TypeNull:
		return 0, 0, nil
	case TypeTiny, TypeYear:
		return 0, 1, nil
	case TypeShort:
		return 0, 2, nil
	case TypeInt24, TypeDate, TypeTime:
		return 0, 3, nil
	case TypeLong, TypeFloat, TypeTimestamp:
		return 0, 4, nil
	case TypeLongLong, TypeDouble, TypeDatetime:
		return 0, 8, nil
	case TypeTimestamp2:
		return 0, 4 + (meta+1)/2, nil
	case TypeDatetime2:
		return 0, 5 + (meta+1)/2, nil
	case TypeTime2:
		return 0, 3 + (meta+1)/2, nil
	case TypeBit:
		return 0, (meta&0xff + 7 + meta>>8*8) / 8, nil
	case TypeEnum, TypeSet:
		return 0, meta, nil
	case TypeNewDecimal:
		n, ok := DecimalSize(meta>>8, meta&0xff)
		if !ok {
			return 0, 0, fmt.Errorf("binlog: DECIMAL(%d,%d) is not possible", meta>>8, meta&0xff)
		}
		return 0, n, nil
	case TypeVarchar, TypeVarString, TypeVarCompressed, TypeString:
		if meta < 256 {
			return prefixed(data, 1)
		}
		return prefixed(data, 2)
	case TypeBlob, TypeBlobCompressed, TypeGeometry, TypeVector, TypeJSON:
		return prefixed(data, meta)
	}
	return 0, 0, fmt.Errorf("binlog: column type %d is not known", col.Type)
}

func prefixed(data []byte, prefix int) (int, int, error) {
	if prefix < 1 || prefix > 4 || len(data) < prefix {
		return 0, 0, cursor.ErrShort
	}
	var word [4]byte
	copy(word[:], data[:prefix])
	return prefix, int(binary.LittleEndian.Uint32(word[:])), nil
}
