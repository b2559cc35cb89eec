package mysql

import (
	"encoding/binary"
	"errors"

	wire "freshet/protocol/mysql"
)

// linkKey is all that is the same of links that are interchangeable. It is the
// pool's key in one string, from which Dial opens the like.
type linkKey struct {
	user      string // "" is the DSN's
	caps      wire.Capability
	collation uint16
	database  string
	settings  settings
}

// base is the key without settings: what a fresh connection is.
func (k linkKey) base() string {
	b := binary.LittleEndian.AppendUint64(nil, uint64(k.caps))
	b = binary.LittleEndian.AppendUint16(b, k.collation)
	b = wire.AppendLenencString(b, k.user)
	b = wire.AppendLenencString(b, k.database)
	return string(b)
}

func (k linkKey) String() string { return k.base() + string(k.settings.append(nil)) }

var errKey = errors.New("mysql: not a link key")

func parseLinkKey(s string) (k linkKey, err error) {
	b := []byte(s)
	if len(b) < 10 {
		return linkKey{}, errKey
	}
	k.caps = wire.Capability(binary.LittleEndian.Uint64(b))
	k.collation = binary.LittleEndian.Uint16(b[8:])
	b = b[10:]
	text := func() string {
		n, used := wire.DecodeLenenc(b)
		if used == 0 || n > uint64(len(b)-used) {
			err = errKey
			b = nil
			return ""
		}
		out := string(b[used : used+int(n)])
		b = b[used+int(n):]
		return out
	}
	k.user = text()
	k.database = text()
	for len(b) > 0 {
		k.settings = append(k.settings, setting{name: text(), value: text()})
	}
	return k, err
}

// linkCaps are the flags that change what the server does or sends. A link has
// exactly the client's, so that its bytes can pass unchanged, and tracking.
const linkCaps = wire.ClientLongPassword | wire.ClientFoundRows | wire.ClientLongFlag | wire.ClientNoSchema |
	wire.ClientODBC | wire.ClientLocalFiles | wire.ClientIgnoreSpace | wire.ClientInteractive | wire.ClientIgnoreSigpipe |
	wire.ClientTransactions | wire.ClientReserved | wire.ClientMultiStatements | wire.ClientMultiResults |
	wire.ClientPSMultiResults | wire.ClientCanHandleExpiredPasswords | wire.ClientDeprecateEOF |
	wire.ClientOptionalResultsetMetadata | wire.ClientQueryAttributes | onlyMariaDB

// capsForLink are the flags of a link for a client with these.
func capsForLink(client wire.Capability) wire.Capability {
	return client&linkCaps | wire.ClientProtocol41 | wire.ClientSecureConnection | wire.ClientPluginAuth |
		wire.ClientPluginAuthLenenc | wire.ClientSessionTrack
}
