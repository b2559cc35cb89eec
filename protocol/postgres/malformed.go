package postgres

import "fmt"

// MalformedError says that bytes are not the message they claim to be. The
// reason is worded as the server words its own protocol violations (SQLSTATE
// 08P01), so a session may pass it on.
type MalformedError struct {
	Type   byte // the message's type; 0 in the startup phase
	Reason string
}

func (e *MalformedError) Error() string {
	if e.Type == 0 {
		return "postgres: " + e.Reason
	}
	return fmt.Sprintf("postgres: message %q: %s", e.Type, e.Reason)
}

const (
	reasonShort    = "insufficient data left in message"
	reasonString   = "invalid string in message"
	reasonTrailing = "invalid message format"
)
