package mysql

// Names of authentication plugins.
const (
	PluginNative      = "mysql_native_password"
	PluginCachingSHA2 = "caching_sha2_password"
	PluginSHA256      = "sha256_password"
	PluginClear       = "mysql_clear_password"
	PluginEd25519     = "client_ed25519"
)

// First byte of the packets of the authentication phase.
const (
	headerAuthMore   = 0x01
	headerAuthSwitch = 0xfe
)

// AuthSwitch asks the client to use another plugin
// ("Protocol::AuthSwitchRequest").
type AuthSwitch struct {
	Plugin string
	Data   []byte // the nonce, without the zero byte that ends it
}

// Append appends the payload.
func (a *AuthSwitch) Append(dst []byte) []byte {
	dst = append(dst, headerAuthSwitch)
	dst = AppendNulString(dst, a.Plugin)
	return append(append(dst, a.Data...), 0)
}

// DecodeAuthSwitch reads the payload. A single 0xfe byte, the request for the
// password hash of before 4.1, is malformed.
func DecodeAuthSwitch(p []byte) (AuthSwitch, error) {
	const what = "auth switch request"
	r := reader{b: p}
	if r.u8() != headerAuthSwitch {
		return AuthSwitch{}, malformed(what)
	}
	a := AuthSwitch{Plugin: string(r.nulString())}
	a.Data = r.rest()
	if n := len(a.Data); n > 0 && a.Data[n-1] == 0 {
		a.Data = a.Data[:n-1]
	}
	return a, r.check(what)
}

// AppendAuthMore appends the payload of a packet that carries a plugin's own
// data ("Protocol::AuthMoreData").
func AppendAuthMore(dst, data []byte) []byte {
	return append(append(dst, headerAuthMore), data...)
}

// DecodeAuthMore returns the plugin's data.
func DecodeAuthMore(p []byte) ([]byte, error) {
	if len(p) == 0 || p[0] != headerAuthMore {
		return nil, malformed("auth more data")
	}
	return p[1:], nil
}
