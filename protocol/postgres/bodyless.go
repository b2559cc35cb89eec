package postgres

// Bodyless is a message that is its type byte and a length of four.
type Bodyless byte

// The client's: Flush, Sync and Terminate, and CopyDone from either side. The
// server's: the five completions and states that say nothing more.
const (
	Flush              = Bodyless(TypeFlush)
	Sync               = Bodyless(TypeSync)
	Terminate          = Bodyless(TypeTerminate)
	CopyDone           = Bodyless(TypeCopyDone)
	ParseComplete      = Bodyless(TypeParseComplete)
	BindComplete       = Bodyless(TypeBindComplete)
	CloseComplete      = Bodyless(TypeCloseComplete)
	NoData             = Bodyless(TypeNoData)
	PortalSuspended    = Bodyless(TypePortalSuspended)
	EmptyQueryResponse = Bodyless(TypeEmptyQueryResponse)
)

// Append appends the whole message.
func (m Bodyless) Append(dst []byte) []byte { return append(dst, byte(m), 0, 0, 0, 4) }

// Decode checks that there is no body.
func (m Bodyless) Decode(body []byte) error {
	r := reader{rest: body}
	return r.end(byte(m))
}
