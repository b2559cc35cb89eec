package postgres

import (
	"bytes"
	"encoding/binary"
)

// The first word of a startup packet: a protocol version (major in the upper
// half) or one of the request codes, which look like versions 1234.x.
const (
	ProtocolVersion30 uint32 = 3 << 16
	ProtocolVersion32 uint32 = 3<<16 | 2

	codeCancel uint32 = 1234<<16 | 5678
	codeSSL    uint32 = 1234<<16 | 5679
	codeGSSENC uint32 = 1234<<16 | 5680
)

// StartupKind says what a startup packet asks for.
type StartupKind uint8

const (
	// StartupSession: a session; see StartupMessage.
	StartupSession StartupKind = iota
	// StartupSSL and StartupGSSENC: encryption; answered by one byte, 'N' for no.
	StartupSSL
	StartupGSSENC
	// StartupCancel: a running statement's end; never answered. See CancelRequest.
	StartupCancel
	// StartupUnsupported: a major protocol version that is not 3.
	StartupUnsupported
)

// KindOfStartup looks at the first word of a startup packet's body.
func KindOfStartup(body []byte) (StartupKind, error) {
	r := reader{rest: body}
	version := r.uint32()
	if r.reason != "" {
		return 0, &MalformedError{Reason: r.reason}
	}
	switch {
	case version == codeSSL:
		return StartupSSL, nil
	case version == codeGSSENC:
		return StartupGSSENC, nil
	case version == codeCancel:
		return StartupCancel, nil
	case version>>16 == 3:
		return StartupSession, nil
	}
	return StartupUnsupported, nil
}

// AppendSSLRequest appends the request to encrypt by TLS.
func AppendSSLRequest(dst []byte) []byte { return appendUint32(appendUint32(dst, 8), codeSSL) }

// AppendGSSENCRequest appends the request to encrypt by GSSAPI.
func AppendGSSENCRequest(dst []byte) []byte { return appendUint32(appendUint32(dst, 8), codeGSSENC) }

// Option is one name and value of a startup message.
type Option struct{ Name, Value string }

// StartupMessage asks for a session. It is kept as long as the session, so,
// unlike the other messages, it owns its strings.
type StartupMessage struct {
	Version uint32
	Options []Option // as sent, in order; a name may come twice
}

// Decode reads the body of a StartupSession packet. A well-formed message ends
// with an empty name and nothing after it.
func (m *StartupMessage) Decode(body []byte) error {
	r := reader{rest: body}
	m.Version = r.uint32()
	m.Options = m.Options[:0]
	for {
		name := r.cstring()
		if len(name) == 0 {
			break
		}
		value := r.cstring()
		m.Options = append(m.Options, Option{string(name), string(value)})
	}
	if r.reason == "" && len(r.rest) != 0 {
		r.reason = "invalid startup packet layout: expected terminator as last byte"
	}
	if r.reason != "" {
		return &MalformedError{Reason: r.reason}
	}
	return nil
}

// Append appends the whole packet.
func (m *StartupMessage) Append(dst []byte) []byte {
	start := len(dst)
	dst = appendUint32(appendUint32(dst, 0), m.Version)
	for _, o := range m.Options {
		dst = append(append(dst, o.Name...), 0)
		dst = append(append(dst, o.Value...), 0)
	}
	dst = append(dst, 0)
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

// Get returns the last value of an option, as the server takes it.
func (m *StartupMessage) Get(name string) (string, bool) {
	for i := len(m.Options) - 1; i >= 0; i-- {
		if m.Options[i].Name == name {
			return m.Options[i].Value, true
		}
	}
	return "", false
}

// Negotiate says what to answer to a version or to options that are newer than
// what is known here: needed is true when the client asked for a minor version
// above newest or for any option whose name starts with "_pq_.", none of which
// are known. reply is then the message to send before authentication.
func (m *StartupMessage) Negotiate(newest uint32) (reply NegotiateProtocolVersion, needed bool) {
	reply.Newest = min(m.Version, newest)
	for _, o := range m.Options {
		if len(o.Name) > 5 && o.Name[:5] == "_pq_." {
			reply.Unknown = append(reply.Unknown, []byte(o.Name))
		}
	}
	return reply, m.Version > newest || len(reply.Unknown) > 0
}

// CancelRequest names the session whose statement is to end.
type CancelRequest struct {
	ProcessID uint32
	Secret    []byte // 4 bytes up to protocol 3.0, up to 256 from 3.2
}

// Decode reads the body of a StartupCancel packet.
func (m *CancelRequest) Decode(body []byte) error {
	r := reader{rest: body}
	r.uint32()
	m.ProcessID = r.uint32()
	m.Secret = r.take(len(r.rest))
	if r.reason == "" && (len(m.Secret) < minKeyLen || len(m.Secret) > maxKeyLen) {
		r.reason = "invalid length of cancel request packet"
	}
	if r.reason != "" {
		return &MalformedError{Reason: r.reason}
	}
	return nil
}

// Append appends the whole packet.
func (m *CancelRequest) Append(dst []byte) []byte {
	dst = appendUint32(dst, uint32(12+len(m.Secret)))
	dst = appendUint32(dst, codeCancel)
	dst = appendUint32(dst, m.ProcessID)
	return append(dst, m.Secret...)
}

// Matches compares with a key that was handed out.
func (m *CancelRequest) Matches(k *BackendKeyData) bool {
	return m.ProcessID == k.ProcessID && bytes.Equal(m.Secret, k.Secret)
}
