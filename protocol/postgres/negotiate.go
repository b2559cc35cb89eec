package postgres

// NegotiateProtocolVersion tells a client which minor version it gets and which
// of its protocol options are not known.
type NegotiateProtocolVersion struct {
	Newest  uint32 // the whole version, major and minor
	Unknown [][]byte
}

// Decode reads the body.
func (m *NegotiateProtocolVersion) Decode(body []byte) error {
	r := reader{rest: body}
	m.Newest = r.uint32()
	n := int(int32(r.uint32()))
	if n < 0 || n > len(r.rest) {
		r.fail(reasonShort)
		n = 0
	}
	m.Unknown = m.Unknown[:0]
	for range n {
		m.Unknown = append(m.Unknown, r.cstring())
	}
	return r.end(TypeNegotiateProtocolVersion)
}

// Append appends the whole message.
func (m *NegotiateProtocolVersion) Append(dst []byte) []byte {
	start := len(dst)
	dst = begin(dst, TypeNegotiateProtocolVersion)
	dst = appendUint32(dst, m.Newest)
	dst = appendUint32(dst, uint32(len(m.Unknown)))
	for _, name := range m.Unknown {
		dst = appendCString(dst, name)
	}
	return finish(dst, start)
}
