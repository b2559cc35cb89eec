package canon

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
)

// MySQL and MariaDB turn a value that is looked for in an index into the
// column's type first, and compare it as it is with the rows of a scan. For a
// value that the column cannot hold exactly the two may find other rows:
// '2024-01-01 00:00:00.5' in a DATETIME of whole seconds, 1.5 in an INT. What
// follows tells such values, as far as servers were seen to differ.

// HeldKind is what kind of values a column holds.
type HeldKind uint8

const (
	// HeldAny: nothing is known to be found in two ways.
	HeldAny HeldKind = iota
	HeldText
	HeldBytes
	HeldName // ENUM, SET
	HeldBits
	// HeldNumber: numbers with so many digits after the point.
	HeldNumber
	// HeldSingle and HeldDouble: FLOAT and DOUBLE.
	HeldSingle
	HeldDouble
	HeldYear
	HeldDay
	// HeldMoment and HeldClock: DATETIME and TIMESTAMP, TIME, with so many digits
	// of a fraction.
	HeldMoment
	HeldClock
)

// Held is what values a MySQL column holds.
type Held struct {
	Kind     HeldKind
	Digits   int
	Unsigned bool
	// Wide tells of numbers that a double does not have: beyond 2^53, or of more
	// than 15 digits.
	Wide bool
	// Rounded tells of FLOAT(M,D) and DOUBLE(M,D).
	Rounded bool
	// Stamp tells of TIMESTAMP, which ends in 2038.
	Stamp bool
}

// HeldUse is what else matters of a comparison.
type HeldUse struct {
	// Ordered: it is <, <=, > or >=. Between: it is BETWEEN, Low: its lower bound.
	Ordered, Between, Low bool
	// Extremes: MIN or MAX may look for the ends of an index.
	Extremes bool
	// Part: the value is a part of what is computed for the comparison.
	Part bool
	// Product: its digits add up with those of another part.
	Product bool
	// Inner: a subquery returns it, and what is odd is read in another way.
	Inner bool
}

// digits is how many digits are held.
func (h Held) digits(use HeldUse) int {
	if use.Product {
		return 0
	}
	return h.Digits
}

// HoldsText tells whether a string is compared with the column alike in every way.
func (h Held) HoldsText(text []byte, use HeldUse) bool {
	if use.Part {
		return h.holdsPart(text, use)
	}
	switch h.Kind {
	case HeldNumber:
		return h.number(text, use)
	case HeldSingle:
		return single(text)
	case HeldYear:
		v, ok := parseWhole(text)
		return ok && v >= 1901 && v <= 2155
	case HeldBits:
		return false // bytes or a number, as it comes
	case HeldName:
		return !use.Extremes || !use.Ordered && !use.Between
	case HeldDay:
		return h.moment(text, use) && (timeless(text) || (use.Ordered || use.Between && !use.Low) && !use.Extremes)
	case HeldMoment:
		return h.moment(text, use)
	case HeldClock:
		return !use.Inner && clockText(text) && fractionDigits(text) <= h.digits(use)
	}
	return true
}

// HoldsNumber is HoldsText for a number as it is written.
func (h Held) HoldsNumber(text []byte, use HeldUse) bool {
	if use.Part && h.Kind != HeldYear {
		return bytes.IndexByte(text, 'e') < 0 && bytes.IndexByte(text, 'E') < 0 && fractionDigits(text) <= h.digits(use)
	}
	v, whole := parseWhole(text)
	switch h.Kind {
	case HeldBits:
		return whole && v >= 0
	case HeldName:
		return false // the number of a member, or its name
	case HeldDay:
		return whole && v >= 0 && v <= 99991231
	case HeldMoment:
		return use.Ordered && !use.Extremes || fractionDigits(text) <= h.digits(use)
	case HeldClock:
		const most = 8385959 // 838:59:59
		return whole && v >= -most && v <= most
	}
	return h.HoldsText(text, use)
}

// WholeText writes a whole number that came as a binary-protocol parameter.
func WholeText(fieldType uint32, data []byte) (text []byte, ok bool) {
	magnitude, negative, ok := mysqlInt(fieldType&^FlagUnsigned, fieldType&FlagUnsigned != 0, data)
	if negative {
		text = append(text, '-')
	}
	return strconv.AppendUint(text, magnitude, 10), ok
}

// HoldsParam is HoldsText for a binary-protocol parameter, see AppendMySQLParam.
func (h Held) HoldsParam(fieldType uint32, data []byte, use HeldUse) bool {
	var buffer [64]byte
	switch t := fieldType &^ FlagUnsigned; t {
	case typeTiny, typeShort, typeLong, typeInt24, typeLongLong:
		magnitude, negative, ok := mysqlInt(t, fieldType&FlagUnsigned != 0, data)
		if !ok {
			return false
		}
		text := buffer[:0]
		if negative {
			text = append(text, '-')
		}
		return h.HoldsNumber(strconv.AppendUint(text, magnitude, 10), use)
	case typeFloat, typeDouble:
		text, ok := floatText(buffer[:0], t, data)
		return ok && h.HoldsNumber(text, use)
	case typeDecimal, typeNewDecimal:
		return h.HoldsNumber(data, use)
	case typeDate, typeDateTime, typeTimestamp:
		text, ok := appendMomentText(buffer[:0], data)
		return ok && h.HoldsText(text, use)
	case typeTime:
		text, ok := appendClockText(buffer[:0], data)
		return ok && h.HoldsText(text, use)
	}
	return h.HoldsText(data, use)
}

// IsMySQLTime tells whether a binary-protocol parameter is a time of day.
func IsMySQLTime(fieldType uint32) bool { return fieldType&^FlagUnsigned == typeTime }

// IsMySQLFloat tells whether a binary-protocol parameter is a FLOAT or DOUBLE.
func IsMySQLFloat(fieldType uint32) bool {
	return fieldType&^FlagUnsigned == typeFloat || fieldType&^FlagUnsigned == typeDouble
}

// FloatText writes a binary-protocol FLOAT or DOUBLE, "" for what is none.
func FloatText(fieldType uint32, data []byte) string {
	text, _ := floatText(nil, fieldType&^FlagUnsigned, data)
	return string(text)
}

const (
	typeFloat  = 0x04
	typeDouble = 0x05
	typeTime   = 0x0b
)

// number looks at the number that a string begins with: what follows it draws
// a warning, and no answer with one is kept.
func (h Held) number(text []byte, use HeldUse) bool {
	text = bytes.TrimLeft(text, " \t\n\r\v\f")
	sign := len(text) > 0 && (text[0] == '-' || text[0] == '+')
	negative := sign && text[0] == '-'
	if sign {
		text = text[1:]
	}
	i := 0
	for i < len(text) && (text[i] >= '0' && text[i] <= '9' || text[i] == '.') {
		i++
	}
	switch {
	case i < len(text) && text[i]|0x20 == 'e' && i > 0:
		return false
	case h.Unsigned && negative && (use.Extremes || h.Wide) && len(bytes.Trim(text[:i], "0.")) > 0:
		return false
	}
	return fractionDigits(text[:i]) <= h.digits(use)
}

// single tells whether a number is one that FLOAT has.
func single(text []byte) bool {
	v, err := strconv.ParseFloat(string(text), 64)
	return err == nil && float64(float32(v)) == v
}

// moment tells whether text is a moment that is read alike everywhere, or
// nothing but zeros, and fine enough.
func (h Held) moment(text []byte, use HeldUse) bool {
	var buffer [8]byte
	if _, ok := momentText(buffer[:0], text); ok {
		loose := use.Ordered && !use.Extremes
		if h.Stamp && !loose && (string(text[:10]) < "1970-01-03" || string(text[:10]) > "2038-01-17") {
			return false
		}
		return h.Kind == HeldDay || loose || fractionDigits(text) <= h.digits(use)
	}
	if use.Inner {
		return false
	}
	const zero, minutes = "0000-00-00 00:00:00.000000", len("2024-01-01 00:00")
	if len(text) >= 10 && len(text) <= len(zero) && string(text) == zero[:len(text)] {
		return true
	}
	if len(text) == minutes {
		_, ok := momentText(buffer[:0], append(append(make([]byte, 0, 20), text...), ":00"...))
		return ok
	}
	return false
}

// timeless tells whether a moment is a day's midnight.
func timeless(text []byte) bool {
	return len(text) == 10 || len(bytes.Trim(text[10:], "0:. T")) == 0
}

// clockText accepts what is a time and nothing else: digits, with minutes and
// seconds after colons, and a fraction.
func clockText(text []byte) bool {
	if len(text) > 0 && text[0] == '-' {
		text = text[1:]
	}
	colons, digits := 0, 0
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c == ':' && colons < 2 && digits > 0:
			colons, digits = colons+1, 0
		case c == '.' && digits > 0:
			return len(bytes.Trim(text[i+1:], "0123456789")) == 0
		default:
			return false
		}
	}
	return digits > 0 && (colons > 0 || digits <= 7)
}

// holdsPart is HoldsText for a string that something is computed from: no part
// may have what the column cannot hold.
func (h Held) holdsPart(text []byte, use HeldUse) bool {
	if bytes.Contains(text, []byte("%f")) {
		return false // a format that reads or writes microseconds
	}
	switch h.Kind {
	case HeldNumber, HeldMoment, HeldClock:
		return fractionDigits(text) <= h.digits(use)
	case HeldDay:
		return fractionDigits(text) == 0 && (len(text) <= 10 && bytes.IndexByte(text, ':') < 0 || len(text) > 10 && timeless(text))
	case HeldYear:
		return false
	}
	return true
}

// fractionDigits counts the digits that begin right after the last point, zeros
// at their end aside.
func fractionDigits(text []byte) int {
	fraction := text[bytes.LastIndexByte(text, '.')+1:]
	if len(fraction) == len(text) {
		return 0
	}
	n := 0
	for i, c := range fraction {
		if c < '0' || c > '9' {
			break
		}
		if c != '0' {
			n = i + 1
		}
	}
	return n
}

// Finer tells whether text may be a moment with a fraction of a second, for
// what is compared with something of which nothing is known.
func Finer(text []byte) bool {
	return bytes.IndexByte(text, ':') >= 0 && fractionDigits(text) > 0
}

// parseWhole reads a small whole number.
func parseWhole(text []byte) (int64, bool) {
	if len(text) > 18 {
		return 0, false
	}
	v, err := strconv.ParseInt(string(text), 10, 64)
	return v, err == nil
}

func floatText(dst []byte, fieldType uint32, data []byte) ([]byte, bool) {
	switch {
	case fieldType == typeFloat && len(data) == 4:
		return strconv.AppendFloat(dst, float64(math.Float32frombits(binary.LittleEndian.Uint32(data))), 'f', -1, 64), true
	case fieldType == typeDouble && len(data) == 8:
		return strconv.AppendFloat(dst, math.Float64frombits(binary.LittleEndian.Uint64(data)), 'f', -1, 64), true
	}
	return dst, false
}

// appendMomentText writes a binary DATE, DATETIME or TIMESTAMP parameter.
func appendMomentText(dst, data []byte) ([]byte, bool) {
	year, month, day, hour, minute, second, micros, ok := mysqlMoment(data)
	if len(data) == 0 {
		ok = true // all zeros
	}
	dst = append(padded(dst, year, 4), '-')
	dst = append(padded(dst, month, 2), '-')
	dst = append(padded(dst, day, 2), ' ')
	return appendClock(dst, hour, minute, second, micros), ok
}

// appendClockText writes a binary TIME parameter (MySQL manual, "Binary Protocol
// Value"): sign, days, hour, minute, second, microseconds.
func appendClockText(dst, data []byte) ([]byte, bool) {
	switch len(data) {
	case 0:
		return appendClock(dst, 0, 0, 0, 0), true
	case 8, 12:
	default:
		return dst, false
	}
	micros := 0
	if len(data) == 12 {
		micros = int(binary.LittleEndian.Uint32(data[8:]))
	}
	if data[0] != 0 {
		dst = append(dst, '-')
	}
	hours := int(binary.LittleEndian.Uint32(data[1:]))*24 + int(data[5])
	return appendClock(dst, hours, int(data[6]), int(data[7]), micros), true
}

func appendClock(dst []byte, hour, minute, second, micros int) []byte {
	dst = append(padded(dst, hour, 2), ':')
	dst = append(padded(dst, minute, 2), ':')
	dst = append(padded(dst, second, 2), '.')
	return padded(dst, micros, 6)
}

// padded writes a number with zeros before it.
func padded(dst []byte, n, width int) []byte {
	for limit := 10; width > 1; width-- {
		if n < limit {
			for range width - 1 {
				dst = append(dst, '0')
			}
			break
		}
		limit *= 10
	}
	return strconv.AppendInt(dst, int64(n), 10)
}
