package scan

import "strings"

// postgres reads one token by the rules of src/backend/parser/scan.l.
func (s *Scanner) postgres() Token {
	c := s.text[s.pos]
	switch {
	case c == '/' && s.at(1) == '*':
		return s.hint()
	case c == '\'':
		return s.quotedAs(String, !s.opt.NoBackslash)
	case c == '"':
		return s.quotedAs(Quoted, false)
	case c == '$':
		return s.dollar()
	case isDigit(c) || c == '.' && isDigit(s.at(1)):
		return s.postgresNumber()
	case isNameStart(c):
		return s.postgresWord()
	}
	return s.postgresOp()
}

// postgresWord reads a name, or a string with a letter before its quote.
func (s *Scanner) postgresWord() Token {
	if s.at(1) == '\'' {
		switch s.at(0) {
		case 'e', 'E':
			s.pos++
			return s.quotedAs(String, true)
		case 'n', 'N':
			s.pos++
			return s.quotedAs(Bits, !s.opt.NoBackslash)
		case 'b', 'B', 'x', 'X':
			s.pos++
			return s.quotedAs(Bits, false)
		}
	}
	if c := s.at(0); (c == 'u' || c == 'U') && s.at(1) == '&' && (s.at(2) == '\'' || s.at(2) == '"') {
		s.pos += 2
		if s.at(0) == '"' {
			return s.quotedAs(Quoted, false)
		}
		return s.quotedAs(Bits, false)
	}
	s.word()
	return Token{Kind: Word}
}

// postgresNumber reads a number; 0x, 0o, 0b and underscores (PostgreSQL 16)
// make it one whose value this package does not tell.
func (s *Scanner) postgresNumber() Token {
	if c := s.at(1) | 0x20; s.at(0) == '0' && (c == 'x' || c == 'o' || c == 'b') {
		s.word()
		return Token{Kind: Float}
	}
	t := s.number()
	if isNameByte(s.at(0)) {
		s.word()
		t.Kind = Float
	}
	return t
}

// dollar reads $n or a dollar-quoted string.
func (s *Scanner) dollar() Token {
	if isDigit(s.at(1)) {
		s.pos++
		n := 0
		for ; isDigit(s.at(0)); s.pos++ {
			if n = n*10 + int(s.at(0)-'0'); n > 65535 {
				return Token{Kind: Broken}
			}
		}
		return Token{Kind: Param, Number: n}
	}
	end := s.pos + 1
	for end < len(s.text) && isNameByte(s.text[end]) && s.text[end] != '$' {
		end++
	}
	if end >= len(s.text) || s.text[end] != '$' {
		return Token{Kind: Broken}
	}
	tag := s.text[s.pos : end+1]
	n := strings.Index(s.text[end+1:], tag)
	if n < 0 {
		return Token{Kind: Broken}
	}
	s.pos = end + 1 + n + len(tag)
	return Token{Kind: String}
}

const (
	opBytes = "+-*/<>=~!@#%^&|`?"
	// opSpecial lets an operator end in + or - (manual, 4.1.3).
	opSpecial = "~!@#%^&|`?"
)

// maxOpBytes bounds a run of operator bytes: names have 63 bytes at most, and
// only a run of signs, of which each is an operator, can be longer. Each looks
// at the whole run.
const maxOpBytes = 256

// postgresOp reads an operator or a punctuation mark.
func (s *Scanner) postgresOp() Token {
	start, special := s.pos, false
	for s.pos < len(s.text) && strings.IndexByte(opBytes, s.text[s.pos]) >= 0 {
		if s.pos > start && (s.hasPrefix("--") || s.hasPrefix("/*")) {
			break
		}
		special = special || strings.IndexByte(opSpecial, s.text[s.pos]) >= 0
		if s.pos++; s.pos-start > maxOpBytes {
			return Token{Kind: Broken}
		}
	}
	if s.pos > start {
		for !special && s.pos > start+1 && (s.text[s.pos-1] == '+' || s.text[s.pos-1] == '-') {
			s.pos--
		}
		return Token{Kind: Op}
	}
	switch {
	case s.hasPrefix("::") || s.hasPrefix(":=") || s.hasPrefix(".."):
		s.pos += 2
	case strings.IndexByte("()[],;.:", s.text[s.pos]) >= 0:
		s.pos++
	default:
		return Token{Kind: Broken}
	}
	return Token{Kind: Op}
}
