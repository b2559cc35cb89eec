package mysql

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// shared is what all sessions on one upstream know together. It is safe for
// use from all loops.
type shared struct {
	greeting atomic.Pointer[greeting]

	mu    sync.Mutex
	bases map[string]*base // by base key
	// prints numbers the fingerprints of bases.
	prints    map[string]uint64
	lastPrint uint64
	yield     yielders
	// waiters counts, by loop, the sessions that wait for a link.
	waiters map[*proxy.Loop]int

	// collations are those of the server by id, in digits; nil before the
	// first link.
	collations atomic.Pointer[map[string]collation]

	waits   atomic.Int64  // the sum of waiters
	tickets atomic.Uint64 // numbers waits for a link
}

// greeting is how the upstream introduces itself.
type greeting struct {
	version   string
	caps      wire.Capability
	collation uint8
	plugin    string
}

// collation names a collation id.
type collation struct{ charset, name string }

// base is what a fresh connection with certain flags, collation and database
// is like. It is
// immutable, but for reset.
type base struct {
	status wire.Status
	// generation of the server's defaults; see proxy.Upstream.
	generation uint64
	initial    map[string]string // session variables by name
	// print tells apart bases whose answers may differ; printID stands for it.
	print   string
	printID uint64
	// reset is what COM_RESET_CONNECTION leaves: it takes the server's
	// character set, not the handshake's, and MariaDB's forgets IGNORE_SPACE
	// that a capability set. nil until somebody needed it.
	reset atomic.Pointer[settings]
	// maxPacket is the longest payload of a command in bytes.
	maxPacket int
	// shows is what the server tells of unless it is asked for more.
	shows shows
}

type sharedKey struct{}

func sharedOf(u *proxy.Upstream) *shared {
	return u.Shared(sharedKey{}, func() any {
		sh := &shared{bases: map[string]*base{}, prints: map[string]uint64{}}
		sh.greeting.Store(guessGreeting(u.Server))
		return sh
	}).(*shared)
}

// maxBases bounds what clients can make us remember: each base holds all of the
// server's variables.
const maxBases = 256

// base returns what is known of a base key, nil before the first link of it
// under the server's present defaults.
func (sh *shared) base(key string, generation uint64) *base {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if b := sh.bases[key]; b != nil && b.generation >= generation {
		return b
	}
	return nil
}

// learn keeps what a new link showed and returns the base that all links of
// the key share as long as the server's defaults stay the same.
func (sh *shared) learn(key string, b *base) *base {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	old := sh.bases[key]
	if old != nil && old.print == b.print && old.generation == b.generation {
		return old
	}
	if len(sh.bases) >= maxBases {
		clear(sh.bases)
		clear(sh.prints)
	}
	if b.printID = sh.prints[b.print]; b.printID == 0 {
		sh.lastPrint++ // never given to another, also after they are forgotten
		b.printID = sh.lastPrint
		sh.prints[b.print] = b.printID
	}
	if old == nil || old.generation <= b.generation {
		sh.bases[key] = b
	}
	return b
}

// offered are the capabilities that a session can keep up; the upstream's own
// are cut to them. TLS ends at the proxy, which offers it by itself (login.go).
const offered = compressions | wire.ClientLongPassword | wire.ClientFoundRows | wire.ClientLongFlag | wire.ClientConnectWithDB |
	wire.ClientNoSchema | wire.ClientODBC | wire.ClientLocalFiles | wire.ClientIgnoreSpace | wire.ClientProtocol41 |
	wire.ClientInteractive | wire.ClientIgnoreSigpipe | wire.ClientTransactions | wire.ClientReserved |
	wire.ClientSecureConnection | wire.ClientMultiStatements | wire.ClientMultiResults | wire.ClientPSMultiResults |
	wire.ClientPluginAuth | wire.ClientConnectAttrs | wire.ClientPluginAuthLenenc |
	wire.ClientCanHandleExpiredPasswords | wire.ClientSessionTrack | wire.ClientDeprecateEOF |
	wire.ClientOptionalResultsetMetadata | wire.ClientQueryAttributes | wire.ClientRememberOptions | onlyMariaDB

// onlyMariaDB are those of MariaDB's extended flags that a session can keep up.
// MariaDBCacheMetadata is none: a server leaves out the definitions that it sent
// before with the same prepared statement, and on a link that was to another
// client, which has its own. Without it the definitions always come. Nor is
// MariaDBBulkUnitResults (11.5), which answers a write by rows: what such a reply
// leaves of ROW_COUNT() and LAST_INSERT_ID() is not followed. Clients then take
// the sum.
const onlyMariaDB = wire.MariaDBProgress | wire.MariaDBExtendedMetadata | wire.MariaDBBulkOperations

// onlyMySQL are those that MariaDB does not have. It leaves out
// ClientLongPassword to say that its extended flags are meant.
const onlyMySQL = wire.ClientLongPassword | wire.ClientOptionalResultsetMetadata | wire.ClientQueryAttributes | wire.ClientZstdCompression

// compressions end at the proxy: they make no difference to a session or its
// links.
const compressions = wire.ClientCompress | wire.ClientZstdCompression

// guessGreeting is the greeting as the version says it is, until the first
// link has shown the real one: a client that only connects costs the upstream
// nothing.
func guessGreeting(s proxy.ServerInfo) *greeting {
	g := &greeting{version: s.Version, caps: offered, collation: uint8(s.Collation), plugin: wire.PluginCachingSHA2}
	major, minor, patch := versionOf(s.Version)
	if s.Kind == "mariadb" {
		g.plugin = wire.PluginNative
		g.caps &^= onlyMySQL
		if major*10000+minor*100+patch < 100502 {
			g.caps &^= wire.MariaDBExtendedMetadata
		}
		if major < 11 {
			// MariaDB hid behind this from replicas that knew no version 10.
			g.version = "5.5.5-" + s.Version
		}
		return g
	}
	g.caps &^= onlyMariaDB
	v := major*10000 + minor*100 + patch
	if v < 80026 {
		g.caps &^= wire.ClientQueryAttributes
	}
	if v < 80018 {
		g.caps &^= wire.ClientZstdCompression
	}
	if v < 80004 {
		g.caps &^= wire.ClientOptionalResultsetMetadata
		g.plugin = wire.PluginNative
	}
	return g
}

func versionOf(v string) (major, minor, patch int) {
	numbers := [3]int{}
	for i, part := range strings.SplitN(v, ".", 3) {
		end := 0
		for end < len(part) && part[end] >= '0' && part[end] <= '9' {
			end++
		}
		n, err := strconv.Atoi(part[:end])
		if err != nil {
			break
		}
		numbers[i] = n
	}
	return numbers[0], numbers[1], numbers[2]
}

// met replaces the guess by what a link was greeted with. The plugin stays
// that of the kind: what the server's default is says nothing of an account.
func (sh *shared) met(h *wire.Handshake) {
	old := sh.greeting.Load()
	sh.greeting.Store(&greeting{version: h.ServerVersion, caps: h.Capabilities & offered, collation: h.Collation, plugin: old.plugin})
}
