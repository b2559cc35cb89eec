package proxy

import (
	"bytes"
	"strings"
)

// MayTransact is a quick look, for every statement: whether a text may be one
// that begins or ends a transaction, in either dialect.
func MayTransact(text []byte) bool {
	if len(text) < 3 {
		return false
	}
	switch text[0] | 0x20 {
	case 'a', 'b', 'c', 'e', 'r': // ABORT, BEGIN, COMMIT, END, ROLLBACK
		return true
	case 's': // START
		return text[1]|0x20 == 't'
	}
	return false
}

// PlainWords splits a text of nothing but letters and the given separators into
// words in lower case; a comma among those is a word of its own. Any other byte
// makes it none.
func PlainWords(text []byte, separators string) []string {
	var words []string
	start := -1
	end := func(i int) {
		if start >= 0 {
			words = append(words, string(bytes.ToLower(text[start:i])))
			start = -1
		}
	}
	for i, c := range text {
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			if start < 0 {
				start = i
			}
		case strings.IndexByte(separators, c) < 0:
			return nil
		default:
			end(i)
			if c == ',' {
				words = append(words, ",")
			}
		}
	}
	end(len(text))
	return words
}
