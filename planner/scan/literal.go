package scan

import "strings"

// decode works out the value of a string token. unread is true when the value
// needs rules this package does not have (numeric and Unicode escapes).
func decode(raw string, opt Options) (value string, unread bool) {
	if opt.Postgres {
		switch raw[0] {
		case '$':
			tag := strings.IndexByte(raw[1:], '$') + 2
			return raw[tag : len(raw)-tag], false
		case 'e', 'E':
			return unquote(raw[1:], true, true)
		}
		return unquote(raw, !opt.NoBackslash, true)
	}
	return unquote(raw, !opt.NoBackslash, false)
}

// unquote takes off the quotes, undoubles doubled ones and resolves the
// single-letter escapes both dialects agree on.
func unquote(raw string, escapes, postgres bool) (value string, unread bool) {
	quote, inside := raw[0], raw[1:len(raw)-1]
	if strings.IndexByte(inside, quote) < 0 && (!escapes || strings.IndexByte(inside, '\\') < 0) {
		return inside, false
	}
	var b strings.Builder
	b.Grow(len(inside))
	for i := 0; i < len(inside); i++ {
		c := inside[i]
		switch {
		case c == quote:
			i++ // the second of two
		case c == '\\' && escapes:
			i++
			if i >= len(inside) {
				return "", true
			}
			var ok bool
			if c, ok = escaped(inside[i], postgres); !ok {
				return "", true
			}
		}
		b.WriteByte(c)
	}
	return b.String(), false
}

// escaped is the byte a backslash and c stand for (MySQL manual, 11.1.1;
// PostgreSQL manual, 4.1.2.2).
func escaped(c byte, postgres bool) (byte, bool) {
	switch c {
	case 'n':
		return '\n', true
	case 't':
		return '\t', true
	case 'r':
		return '\r', true
	case 'b':
		return '\b', true
	case '\\', '\'', '"':
		return c, true
	}
	if postgres {
		// \f, octal, \x, \u and the rest.
		return 0, false
	}
	switch c {
	case '0':
		return 0, true
	case 'Z':
		return 26, true
	case '%', '_':
		// These keep their backslash outside of patterns.
		return 0, false
	}
	return c, true
}
