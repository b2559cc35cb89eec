package postgres

import "bytes"

// The formats of a value.
const (
	FormatText   uint16 = 0
	FormatBinary uint16 = 1
)

// Bind makes a portal of a statement and its parameters.
type Bind struct {
	Portal, Statement []byte
	// ParamFormats and ResultFormats hold none (all text), one for all, or one
	// for each.
	ParamFormats  []uint16
	Params        [][]byte // nil is NULL
	ResultFormats []uint16
	// Tail is the body after the statement's name: all that decides an answer
	// besides the statement itself. Only Decode sets it.
	Tail []byte
}

// BindNames splits a body into its two names and the rest, without looking
// at the rest; ok is false when a name has no end.
func BindNames(body []byte) (portal, statement, tail []byte, ok bool) {
	r := reader{rest: body}
	portal = r.cstring()
	statement = r.cstring()
	return portal, statement, r.rest, r.reason == ""
}

// Decode reads the body. The number of parameters and of formats is only
// checked against each other where the protocol does (Bind's own rules);
// whether they fit the statement is for the server to say.
func (m *Bind) Decode(body []byte) error {
	r := reader{rest: body}
	m.Portal = r.cstring()
	m.Statement = r.cstring()
	m.Tail = r.rest
	m.ParamFormats = r.formats(m.ParamFormats[:0])
	m.Params = m.Params[:0]
	for range r.count(4) {
		m.Params = append(m.Params, r.value())
	}
	m.ResultFormats = r.formats(m.ResultFormats[:0])
	return r.end(TypeBind)
}

func (r *reader) formats(dst []uint16) []uint16 {
	for range r.count(2) {
		dst = append(dst, r.uint16())
	}
	return dst
}

// Append appends the whole message.
func (m *Bind) Append(dst []byte) []byte {
	start := len(dst)
	dst = appendCString(appendCString(begin(dst, TypeBind), m.Portal), m.Statement)
	dst = appendUint16s(dst, m.ParamFormats)
	dst = appendUint16(dst, uint16(len(m.Params)))
	for _, p := range m.Params {
		dst = appendValue(dst, p)
	}
	return finish(appendUint16s(dst, m.ResultFormats), start)
}

// AppendBindAs appends a Bind whose statement has another name: the portal and
// the tail are as BindNames found them.
func AppendBindAs(dst, portal, statement, tail []byte) []byte {
	start := len(dst)
	dst = appendCString(appendCString(begin(dst, TypeBind), portal), statement)
	return finish(append(dst, tail...), start)
}

// ParamFormat is the format of parameter i: the one given for all, its own, or
// text. ok is false when the formats do not fit the number of parameters.
func (m *Bind) ParamFormat(i int) (format uint16, ok bool) {
	switch len(m.ParamFormats) {
	case 0:
		return FormatText, true
	case 1:
		return m.ParamFormats[0], true
	case len(m.Params):
		return m.ParamFormats[i], true
	}
	return 0, false
}

// SameTail says whether two binds of one statement ask for the same answer.
func (m *Bind) SameTail(other *Bind) bool { return bytes.Equal(m.Tail, other.Tail) }
