package postgres

// CopyResponse starts a COPY: CopyInResponse, CopyOutResponse or
// CopyBothResponse, told apart by the type.
type CopyResponse struct {
	Type    byte
	Format  byte     // of the whole: 0 text, 1 binary
	Columns []uint16 // each column's format
}

// Decode reads the body; Type must have been set to the message's type.
func (m *CopyResponse) Decode(body []byte) error {
	r := reader{rest: body}
	m.Format = r.byte()
	m.Columns = r.formats(m.Columns[:0])
	return r.end(m.Type)
}

// Append appends the whole message.
func (m *CopyResponse) Append(dst []byte) []byte {
	start := len(dst)
	return finish(appendUint16s(append(begin(dst, m.Type), m.Format), m.Columns), start)
}
