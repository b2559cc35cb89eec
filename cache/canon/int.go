package canon

import "encoding/binary"

// Canonical integers are nine bytes: a sign byte, then the value's two's
// complement, so that a signed and an unsigned column agree on every value
// both can hold and 2^64-1 never meets -1.
const (
	signNegative byte = 0
	signPositive byte = 1
)

// AppendInt appends the canonical form of a signed integer.
func AppendInt(dst []byte, v int64) []byte {
	sign := signPositive
	if v < 0 {
		sign = signNegative
	}
	return binary.BigEndian.AppendUint64(append(dst, sign), uint64(v))
}

// AppendUint appends the canonical form of an unsigned integer.
func AppendUint(dst []byte, v uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, signPositive), v)
}

// intText appends the canonical form of a strict decimal integer: an optional
// sign and 1 to 20 digits, nothing else. What both dialects also read as an
// integer (white space, hexadecimal, underscores, exponents) is refused.
func intText(dst, text []byte) ([]byte, bool) {
	v, negative, ok := parseInt(text)
	if !ok {
		return dst, false
	}
	if !negative {
		return AppendUint(dst, v), true
	}
	if v > 1<<63 {
		return dst, false
	}
	return AppendInt(dst, -int64(v)), true // -(1<<63) wraps onto itself, which is right
}

// parseInt reads a strict decimal integer as magnitude and sign; "-0" is 0.
func parseInt(text []byte) (magnitude uint64, negative, ok bool) {
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		negative = text[0] == '-'
		text = text[1:]
	}
	if len(text) == 0 || len(text) > 20 {
		return 0, false, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false, false
		}
		d := uint64(c - '0')
		if magnitude > (1<<64-1-d)/10 {
			return 0, false, false
		}
		magnitude = magnitude*10 + d
	}
	return magnitude, negative && magnitude != 0, true
}
