package postgres

// What Describe and Close speak of.
const (
	TargetStatement byte = 'S'
	TargetPortal    byte = 'P'
)

// Describe asks what a statement's parameters and columns, or a portal's
// columns, are.
type Describe struct {
	Target byte
	Name   []byte
}

// Decode reads the body.
func (m *Describe) Decode(body []byte) (err error) {
	m.Target, m.Name, err = decodeTarget(body, TypeDescribe, "invalid DESCRIBE message subtype")
	return err
}

// Append appends the whole message.
func (m *Describe) Append(dst []byte) []byte {
	return appendTarget(dst, TypeDescribe, m.Target, m.Name)
}

func decodeTarget(body []byte, kind byte, wrong string) (byte, []byte, error) {
	r := reader{rest: body}
	target := r.byte()
	name := r.cstring()
	if r.reason == "" && target != TargetStatement && target != TargetPortal {
		r.reason = wrong
	}
	return target, name, r.end(kind)
}

func appendTarget(dst []byte, kind, target byte, name []byte) []byte {
	start := len(dst)
	return finish(appendCString(append(begin(dst, kind), target), name), start)
}
