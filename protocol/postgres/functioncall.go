package postgres

// FunctionCall runs one function by OID, as libpq's large objects do.
type FunctionCall struct {
	Function     uint32
	ArgFormats   []uint16
	Args         [][]byte // nil is NULL
	ResultFormat uint16
}

// Decode reads the body.
func (m *FunctionCall) Decode(body []byte) error {
	r := reader{rest: body}
	m.Function = r.uint32()
	m.ArgFormats = r.formats(m.ArgFormats[:0])
	m.Args = m.Args[:0]
	for range r.count(4) {
		m.Args = append(m.Args, r.value())
	}
	m.ResultFormat = r.uint16()
	return r.end(TypeFunctionCall)
}

// Append appends the whole message.
func (m *FunctionCall) Append(dst []byte) []byte {
	start := len(dst)
	dst = appendUint32(begin(dst, TypeFunctionCall), m.Function)
	dst = appendUint16s(dst, m.ArgFormats)
	dst = appendUint16(dst, uint16(len(m.Args)))
	for _, a := range m.Args {
		dst = appendValue(dst, a)
	}
	return finish(appendUint16(dst, m.ResultFormat), start)
}

// FunctionCallResponse is the function's result.
type FunctionCallResponse struct{ Result []byte } // nil is NULL

// Decode reads the body.
func (m *FunctionCallResponse) Decode(body []byte) error {
	r := reader{rest: body}
	m.Result = r.value()
	return r.end(TypeFunctionCallResponse)
}

// Append appends the whole message.
func (m *FunctionCallResponse) Append(dst []byte) []byte {
	start := len(dst)
	return finish(appendValue(begin(dst, TypeFunctionCallResponse), m.Result), start)
}
