// Package scan reads SQL text as tokens, without a grammar: enough to tell
// literals from names in either dialect, to normalise a statement and to
// split a text into statements. It never fails: what it cannot read ends the
// scan as Broken.
package scan

// Options say how text is to be read.
type Options struct {
	Postgres bool
	// AnsiQuotes makes "x" an identifier (MySQL's ANSI_QUOTES; always so in
	// PostgreSQL).
	AnsiQuotes bool
	// NoBackslash makes a backslash an ordinary byte in '…' (MySQL's
	// NO_BACKSLASH_ESCAPES, PostgreSQL's standard_conforming_strings).
	NoBackslash bool
}

// Kind is the kind of a token.
type Kind uint8

const (
	End      Kind = iota
	Word          // name or keyword without quotes
	Quoted        // name in quotes
	String        // string that is its own value: '…', "…", E'…', N'…', $$…$$
	Bits          // bit or hexadecimal string: x'…', b'…', 0x…, U&'…'
	Integer       // decimal digits only
	Decimal       // digits with a point, no exponent
	Float         // number with an exponent, hexadecimal or underscored number
	Param         // ? or $n
	Variable      // @x, @@x
	Op            // operator or punctuation
	Hint          // /*+ … */
	Exec          // opening of an executable comment: /*!, /*M!
	Broken        // an unterminated string or comment, or a byte no token begins with
)

// Token is one token: text[Start:End].
type Token struct {
	Kind       Kind
	Start, End int
	// Number is n of $n.
	Number int
}

// Scanner reads tokens from left to right.
type Scanner struct {
	text string
	opt  Options
	pos  int
	// exec counts executable comments that are open; their closing is skipped.
	exec int
	// join tells MySQL's scanner what ends right before pos, because after
	// `t.` even digits are a name.
	join join
}

type join uint8

const (
	joinNone  join = iota
	joinName       // a name, and a point follows
	joinPoint      // the point after it
)

// New returns a scanner over text.
func New(text string, opt Options) *Scanner { return &Scanner{text: text, opt: opt} }

// Next returns the next token; at the end, and after Broken, always End.
func (s *Scanner) Next() Token {
	if broken := s.skipBlank(); broken {
		return s.broken()
	}
	if s.pos >= len(s.text) {
		if s.exec > 0 {
			s.exec = 0
			return Token{Kind: Broken, Start: s.pos, End: s.pos}
		}
		return Token{Kind: End, Start: s.pos, End: s.pos}
	}
	start := s.pos
	before := s.join
	s.join = joinNone
	var t Token
	if s.opt.Postgres {
		t = s.postgres()
	} else {
		t = s.mysql(before)
	}
	t.Start, t.End = start, s.pos
	if t.Kind == Broken {
		s.pos = len(s.text)
	}
	return t
}

func (s *Scanner) broken() Token {
	t := Token{Kind: Broken, Start: s.pos, End: len(s.text)}
	s.pos, s.exec = len(s.text), 0
	return t
}

// at returns the byte i after the current one, 0 past the end.
func (s *Scanner) at(i int) byte {
	if s.pos+i < len(s.text) {
		return s.text[s.pos+i]
	}
	return 0
}

func (s *Scanner) hasPrefix(p string) bool {
	return len(s.text)-s.pos >= len(p) && s.text[s.pos:s.pos+len(p)] == p
}

// skipBlank skips white space and comments that are neither hints nor
// executable; true means that a comment does not end.
func (s *Scanner) skipBlank() (broken bool) {
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; {
		case c == ' ' || c >= '\t' && c <= '\r':
			s.pos++
		case c == '-' && s.at(1) == '-' && (s.opt.Postgres || s.pos+2 == len(s.text) || s.at(2) <= ' '):
			s.skipLine()
		case c == '#' && !s.opt.Postgres:
			s.skipLine()
		case c == '*' && s.exec > 0 && s.at(1) == '/':
			s.exec--
			s.pos += 2
		case c == '/' && s.at(1) == '*':
			if s.at(2) == '+' || !s.opt.Postgres && (s.at(2) == '!' || s.at(2) == 'M' && s.at(3) == '!') {
				return false
			}
			if !s.skipComment() {
				return true
			}
		default:
			return false
		}
		s.join = joinNone
	}
	return false
}

func (s *Scanner) skipLine() {
	for s.pos < len(s.text) && s.text[s.pos] != '\n' {
		s.pos++
	}
}

// skipComment skips a block comment at pos; PostgreSQL's nest.
func (s *Scanner) skipComment() bool {
	depth := 0
	for i := s.pos; i+1 < len(s.text); i++ {
		switch {
		case s.text[i] == '/' && s.text[i+1] == '*' && (depth == 0 || s.opt.Postgres):
			depth++
			i++
		case s.text[i] == '*' && s.text[i+1] == '/':
			depth--
			i++
			if depth == 0 {
				s.pos = i + 1
				return true
			}
		}
	}
	return false
}

// quoted skips a quoted thing that begins at pos; a doubled quote stands for
// one, and a backslash takes the next byte with it if it escapes.
func (s *Scanner) quoted(escapes bool) bool {
	quote := s.text[s.pos]
	for i := s.pos + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '\\' && escapes:
			i++
		case c == quote:
			if i+1 < len(s.text) && s.text[i+1] == quote {
				i++
				continue
			}
			s.pos = i + 1
			return true
		}
	}
	return false
}

func (s *Scanner) quotedAs(k Kind, escapes bool) Token {
	if !s.quoted(escapes) {
		return Token{Kind: Broken}
	}
	return Token{Kind: k}
}

// number skips a number at pos: digits, point, exponent.
func (s *Scanner) number() Token {
	kind := Integer
	s.digits()
	if s.at(0) == '.' && !(s.opt.Postgres && s.at(1) == '.') {
		s.pos++
		s.digits()
		kind = Decimal
	}
	if c := s.at(0); c == 'e' || c == 'E' {
		n := 1
		if c := s.at(1); c == '+' || c == '-' {
			n = 2
		}
		if isDigit(s.at(n)) {
			s.pos += n
			s.digits()
			kind = Float
		}
	}
	return Token{Kind: kind}
}

func (s *Scanner) digits() {
	for isDigit(s.at(0)) {
		s.pos++
	}
}

func (s *Scanner) word() {
	for isNameByte(s.at(0)) {
		s.pos++
	}
}

// hint skips /*+ … */ as one token, whose inside is not SQL.
func (s *Scanner) hint() Token {
	if !s.skipComment() {
		return Token{Kind: Broken}
	}
	return Token{Kind: Hint}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNameStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func isNameByte(c byte) bool { return isNameStart(c) || isDigit(c) || c == '$' }
