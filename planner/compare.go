package planner

import (
	"freshet/cache/canon"
	"freshet/planner/scan"
)

// value appends the canonical form of one value that is compared with a column.
func (b *binding) value(dst []byte, c *column, s *source, params []Param) ([]byte, bool) {
	slot := b.slots[s.slot]
	if slot < 0 {
		l := &b.literals[^slot]
		if l.Unread {
			return dst, false
		}
		if b.postgres {
			return b.postgresLiteral(dst, c, s, l)
		}
		return b.mysqlLiteral(dst, c, l)
	}
	if int(slot) >= len(params) {
		return dst, false
	}
	p := &params[slot]
	if p.Null {
		return dst, false // `= NULL` matches nothing; a key for it is not worth having
	}
	if b.postgres {
		oid := p.Type
		if int(slot) < len(b.declared) && b.declared[slot] != 0 {
			oid = b.declared[slot]
		}
		return b.postgresParam(dst, c, s, p, oid)
	}
	return canon.AppendMySQLParam(c.compare, dst, p.Type, p.Data, sameCharset(b.charset, c.charset))
}

// alike tells whether the members of an IN list, or the bounds of a BETWEEN, are
// of one class: MySQL may compare a mixed list as doubles.
func (b *binding) alike(sources []source, params []Param) bool {
	if b.postgres || len(sources) < 2 {
		return true
	}
	class := canon.ClassNone
	for i := range sources {
		k := b.classOf(&sources[i], params)
		if k == canon.ClassNone || class != canon.ClassNone && k != class {
			return false
		}
		class = k
	}
	return true
}

func (b *binding) classOf(s *source, params []Param) canon.ParamClass {
	slot := b.slots[s.slot]
	switch {
	case slot >= 0 && int(slot) < len(params):
		return canon.ParamClassOf(params[slot].Type)
	case slot >= 0:
		return canon.ClassNone
	}
	switch b.literals[^slot].Kind {
	case scan.Integer, scan.Decimal:
		return canon.ClassNumber
	case scan.String:
		return canon.ClassString
	}
	return canon.ClassNone
}

func (b *binding) mysqlLiteral(dst []byte, c *column, l *scan.Literal) ([]byte, bool) {
	switch l.Kind {
	case scan.String:
		return canon.AppendMySQLString(c.compare, dst, []byte(l.Value), sameCharset(b.charset, c.charset))
	case scan.Integer, scan.Decimal:
		return canon.AppendMySQLDecimal(c.compare, dst, signed(l))
	}
	return dst, false
}

// signed is a number's text with its sign.
func signed(l *scan.Literal) []byte {
	if l.Negative {
		return append([]byte{'-'}, l.Value...)
	}
	return []byte(l.Value)
}

// utf8Encoding tells whether client_encoding is UTF-8, in which row images are
// read too.
func utf8Encoding(charset string) bool {
	return charset == "UTF8" || charset == "utf8" || charset == "UTF-8" || charset == "utf-8" || charset == "UNICODE"
}

// readable tells whether a string's bytes are those of row images.
func (b *binding) readable(kind canon.Kind, text []byte) bool {
	return !kind.IsText() || utf8Encoding(b.charset) || canon.ASCII(text)
}

func (b *binding) postgresLiteral(dst []byte, c *column, s *source, l *scan.Literal) ([]byte, bool) {
	kind := c.compare.Kind
	switch l.Kind {
	case scan.String:
		// A string without a cast takes the column's type.
		text := []byte(l.Value)
		if !canon.Compares(kind, s.cast) || !b.readable(kind, text) {
			return dst, false
		}
		if castKind := canon.PostgresKind(s.cast, true); s.cast != 0 && castKind != kind && !castKind.IsText() {
			// Such as decimal = '5'::int: both have to take the text alike.
			if _, ok := canon.AppendText(castKind, nil, text); !ok {
				return dst, false
			}
		}
		return canon.AppendText(kind, dst, text)
	case scan.Integer, scan.Decimal:
		if kind != canon.Int && kind != canon.Decimal {
			return dst, false
		}
		text := signed(l)
		if s.cast != 0 {
			castKind := canon.PostgresKind(s.cast, true)
			if castKind != canon.Int && castKind != canon.Decimal || castKind == canon.Int && l.Kind == scan.Decimal || !canon.Compares(kind, s.cast) {
				return dst, false
			}
		}
		return canon.AppendText(kind, dst, text)
	}
	return dst, false
}

// postgresParam appends a parameter of type oid, 0 if that was left to the
// server.
func (b *binding) postgresParam(dst []byte, c *column, s *source, p *Param, oid uint32) ([]byte, bool) {
	kind := c.compare.Kind
	if oid == canon.OIDUnknown {
		oid = 0
	}
	if oid == 0 && s.shared {
		return dst, false
	}
	if s.cast != 0 {
		if oid != 0 && oid != s.cast {
			return dst, false
		}
		oid = s.cast
	}
	if !canon.Compares(kind, oid) || !b.readable(kind, p.Data) {
		return dst, false
	}
	if p.Binary {
		return canon.AppendBinary(kind, dst, oid, p.Data)
	}
	return canon.AppendText(kind, dst, p.Data)
}
