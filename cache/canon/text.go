package canon

import "encoding/hex"

// AppendText appends the canonical form of a value in the text form of its own
// column type: what PostgreSQL's output functions write (ISO DateStyle, hex
// bytea_output, any integer or numeric), and the strict part of what its input
// functions and MySQL's literals accept. ok is false when the value's equality
// is not proven from these bytes.
//
// Strings are taken as they are: the caller must know that the bytes are in
// the column's character set, or hold only ASCII (see ASCII).
func AppendText(kind Kind, dst, text []byte) (canonical []byte, ok bool) {
	switch kind {
	case Int:
		return intText(dst, text)
	case Decimal:
		return decimalText(dst, text)
	case Bytes:
		return append(dst, text...), true
	case BytesTrim:
		return append(dst, trimPadding(text)...), true
	case FoldASCII:
		return foldASCII(dst, text)
	case FoldUTF8:
		return foldUTF8(dst, text)
	case UUID:
		return uuidText(dst, text)
	case Bool:
		return boolText(dst, text)
	case Date:
		return dateText(dst, text)
	case Bytea:
		return byteaText(dst, text)
	case DateTime:
		return momentText(dst, text)
	case Instant:
		return instantText(dst, text)
	}
	return dst, false
}

// ASCII tells whether text has only bytes below 0x80, which every character
// set this package's callers allow writes alike.
func ASCII(text []byte) bool {
	for _, c := range text {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

func trimPadding(text []byte) []byte {
	for n := len(text); n > 0 && (text[n-1] == ' ' || text[n-1] == 0); n-- {
		text = text[:n-1]
	}
	return text
}

func foldASCII(dst, text []byte) ([]byte, bool) {
	for n := len(text); n > 0 && text[n-1] == ' '; n-- {
		text = text[:n-1]
	}
	start := len(dst)
	for _, c := range text {
		if c < 0x20 || c > 0x7E {
			return dst[:start], false
		}
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst, true
}

// uuidText accepts 8-4-4-4-12 and 32 bare digits, in either case, with or
// without braces (PostgreSQL manual, 8.12); the rarer hyphenations are refused.
func uuidText(dst, text []byte) ([]byte, bool) {
	if n := len(text); n > 2 && text[0] == '{' && text[n-1] == '}' {
		text = text[1 : n-1]
	}
	var digits [32]byte
	switch len(text) {
	case 32:
		copy(digits[:], text)
	case 36:
		if text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
			return dst, false
		}
		copy(digits[:8], text[:8])
		copy(digits[8:12], text[9:13])
		copy(digits[12:16], text[14:18])
		copy(digits[16:20], text[19:23])
		copy(digits[20:], text[24:])
	default:
		return dst, false
	}
	var value [16]byte
	if n, err := hex.Decode(value[:], digits[:]); err != nil || n != len(value) {
		return dst, false
	}
	return append(dst, value[:]...), true
}

func boolText(dst, text []byte) ([]byte, bool) {
	switch string(text) {
	case "t", "true", "TRUE":
		return append(dst, 1), true
	case "f", "false", "FALSE":
		return append(dst, 0), true
	}
	return dst, false
}

// byteaText accepts the hex format only (PostgreSQL manual, 8.4.1), without
// the white space that the input function would skip.
func byteaText(dst, text []byte) ([]byte, bool) {
	if len(text) < 2 || text[0] != '\\' || text[1] != 'x' {
		return dst, false
	}
	start := len(dst)
	out, err := hex.AppendDecode(dst, text[2:])
	if err != nil {
		return out[:start], false
	}
	return out, true
}
