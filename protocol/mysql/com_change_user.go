package mysql

import "encoding/binary"

// ChangeUser is COM_CHANGE_USER.
type ChangeUser struct {
	User, Auth, Database []byte
	Collation            uint16 // 0 when the client named none
	Plugin               []byte // nil when the client named none
	Attrs                []byte
}

// DecodeChangeUser reads the payload. Everything after the database may be
// missing.
func DecodeChangeUser(p []byte, caps Capability) (ChangeUser, error) {
	const what = "COM_CHANGE_USER"
	r := reader{b: p}
	if Command(r.u8()) != ComChangeUser {
		return ChangeUser{}, malformed(what)
	}
	c := ChangeUser{User: r.nulString()}
	if caps.Has(ClientSecureConnection) {
		c.Auth = r.take(uint64(r.u8()))
	} else {
		c.Auth = r.nulString()
	}
	c.Database = r.nulString()
	if len(r.b) > 0 {
		c.Collation = r.u16()
	}
	if caps.Has(ClientPluginAuth) {
		c.Plugin = lenientNul(&r)
	}
	if caps.Has(ClientConnectAttrs) && len(r.b) > 0 {
		c.Attrs = r.lenencString()
	}
	return c, r.check(what)
}

// Append appends the payload.
func (c *ChangeUser) Append(dst []byte, caps Capability) []byte {
	dst = AppendNulString(append(dst, byte(ComChangeUser)), c.User)
	if caps.Has(ClientSecureConnection) {
		dst = append(dst, byte(len(c.Auth)))
		dst = append(dst, c.Auth[:min(len(c.Auth), 255)]...)
	} else {
		dst = AppendNulString(dst, c.Auth)
	}
	dst = AppendNulString(dst, c.Database)
	dst = binary.LittleEndian.AppendUint16(dst, c.Collation)
	if caps.Has(ClientPluginAuth) {
		dst = AppendNulString(dst, c.Plugin)
	}
	if caps.Has(ClientConnectAttrs) {
		dst = AppendLenencString(dst, c.Attrs)
	}
	return dst
}
