package postgres

// TxStatus is the transaction's state as ReadyForQuery tells it.
type TxStatus byte

const (
	TxIdle   TxStatus = 'I'
	TxOpen   TxStatus = 'T'
	TxFailed TxStatus = 'E'
)

// ReadyForQuery ends the answer to a Query, a FunctionCall or a Sync.
type ReadyForQuery struct{ Status TxStatus }

// Decode reads the body.
func (m *ReadyForQuery) Decode(body []byte) error {
	r := reader{rest: body}
	m.Status = TxStatus(r.byte())
	if r.reason == "" && m.Status != TxIdle && m.Status != TxOpen && m.Status != TxFailed {
		r.fail("invalid transaction status")
	}
	return r.end(TypeReadyForQuery)
}

// Append appends the whole message.
func (m *ReadyForQuery) Append(dst []byte) []byte {
	return append(dst, TypeReadyForQuery, 0, 0, 0, 5, byte(m.Status))
}
