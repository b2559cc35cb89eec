package canon

import "encoding/binary"

// maxDecimalText bounds the length of a decimal this package looks at: MySQL
// has 65 digits, and longer PostgreSQL numerics are rare enough to refuse.
const maxDecimalText = 160

// decimalText appends the canonical form of a plain decimal: sign unless zero,
// integer digits without leading zeros, a point and the fraction without
// trailing zeros. Exponents, NaN and infinities are refused.
func decimalText(dst, text []byte) ([]byte, bool) {
	negative, whole, fraction, ok := splitDecimal(text)
	if !ok {
		return dst, false
	}
	if negative && len(whole)+len(fraction) > 0 {
		dst = append(dst, '-')
	}
	dst = append(dst, whole...)
	if len(fraction) > 0 {
		dst = append(append(dst, '.'), fraction...)
	}
	return dst, true
}

// splitDecimal checks a plain decimal and returns its digits without the zeros
// that mean nothing.
func splitDecimal(text []byte) (negative bool, whole, fraction []byte, ok bool) {
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		negative = text[0] == '-'
		text = text[1:]
	}
	if len(text) == 0 || len(text) > maxDecimalText {
		return false, nil, nil, false
	}
	point := -1
	for i, c := range text {
		if c == '.' && point < 0 {
			point = i
		} else if c < '0' || c > '9' {
			return false, nil, nil, false
		}
	}
	whole = text
	if point >= 0 {
		whole, fraction = text[:point], text[point+1:]
		if len(whole)+len(fraction) == 0 {
			return false, nil, nil, false
		}
	}
	for len(whole) > 0 && whole[0] == '0' {
		whole = whole[1:]
	}
	for n := len(fraction); n > 0 && fraction[n-1] == '0'; n-- {
		fraction = fraction[:n-1]
	}
	return negative, whole, fraction, true
}

// DecimalDigits returns how many significant digits before and after the point
// a plain decimal has; ok is false when it is not one.
func DecimalDigits(text []byte) (whole, fraction int, ok bool) {
	_, w, f, ok := splitDecimal(text)
	return len(w), len(f), ok
}

// numericBinary decodes PostgreSQL's binary numeric (numeric_send in
// src/backend/utils/adt/numeric.c): int16 count of base-10000 digits, int16
// weight of the first, uint16 sign, uint16 display scale, then the digits.
func numericBinary(dst, data []byte) ([]byte, bool) {
	if len(data) < 8 {
		return dst, false
	}
	count := int(binary.BigEndian.Uint16(data))
	weight := int(int16(binary.BigEndian.Uint16(data[2:])))
	sign := binary.BigEndian.Uint16(data[4:])
	if len(data) != 8+2*count || (sign != 0 && sign != 0x4000) {
		return dst, false
	}
	// Bounds the text below maxDecimalText: four digits a group, both sides.
	if weight > 18 || weight < -18 || count-weight > 19 {
		return dst, false
	}
	digits := data[8:]
	var buffer [maxDecimalText]byte
	text := buffer[:0]
	if sign != 0 {
		text = append(text, '-')
	}
	ok := true
	group := func(i int) {
		v := 0
		if i >= 0 && i < count {
			v = int(binary.BigEndian.Uint16(digits[2*i:]))
		}
		ok = ok && v < 10000
		text = append(text, byte('0'+v/1000%10), byte('0'+v/100%10), byte('0'+v/10%10), byte('0'+v%10))
	}
	for place := max(weight, 0); place >= 0; place-- {
		group(weight - place)
	}
	text = append(text, '.')
	for place := -1; weight-place < count; place-- {
		group(weight - place)
	}
	if !ok {
		return dst, false
	}
	return decimalText(dst, text)
}
