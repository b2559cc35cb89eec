package postgres

// Execute runs a portal.
type Execute struct {
	Portal  []byte
	MaxRows uint32 // 0: no limit; the server takes a negative number as none, too
}

// Unlimited says whether all rows are asked for.
func (m *Execute) Unlimited() bool { return int32(m.MaxRows) <= 0 }

// Decode reads the body.
func (m *Execute) Decode(body []byte) error {
	r := reader{rest: body}
	m.Portal = r.cstring()
	m.MaxRows = r.uint32()
	return r.end(TypeExecute)
}

// Append appends the whole message.
func (m *Execute) Append(dst []byte) []byte {
	start := len(dst)
	dst = appendCString(begin(dst, TypeExecute), m.Portal)
	return finish(appendUint32(dst, m.MaxRows), start)
}
