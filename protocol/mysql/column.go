package mysql

import "encoding/binary"

// Column describes one column of a result, or one parameter
// ("Protocol::ColumnDefinition41").
type Column struct {
	Schema, Table, OrgTable, Name, OrgName string
	Collation                              uint16
	Length                                 uint32 // bytes of the widest value
	Type                                   FieldType
	Flags                                  uint16
	Decimals                               uint8
	// Extended holds MariaDB's further words on the type, as they are sent: a
	// kind (0 name, 1 format), a length and a text for each.
	Extended string
}

// Append appends the payload for a peer with these capabilities.
func (c *Column) Append(dst []byte, caps Capability) []byte {
	dst = AppendLenencString(dst, "def")
	dst = AppendLenencString(dst, c.Schema)
	dst = AppendLenencString(dst, c.Table)
	dst = AppendLenencString(dst, c.OrgTable)
	dst = AppendLenencString(dst, c.Name)
	dst = AppendLenencString(dst, c.OrgName)
	if caps.Has(MariaDBExtendedMetadata) {
		dst = AppendLenencString(dst, c.Extended)
	}
	dst = append(dst, 0x0c)
	dst = binary.LittleEndian.AppendUint16(dst, c.Collation)
	dst = binary.LittleEndian.AppendUint32(dst, c.Length)
	dst = append(dst, byte(c.Type))
	dst = binary.LittleEndian.AppendUint16(dst, c.Flags)
	return append(dst, c.Decimals, 0, 0)
}

// DecodeColumn reads the payload; a default value after it (COM_FIELD_LIST) is
// left unread.
func DecodeColumn(p []byte, caps Capability) (Column, error) {
	r := reader{b: p}
	r.lenencString()
	c := Column{
		Schema:   string(r.lenencString()),
		Table:    string(r.lenencString()),
		OrgTable: string(r.lenencString()),
		Name:     string(r.lenencString()),
		OrgName:  string(r.lenencString()),
	}
	if caps.Has(MariaDBExtendedMetadata) {
		c.Extended = string(r.lenencString())
	}
	fixed := reader{b: r.lenencString(), bad: r.bad}
	c.Collation = fixed.u16()
	c.Length = fixed.u32()
	c.Type = FieldType(fixed.u8())
	c.Flags = fixed.u16()
	c.Decimals = fixed.u8()
	return c, fixed.check("column definition")
}

// TextColumn is a column of UTF-8 text, as made-up results use.
func TextColumn(name string) Column {
	return Column{Name: name, OrgName: name, Collation: CollationUTF8MB4, Length: 4 * 1024, Type: TypeVarString, Decimals: 31}
}

// IntColumn is a column of signed 64-bit integers.
func IntColumn(name string) Column {
	return Column{Name: name, OrgName: name, Collation: CollationBinary, Length: 21, Type: TypeLongLong, Flags: FlagBinary | FlagNumber}
}

// DoubleColumn is a column of 64-bit floating-point numbers.
func DoubleColumn(name string) Column {
	return Column{Name: name, OrgName: name, Collation: CollationBinary, Length: 23, Type: TypeDouble, Flags: FlagBinary | FlagNumber, Decimals: 31}
}
