package postgres

// Query runs a text of one or more statements.
type Query struct{ Text []byte }

// Decode reads the body.
func (m *Query) Decode(body []byte) error {
	r := reader{rest: body}
	m.Text = r.cstring()
	return r.end(TypeQuery)
}

// Append appends the whole message.
func (m *Query) Append(dst []byte) []byte {
	start := len(dst)
	return finish(appendCString(begin(dst, TypeQuery), m.Text), start)
}
