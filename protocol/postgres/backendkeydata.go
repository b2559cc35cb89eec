package postgres

// The bounds of a cancellation key: 4 bytes is all that protocol 3.0 has; 3.2
// allows up to 256.
const (
	minKeyLen = 4
	maxKeyLen = 256
)

// BackendKeyData is what a client must show to cancel its statements.
type BackendKeyData struct {
	ProcessID uint32
	Secret    []byte
}

// Decode reads the body.
func (m *BackendKeyData) Decode(body []byte) error {
	r := reader{rest: body}
	m.ProcessID = r.uint32()
	m.Secret = r.take(len(r.rest))
	if r.reason == "" && (len(m.Secret) < minKeyLen || len(m.Secret) > maxKeyLen) {
		r.fail("invalid length of cancellation key")
	}
	return r.end(TypeBackendKeyData)
}

// Append appends the whole message.
func (m *BackendKeyData) Append(dst []byte) []byte {
	start := len(dst)
	dst = appendUint32(begin(dst, TypeBackendKeyData), m.ProcessID)
	return finish(append(dst, m.Secret...), start)
}
