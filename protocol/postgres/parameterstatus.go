package postgres

// ParameterStatus tells a setting that the server reports, at the start and
// whenever it changes.
type ParameterStatus struct{ Name, Value []byte }

// Decode reads the body.
func (m *ParameterStatus) Decode(body []byte) error {
	r := reader{rest: body}
	m.Name = r.cstring()
	m.Value = r.cstring()
	return r.end(TypeParameterStatus)
}

// Append appends the whole message.
func (m *ParameterStatus) Append(dst []byte) []byte {
	start := len(dst)
	return finish(appendCString(appendCString(begin(dst, TypeParameterStatus), m.Name), m.Value), start)
}
