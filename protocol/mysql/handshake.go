package mysql

import "encoding/binary"

// NonceLen is the length of the random bytes that passwords are scrambled
// with, without the zero byte that ends them on the wire.
const NonceLen = 20

// Handshake is the server's first packet ("Protocol::HandshakeV10").
type Handshake struct {
	ServerVersion string
	ConnectionID  uint32
	Nonce         []byte // NonceLen bytes, none of them zero
	Capabilities  Capability
	Collation     uint8 // low byte of the server's default collation id
	Status        Status
	Plugin        string
}

// Append appends the payload.
func (h *Handshake) Append(dst []byte) []byte {
	dst = append(dst, 10)
	dst = AppendNulString(dst, h.ServerVersion)
	dst = binary.LittleEndian.AppendUint32(dst, h.ConnectionID)
	var nonce [NonceLen]byte
	copy(nonce[:], h.Nonce)
	dst = append(dst, nonce[:8]...)
	dst = append(dst, 0)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(h.Capabilities))
	dst = append(dst, h.Collation)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(h.Status))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(h.Capabilities>>16))
	if h.Capabilities.Has(ClientPluginAuth) {
		dst = append(dst, NonceLen+1)
	} else {
		dst = append(dst, 0)
	}
	dst = append(dst, 0, 0, 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, h.Capabilities.extended())
	dst = append(append(dst, nonce[8:]...), 0)
	if h.Capabilities.Has(ClientPluginAuth) {
		dst = AppendNulString(dst, h.Plugin)
	}
	return dst
}

// DecodeHandshake reads the payload of a server's first packet. Servers
// without ClientSecureConnection or ClientProtocol41 are refused: nothing in
// use sends them.
func DecodeHandshake(p []byte) (Handshake, error) {
	const what = "handshake"
	r := reader{b: p}
	if r.u8() != 10 {
		return Handshake{}, malformed("handshake of a protocol version other than 10")
	}
	var h Handshake
	h.ServerVersion = string(r.nulString())
	h.ConnectionID = r.u32()
	first := r.take(8)
	r.take(1)
	h.Capabilities = Capability(r.u16())
	h.Collation = r.u8()
	h.Status = Status(r.u16())
	h.Capabilities |= Capability(r.u16()) << 16
	authLen := int(r.u8())
	r.take(6)
	h.Capabilities = h.Capabilities.withExtended(r.u32())
	if err := r.check(what); err != nil {
		return Handshake{}, err
	}
	if !h.Capabilities.Has(ClientProtocol41 | ClientSecureConnection) {
		return Handshake{}, malformed("handshake without protocol 4.1")
	}
	second := r.take(uint64(max(13, authLen-8)))
	if h.Capabilities.Has(ClientPluginAuth) {
		h.Plugin = string(r.nulString())
	}
	if err := r.check(what); err != nil {
		return Handshake{}, err
	}
	// The last byte is the terminator; longer data is cut to what the
	// scrambles of this protocol version use.
	h.Nonce = append(append(make([]byte, 0, NonceLen), first...), second[:NonceLen-8]...)
	return h, nil
}
