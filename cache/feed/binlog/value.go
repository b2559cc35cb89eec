package binlog

import "encoding/binary"

// Int reads an integer's raw value; YEAR is one. ok is false for any other type.
func (col Column) Int(raw []byte, unsigned bool) (magnitude uint64, negative, ok bool) {
	width := 0
	switch col.Type {
	case TypeTiny:
		width = 1
	case TypeShort:
		width = 2
	case TypeInt24:
		width = 3
	case TypeLong:
		width = 4
	case TypeLongLong:
		width = 8
	case TypeYear:
		if len(raw) != 1 {
			return 0, false, false
		}
		if raw[0] == 0 {
			return 0, false, true
		}
		return 1900 + uint64(raw[0]), false, true
	}
	if width == 0 || len(raw) != width {
		return 0, false, false
	}
	var word [8]byte
	copy(word[:], raw)
	v := binary.LittleEndian.Uint64(word[:])
	if unsigned || v>>(8*width-1) == 0 {
		return v, false, true
	}
	return -(v | ^uint64(0)<<(8*width-1)), true, true
}

// AppendDate appends a DATE as YYYY-MM-DD, zero dates included.
func (col Column) AppendDate(dst, raw []byte) ([]byte, bool) {
	if col.Type != TypeDate || len(raw) != 3 {
		return dst, false
	}
	v := int(raw[0]) | int(raw[1])<<8 | int(raw[2])<<16
	year, month, day := v>>9, v>>5&15, v&31
	digits := func(n int) byte { return byte('0' + n%10) }
	return append(dst, digits(year/1000), digits(year/100), digits(year/10), digits(year), '-',
		digits(month/10), digits(month), '-', digits(day/10), digits(day)), true
}

// Moment is a DATETIME's day and time, as written: zero parts are possible.
type Moment struct{ Year, Month, Day, Hour, Minute, Second, Micros int }

// Datetime reads a DATETIME2: five bytes, big-endian, of a sign bit that is
// always set, 17 bits of year*13+month, 5 of day, 5 of hour, 6 of minute and 6
// of second; then the fraction as a number of hundredths, ten-thousandths or
// millionths of one, two or three bytes
// (my_datetime_packed_from_binary in sql-common/my_time.cc). ok is false for
// any other type, the older DATETIME among them.
func (col Column) Datetime(raw []byte) (m Moment, ok bool) {
	digits := int(col.Meta)
	if col.Type != TypeDatetime2 || digits > 6 || len(raw) != 5+(digits+1)/2 || raw[0]&0x80 == 0 {
		return Moment{}, false
	}
	v := uint64(raw[0]&0x7f)<<32 | uint64(binary.BigEndian.Uint32(raw[1:]))
	months := int(v >> 22)
	m = Moment{Year: months / 13, Month: months % 13, Day: int(v >> 17 & 31),
		Hour: int(v >> 12 & 31), Minute: int(v >> 6 & 63), Second: int(v & 63)}
	for _, b := range raw[5:] {
		m.Micros = m.Micros<<8 | int(b)
	}
	m.Micros *= [4]int{1, 10_000, 100, 1}[len(raw)-5]
	return m, true
}

// AppendDecimal appends a NEWDECIMAL as text, with all the digits of its
// scale. The format keeps nine digits in four bytes, big-endian, the rest of
// either side in as few bytes as hold them; the first bit is set for a positive
// number, and all bits of a negative one are inverted (decimal2bin in
// strings/decimal.cc).
func (col Column) AppendDecimal(dst, raw []byte) ([]byte, bool) {
	precision, scale := int(col.Meta>>8), int(col.Meta&0xff)
	size, ok := DecimalSize(precision, scale)
	if col.Type != TypeNewDecimal || !ok || size != len(raw) || size == 0 {
		return dst, false
	}
	var buf [40]byte
	copy(buf[:], raw)
	number := buf[:size]
	negative := number[0]&0x80 == 0
	number[0] ^= 0x80
	if negative {
		for i := range number {
			number[i] ^= 0xff
		}
		dst = append(dst, '-')
	}
	whole := precision - scale
	group := func(digits int) {
		n := decimalBytes[digits]
		var v uint32
		for _, b := range number[:n] {
			v = v<<8 | uint32(b)
		}
		number = number[n:]
		var text [10]byte
		for i := digits - 1; i >= 0; i-- {
			text[i] = byte('0' + v%10)
			v /= 10
		}
		ok = ok && v == 0
		dst = append(dst, text[:digits]...)
	}
	group(whole % 9)
	for range whole / 9 {
		group(9)
	}
	if whole == 0 {
		dst = append(dst, '0')
	}
	if scale > 0 {
		dst = append(dst, '.')
	}
	for range scale / 9 {
		group(9)
	}
	group(scale % 9)
	return dst, ok
}

// IsString tells whether a value is a string as the column holds it.
func (col Column) IsString() bool {
	switch col.Type {
	case TypeVarchar, TypeVarString, TypeString, TypeBlob:
		return true
	}
	return false
}
