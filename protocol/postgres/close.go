package postgres

// Close drops a statement or a portal; one that is not there is no error.
type Close struct {
	Target byte
	Name   []byte
}

// Decode reads the body.
func (m *Close) Decode(body []byte) (err error) {
	m.Target, m.Name, err = decodeTarget(body, TypeClose, "invalid CLOSE message subtype")
	return err
}

// Append appends the whole message.
func (m *Close) Append(dst []byte) []byte {
	return appendTarget(dst, TypeClose, m.Target, m.Name)
}
