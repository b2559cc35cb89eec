package postgres

// SASLInitialResponse names the client's mechanism and may carry its first data.
type SASLInitialResponse struct {
	Mechanism []byte
	Data      []byte // nil: none was sent
}

// Decode reads the body.
func (m *SASLInitialResponse) Decode(body []byte) error {
	r := reader{rest: body}
	m.Mechanism = r.cstring()
	m.Data = r.value()
	return r.end(TypePassword)
}

// Append appends the whole message.
func (m *SASLInitialResponse) Append(dst []byte) []byte {
	start := len(dst)
	dst = appendCString(begin(dst, TypePassword), m.Mechanism)
	return finish(appendValue(dst, m.Data), start)
}

// SASLResponse carries data of the mechanism. Any body is well-formed.
type SASLResponse struct{ Data []byte }

// Decode reads the body.
func (m *SASLResponse) Decode(body []byte) error {
	m.Data = body
	return nil
}

// Append appends the whole message.
func (m *SASLResponse) Append(dst []byte) []byte {
	start := len(dst)
	return finish(append(begin(dst, TypePassword), m.Data...), start)
}
