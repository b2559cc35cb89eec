package postgres

// DataRow is one row of an answer.
type DataRow struct{ Values [][]byte } // nil is NULL

// Decode reads the body.
func (m *DataRow) Decode(body []byte) error {
	r := reader{rest: body}
	m.Values = m.Values[:0]
	for range r.count(4) {
		m.Values = append(m.Values, r.value())
	}
	return r.end(TypeDataRow)
}

// Append appends the whole message.
func (m *DataRow) Append(dst []byte) []byte {
	start := len(dst)
	dst = appendUint16(begin(dst, TypeDataRow), uint16(len(m.Values)))
	for _, v := range m.Values {
		dst = appendValue(dst, v)
	}
	return finish(dst, start)
}
