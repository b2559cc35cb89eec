package mysql

import (
	"encoding/binary"
	"fmt"
)

// ServerError is the packet that ends a statement badly ("ERR_Packet"). It is
// a Go error too.
type ServerError struct {
	Number  uint16
	State   string // 5 characters; "" when the server sent none
	Message string
}

// Error gives the text in the form that clients print.
func (e ServerError) Error() string {
	return fmt.Sprintf("ERROR %d (%s): %s", e.Number, e.State, e.Message)
}

// Errno is the error's number, for those who know no more of it than that.
func (e ServerError) Errno() uint16 { return e.Number }

// Append appends the payload for a client with these capabilities; 0 for one
// that has not answered the handshake yet, to which no state is sent.
func (e *ServerError) Append(dst []byte, caps Capability) []byte {
	dst = append(dst, headerERR)
	dst = binary.LittleEndian.AppendUint16(dst, e.Number)
	if caps.Has(ClientProtocol41) {
		state := e.State
		if len(state) != 5 {
			state = "HY000"
		}
		dst = append(append(dst, '#'), state...)
	}
	return append(dst, e.Message...)
}

// DecodeError reads the payload. The state is recognised by its mark, not by
// the capabilities: a server that refuses at once sends none, or sends one unasked.
func DecodeError(p []byte, _ Capability) (ServerError, error) {
	r := reader{b: p}
	header := r.u8()
	e := ServerError{Number: r.u16()}
	if r.bad || header != headerERR {
		return ServerError{}, malformed("ERR packet")
	}
	if len(r.b) >= 6 && r.b[0] == '#' {
		r.take(1)
		e.State = string(r.take(5))
	}
	e.Message = string(r.rest())
	return e, nil
}
