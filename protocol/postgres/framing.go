package postgres

import "encoding/binary"

// The type byte of each message. Some letters mean one thing from the client
// and another from the server, so the two directions have names of their own.
const (
	TypeBind         byte = 'B'
	TypeClose        byte = 'C'
	TypeCopyFail     byte = 'f'
	TypeDescribe     byte = 'D'
	TypeExecute      byte = 'E'
	TypeFlush        byte = 'H'
	TypeFunctionCall byte = 'F'
	TypeParse        byte = 'P'
	TypePassword     byte = 'p' // also the SASL responses
	TypeQuery        byte = 'Q'
	TypeSync         byte = 'S'
	TypeTerminate    byte = 'X'

	// Both directions.
	TypeCopyData byte = 'd'
	TypeCopyDone byte = 'c'

	TypeAuthentication           byte = 'R'
	TypeBackendKeyData           byte = 'K'
	TypeBindComplete             byte = '2'
	TypeCloseComplete            byte = '3'
	TypeCommandComplete          byte = 'C'
	TypeCopyBothResponse         byte = 'W'
	TypeCopyInResponse           byte = 'G'
	TypeCopyOutResponse          byte = 'H'
	TypeDataRow                  byte = 'D'
	TypeEmptyQueryResponse       byte = 'I'
	TypeErrorResponse            byte = 'E'
	TypeFunctionCallResponse     byte = 'V'
	TypeNegotiateProtocolVersion byte = 'v'
	TypeNoData                   byte = 'n'
	TypeNoticeResponse           byte = 'N'
	TypeNotificationResponse     byte = 'A'
	TypeParameterDescription     byte = 't'
	TypeParameterStatus          byte = 'S'
	TypeParseComplete            byte = '1'
	TypePortalSuspended          byte = 's'
	TypeReadyForQuery            byte = 'Z'
	TypeRowDescription           byte = 'T'
)

const (
	// HeaderLen is the type byte and the length that precede each body.
	HeaderLen = 5
	// MaxMessageLen bounds the length field of an ordinary message: the
	// server's own limit, one byte less than a gibibyte (PQ_LARGE_MESSAGE_LIMIT).
	MaxMessageLen = 1<<30 - 1
	// MaxSmallLen bounds the messages that carry no data, before and during
	// authentication above all (PQ_SMALL_MESSAGE_LIMIT).
	MaxSmallLen = 10000
	// MaxStartupLen bounds a startup packet (MAX_STARTUP_PACKET_LENGTH).
	MaxStartupLen = 10000
)

// Header reads the type and the body's length of the message that buf starts
// with. ok is false while the five bytes are not all there, which is no fault.
// maxLen bounds the length field; beyond it, or under its own four bytes, the
// message is malformed and the stream cannot be followed any further.
func Header(buf []byte, maxLen int) (kind byte, bodyLen int, ok bool, err error) {
	if len(buf) < HeaderLen {
		return 0, 0, false, nil
	}
	length := binary.BigEndian.Uint32(buf[1:])
	if length < 4 || int64(length) > int64(maxLen) {
		return buf[0], 0, false, &MalformedError{Type: buf[0], Reason: "invalid message length"}
	}
	return buf[0], int(length) - 4, true, nil
}

// Next frames the message that buf starts with, in place. size is how many
// bytes of buf it takes; it is 0, without an error, while the message is
// incomplete. The body is capped, so appending to it cannot touch what follows.
func Next(buf []byte, maxLen int) (kind byte, body []byte, size int, err error) {
	kind, n, ok, err := Header(buf, maxLen)
	if err != nil || !ok || len(buf) < HeaderLen+n {
		return kind, nil, 0, err
	}
	size = HeaderLen + n
	return kind, buf[HeaderLen:size:size], size, nil
}

// NextStartup frames a packet of the startup phase, which has no type byte.
// size is 0, without an error, while it is incomplete; the body starts with the
// request code or protocol version and is never shorter than it.
func NextStartup(buf []byte) (body []byte, size int, err error) {
	if len(buf) < 4 {
		return nil, 0, nil
	}
	length := binary.BigEndian.Uint32(buf)
	if length < 8 || length > MaxStartupLen {
		return nil, 0, &MalformedError{Reason: "invalid length of startup packet"}
	}
	size = int(length)
	if len(buf) < size {
		return nil, 0, nil
	}
	return buf[4:size:size], size, nil
}
