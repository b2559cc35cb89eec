package postgres

// Parse makes a prepared statement; the empty name is the unnamed one.
type Parse struct {
	Name, Text []byte
	OIDs       []uint32 // declared parameter types, 0 for one left open
}

// Decode reads the body.
func (m *Parse) Decode(body []byte) error {
	r := reader{rest: body}
	m.Name = r.cstring()
	m.Text = r.cstring()
	m.OIDs = m.OIDs[:0]
	for range r.count(4) {
		m.OIDs = append(m.OIDs, r.uint32())
	}
	return r.end(TypeParse)
}

// Append appends the whole message.
func (m *Parse) Append(dst []byte) []byte {
	start := len(dst)
	dst = appendCString(appendCString(begin(dst, TypeParse), m.Name), m.Text)
	dst = appendUint16(dst, uint16(len(m.OIDs)))
	for _, oid := range m.OIDs {
		dst = appendUint32(dst, oid)
	}
	return finish(dst, start)
}
