package scan

import "strings"

// mysql reads one token by the rules of MySQL's manual, chapter 11, and of
// MariaDB's where they differ. before tells what ends right before it.
func (s *Scanner) mysql(before join) Token {
	c := s.text[s.pos]
	switch {
	case c == '.' && before == joinName:
		s.pos++
		s.join = joinPoint
		return Token{Kind: Op}
	case c == '/' && s.at(1) == '*':
		return s.mysqlComment()
	case c == '\'':
		return s.quotedAs(String, !s.opt.NoBackslash)
	case c == '"':
		if s.opt.AnsiQuotes {
			return s.quotedName()
		}
		return s.quotedAs(String, !s.opt.NoBackslash)
	case c == '`':
		return s.quotedName()
	case c == '?':
		s.pos++
		return Token{Kind: Param}
	case c == '@':
		return s.variable()
	case isNameStart(c) || c == '$' || before == joinPoint && isDigit(c):
		return s.mysqlWord()
	case isDigit(c) || c == '.' && isDigit(s.at(1)):
		return s.mysqlNumber()
	}
	return s.mysqlOp()
}

// mysqlComment reads a hint or the opening of an executable comment with its
// version number.
func (s *Scanner) mysqlComment() Token {
	if s.at(2) == '+' {
		return s.hint()
	}
	if s.at(2) == 'M' {
		s.pos++
	}
	s.pos += 3
	s.digits()
	s.exec++
	return Token{Kind: Exec}
}

func (s *Scanner) quotedName() Token {
	t := s.quotedAs(Quoted, false)
	if t.Kind == Quoted {
		s.named()
	}
	return t
}

// named notes that a name ends at pos.
func (s *Scanner) named() {
	if s.at(0) == '.' {
		s.join = joinName
	}
}

// mysqlWord reads a name, or a string with a letter before its quote.
func (s *Scanner) mysqlWord() Token {
	if s.at(1) == '\'' {
		switch s.at(0) {
		case 'n', 'N':
			s.pos++
			return s.quotedAs(Bits, !s.opt.NoBackslash)
		case 'b', 'B', 'x', 'X':
			s.pos++
			return s.quotedAs(Bits, false)
		}
	}
	s.word()
	s.named()
	return Token{Kind: Word}
}

// mysqlNumber reads a number, or a name that begins with digits.
func (s *Scanner) mysqlNumber() Token {
	if c := s.at(1); s.at(0) == '0' && (c == 'x' || c == 'b') {
		s.word()
		return Token{Kind: Bits}
	}
	start := s.pos
	t := s.number()
	if isNameByte(s.at(0)) {
		if t.Kind == Decimal {
			return Token{Kind: Broken}
		}
		s.pos = start
		s.word()
		s.named()
		t.Kind = Word
	}
	return t
}

// variable reads @x, @'x', @@x or @@scope.x; a lone @ is an operator, as in
// user@host.
func (s *Scanner) variable() Token {
	s.pos++
	if s.at(0) == '@' {
		s.pos++
	}
	switch c := s.at(0); {
	case c == '\'' || c == '"' || c == '`':
		return s.quotedAs(Variable, false)
	case isNameByte(c) || c == '.':
		for isNameByte(s.at(0)) || s.at(0) == '.' {
			s.pos++
		}
		return Token{Kind: Variable}
	}
	return Token{Kind: Op}
}

var mysqlOps = []string{"<=>", "->>", "<=", ">=", "<>", "!=", ":=", "||", "&&", "<<", ">>", "->"}

func (s *Scanner) mysqlOp() Token {
	for _, op := range mysqlOps {
		if s.hasPrefix(op) {
			s.pos += len(op)
			return Token{Kind: Op}
		}
	}
	if strings.IndexByte("()[]{},;.:=<>!+-*/%^&|~", s.text[s.pos]) < 0 {
		return Token{Kind: Broken}
	}
	s.pos++
	return Token{Kind: Op}
}
