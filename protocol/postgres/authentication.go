package postgres

// AuthKind is the code that an Authentication message starts with.
type AuthKind uint32

const (
	AuthOK           AuthKind = 0
	AuthCleartext    AuthKind = 3
	AuthMD5          AuthKind = 5
	AuthSASL         AuthKind = 10
	AuthSASLContinue AuthKind = 11
	AuthSASLFinal    AuthKind = 12
)

// Authentication is any of the messages of type 'R'.
type Authentication struct {
	Kind AuthKind
	// Data is what follows the code: four bytes of salt for AuthMD5, the
	// mechanisms for AuthSASL (see AppendMechanisms), the mechanism's own data
	// for the two after it, else nothing.
	Data []byte
}

// Decode reads the body. Codes that are not named above pass as they are.
func (m *Authentication) Decode(body []byte) error {
	r := reader{rest: body}
	m.Kind = AuthKind(r.uint32())
	m.Data = r.take(len(r.rest))
	switch m.Kind {
	case AuthOK, AuthCleartext:
		if len(m.Data) != 0 {
			r.fail(reasonTrailing)
		}
	case AuthMD5:
		if len(m.Data) != 4 {
			r.fail(reasonShort)
		}
	}
	return r.end(TypeAuthentication)
}

// Append appends the whole message.
func (m *Authentication) Append(dst []byte) []byte {
	start := len(dst)
	dst = appendUint32(begin(dst, TypeAuthentication), uint32(m.Kind))
	return finish(append(dst, m.Data...), start)
}

// AppendMechanisms appends the Data of an AuthSASL message.
func AppendMechanisms(dst []byte, names ...string) []byte {
	for _, n := range names {
		dst = append(append(dst, n...), 0)
	}
	return append(dst, 0)
}
