package mysql

import (
	"bytes"
	"encoding/binary"
)

// sslRequestLen is the length of the fixed part that a client sends before it
// starts TLS ("Protocol::SSLRequest") and that a full response starts with.
const sslRequestLen = 32

// HandshakeResponse is the client's answer to the handshake
// ("Protocol::HandshakeResponse41").
type HandshakeResponse struct {
	Capabilities Capability
	MaxPacket    uint32
	// Collation is the whole id where the client sent two bytes of it
	// (ids above 255), otherwise the one byte. 0 means the server's default.
	Collation uint16
	User      []byte
	Auth      []byte // the scramble, without a terminator
	Database  []byte // nil unless ClientConnectWithDB
	Plugin    []byte // nil when the client named none
	Attrs     []byte // raw connection attributes; see DecodeAttrs
	ZstdLevel uint8
}

// IsSSLRequest says whether the payload is the request to start TLS, and the
// capabilities in it.
func IsSSLRequest(p []byte) (Capability, bool) {
	if len(p) != sslRequestLen {
		return 0, false
	}
	c := Capability(binary.LittleEndian.Uint32(p))
	return c, c.Has(ClientSSL)
}

// AppendSSLRequest appends the payload that asks for TLS.
func (h *HandshakeResponse) AppendSSLRequest(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, h.Capabilities.basic())
	dst = binary.LittleEndian.AppendUint32(dst, h.MaxPacket)
	dst = binary.LittleEndian.AppendUint16(dst, h.Collation)
	dst = append(dst, make([]byte, 18)...)
	return binary.LittleEndian.AppendUint32(dst, h.Capabilities.extended())
}

// Append appends the payload.
func (h *HandshakeResponse) Append(dst []byte) []byte {
	c := h.Capabilities
	dst = h.AppendSSLRequest(dst)
	dst = AppendNulString(dst, h.User)
	switch {
	case c.Has(ClientPluginAuthLenenc):
		dst = AppendLenencString(dst, h.Auth)
	case c.Has(ClientSecureConnection):
		dst = append(dst, byte(len(h.Auth)))
		dst = append(dst, h.Auth[:min(len(h.Auth), 255)]...)
	default:
		dst = AppendNulString(dst, h.Auth)
	}
	if c.Has(ClientConnectWithDB) {
		dst = AppendNulString(dst, h.Database)
	}
	if c.Has(ClientPluginAuth) {
		dst = AppendNulString(dst, h.Plugin)
	}
	if c.Has(ClientConnectAttrs) {
		dst = AppendLenencString(dst, h.Attrs)
	}
	if c.Has(ClientZstdCompression) {
		dst = append(dst, h.ZstdLevel)
	}
	return dst
}

// DecodeHandshakeResponse reads the payload. Like the servers it forgives a
// plugin name without its end and attributes that are not there; a client that
// does not speak protocol 4.1 is malformed here.
func DecodeHandshakeResponse(p []byte) (HandshakeResponse, error) {
	const what = "handshake response"
	r := reader{b: p}
	var h HandshakeResponse
	h.Capabilities = Capability(r.u32())
	h.MaxPacket = r.u32()
	h.Collation = r.u16()
	r.take(18)
	h.Capabilities = h.Capabilities.withExtended(r.u32())
	c := h.Capabilities
	if r.bad || !c.Has(ClientProtocol41) {
		return HandshakeResponse{}, malformed(what)
	}
	h.User = r.nulString()
	switch {
	case c.Has(ClientPluginAuthLenenc):
		h.Auth = r.lenencString()
	case c.Has(ClientSecureConnection):
		h.Auth = r.take(uint64(r.u8()))
	default:
		h.Auth = r.nulString()
	}
	if c.Has(ClientConnectWithDB) {
		h.Database = r.nulString()
	}
	if c.Has(ClientPluginAuth) {
		h.Plugin = lenientNul(&r)
	}
	if c.Has(ClientConnectAttrs) && len(r.b) > 0 {
		h.Attrs = r.lenencString()
	}
	if c.Has(ClientZstdCompression) && len(r.b) > 0 {
		h.ZstdLevel = r.u8()
	}
	return h, r.check(what)
}

// lenientNul reads a string up to its zero byte or the end of the payload; nil
// when nothing is left.
func lenientNul(r *reader) []byte {
	if r.bad || len(r.b) == 0 {
		return nil
	}
	if bytes.IndexByte(r.b, 0) < 0 {
		return r.rest()
	}
	return r.nulString()
}

// Attr is one connection attribute.
type Attr struct{ Name, Value []byte }

// DecodeAttrs reads the pairs of HandshakeResponse.Attrs.
func DecodeAttrs(b []byte) ([]Attr, error) {
	r := reader{b: b}
	var out []Attr
	for len(r.b) > 0 && !r.bad {
		out = append(out, Attr{Name: r.lenencString(), Value: r.lenencString()})
	}
	if err := r.end("connection attributes"); err != nil {
		return nil, err
	}
	return out, nil
}

// AppendAttrs appends the pairs as HandshakeResponse.Attrs holds them.
func AppendAttrs(dst []byte, attrs []Attr) []byte {
	for _, a := range attrs {
		dst = AppendLenencString(dst, a.Name)
		dst = AppendLenencString(dst, a.Value)
	}
	return dst
}
