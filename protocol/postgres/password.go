package postgres

// PasswordMessage answers a request for a cleartext or an md5 password.
type PasswordMessage struct{ Password []byte }

// Decode reads the body.
func (m *PasswordMessage) Decode(body []byte) error {
	r := reader{rest: body}
	m.Password = r.cstring()
	return r.end(TypePassword)
}

// Append appends the whole message.
func (m *PasswordMessage) Append(dst []byte) []byte {
	start := len(dst)
	return finish(appendCString(begin(dst, TypePassword), m.Password), start)
}
