package proxy

import "strings"

// The console's lexer: words, quoted names, strings, numbers and single
// characters of punctuation, each with its place in the text.
type lexer struct {
	text string
	pos  int
}

type tokenKind uint8

const (
	tokEnd tokenKind = iota
	tokWord
	tokName   // "quoted" or `quoted`
	tokString // 'quoted'
	tokNumber
	tokPunct
)

type token struct {
	kind tokenKind
	text string
	pos  int // 0-based byte
}

// is compares a word or punctuation without regard to case.
func (t token) is(word string) bool {
	return (t.kind == tokWord || t.kind == tokPunct) && strings.EqualFold(t.text, word)
}

func (l *lexer) scan() token {
	l.skipSpace()
	start := l.pos
	if start >= len(l.text) {
		return token{tokEnd, "", start}
	}
	c := l.text[start]
	switch {
	case c == '\'' || c == '"' || c == '`':
		return l.quoted(c)
	case isDigit(c):
		l.while(isDigit)
		return token{tokNumber, l.text[start:l.pos], start}
	case isWordByte(c):
		l.while(isWordByte)
		return token{tokWord, l.text[start:l.pos], start}
	}
	l.pos++
	return token{tokPunct, l.text[start:l.pos], start}
}

func (l *lexer) while(ok func(byte) bool) {
	for l.pos < len(l.text) && ok(l.text[l.pos]) {
		l.pos++
	}
}

// skipSpace passes white space and comments, but not the executable or hint
// kinds, which are the upstream's.
func (l *lexer) skipSpace() {
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		switch {
		case strings.IndexByte(" \t\r\n\f\v", rest[0]) >= 0:
			l.pos++
		case strings.HasPrefix(rest, "-- "), rest == "--":
			l.pos += lineEnd(rest)
		case strings.HasPrefix(rest, "/*") && !strings.HasPrefix(rest, "/*!") && !strings.HasPrefix(rest, "/*+"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return
			}
			l.pos += end + 4
		default:
			return
		}
	}
}

func lineEnd(s string) int {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return i
	}
	return len(s)
}

// quoted reads to the closing quote; a doubled quote stands for itself. A
// text that ends before is read to its end.
func (l *lexer) quoted(q byte) token {
	start := l.pos
	l.pos++
	var b strings.Builder
	for l.pos < len(l.text) {
		c := l.text[l.pos]
		l.pos++
		if c == q {
			if l.pos < len(l.text) && l.text[l.pos] == q {
				l.pos++
			} else {
				break
			}
		}
		b.WriteByte(c)
	}
	kind := tokName
	if q == '\'' {
		kind = tokString
	}
	return token{kind, b.String(), start}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWordByte(c byte) bool {
	return c == '_' || c == '$' || isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
