package postgres

// ParameterDescription tells the types of a statement's parameters.
type ParameterDescription struct{ OIDs []uint32 }

// Decode reads the body.
func (m *ParameterDescription) Decode(body []byte) error {
	r := reader{rest: body}
	m.OIDs = m.OIDs[:0]
	for range r.count(4) {
		m.OIDs = append(m.OIDs, r.uint32())
	}
	return r.end(TypeParameterDescription)
}

// Append appends the whole message.
func (m *ParameterDescription) Append(dst []byte) []byte {
	start := len(dst)
	dst = appendUint16(begin(dst, TypeParameterDescription), uint16(len(m.OIDs)))
	for _, oid := range m.OIDs {
		dst = appendUint32(dst, oid)
	}
	return finish(dst, start)
}
