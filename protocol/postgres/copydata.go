package postgres

// CopyData is a piece of a COPY's data, cut anywhere. Any body is well-formed.
type CopyData struct{ Data []byte }

// Decode reads the body.
func (m *CopyData) Decode(body []byte) error {
	m.Data = body
	return nil
}

// Append appends the whole message.
func (m *CopyData) Append(dst []byte) []byte {
	start := len(dst)
	return finish(append(begin(dst, TypeCopyData), m.Data...), start)
}

// CopyFail is the client giving up a COPY FROM, and why.
type CopyFail struct{ Reason []byte }

// Decode reads the body.
func (m *CopyFail) Decode(body []byte) error {
	r := reader{rest: body}
	m.Reason = r.cstring()
	return r.end(TypeCopyFail)
}

// Append appends the whole message.
func (m *CopyFail) Append(dst []byte) []byte {
	start := len(dst)
	return finish(appendCString(begin(dst, TypeCopyFail), m.Reason), start)
}
