package mysql

import (
	"crypto/rand"
	"errors"

	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// login is what is needed until the client is let in, and again for
// COM_CHANGE_USER.
type login struct {
	nonce    [wire.NonceLen]byte
	plugin   string // the one the client is to use
	seq      uint8  // of the next packet to the client
	user     string
	database string
	// offered are the capabilities in the handshake.
	offered wire.Capability
	// compressor packs what follows the login; nil for none, and after it.
	compressor *wire.Compressor
}

// maxLogin bounds a packet before authentication.
const maxLogin = 64 << 10

// idBit sets the ids that clients see apart from the upstream's own thread
// ids, so that a KILL cannot hit the wrong one of two.
const idBit = 1 << 30

// newNonce makes the random bytes that the password is scrambled with; none is
// zero, which would end them.
func (l *login) newNonce() {
	if _, err := rand.Read(l.nonce[:]); err != nil {
		panic(err) // documented never to happen
	}
	for i, b := range l.nonce {
		l.nonce[i] = b&0x7f | boolByte(b&0x7f == 0)
	}
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// greet sends the handshake.
func (h *handler) greet() {
	g := h.up.greeting.Load()
	h.login.newNonce()
	h.login.plugin, h.login.offered = g.plugin, g.caps
	if h.s.OffersTLS() {
		h.login.offered |= wire.ClientSSL
	}
	hs := wire.Handshake{ServerVersion: g.version, ConnectionID: uint32(h.s.ID)&(idBit-1) | idBit, Nonce: h.login.nonce[:],
		Capabilities: h.login.offered, Collation: g.collation, Status: initialStatus, Plugin: g.plugin}
	h.send(0, hs.Append(nil))
}

// nextLogin takes one packet of the login.
func (h *handler) nextLogin(in []byte) int {
	m, n, err := wire.NextMessage(in, maxLogin, &h.join)
	switch {
	case errors.Is(err, wire.ErrIncomplete):
		return 0
	case err != nil:
		h.badHandshake()
		return len(in)
	}
	h.login.seq = m.LastSeq + 1
	if h.phase == phaseSwitch {
		h.judge(m.Payload)
		return n
	}
	if _, ssl := wire.IsSSLRequest(m.Payload); ssl && h.s.OffersTLS() {
		// Whatever follows is TLS, so nothing in clear can slip in before it.
		h.s.StartTLS("", func() {})
		return n
	} else if ssl {
		h.badHandshake()
		return n
	}
	r, err := wire.DecodeHandshakeResponse(m.Payload)
	if err != nil {
		h.badHandshake()
		return n
	}
	h.respond(&r)
	return n
}

func (h *handler) badHandshake() {
	h.s.Malformed()
	h.fatal(h.login.seq, wire.NewError(wire.ErrNumHandshake, "Bad handshake"))
}

// respond takes the client's answer to the handshake.
func (h *handler) respond(r *wire.HandshakeResponse) {
	agreed := r.Capabilities & h.login.offered
	if algorithm, ok := wire.CompressionOf(agreed); ok {
		h.login.compressor = wire.NewCompressor(algorithm, r.ZstdLevel)
	}
	// TLS and compression end here.
	h.caps = agreed &^ (wire.ClientSSL | compressions)
	h.collation = r.Collation
	if h.collation == 0 {
		h.collation = uint16(h.up.greeting.Load().collation)
	}
	h.login.user, h.login.database = string(r.User), string(r.Database)
	if !h.admitted() {
		return
	}
	plugin := string(r.Plugin)
	if !h.caps.Has(wire.ClientPluginAuth) {
		// Such a client knows only this one, and no switch.
		h.login.plugin = wire.PluginNative
		h.judge(r.Auth)
		return
	}
	if plugin == h.login.plugin {
		h.judge(r.Auth)
		return
	}
	h.switchPlugin()
}

// admitted holds the client to --tls. One in clear is told why in MySQL's words
// (MariaDB has none, and says that access is denied), before its password is
// looked at; one without a certificate is told what the servers tell a user that
// was created with REQUIRE X509.
func (h *handler) admitted() bool {
	switch h.s.Admission() {
	case proxy.LacksTLS:
		h.fatal(h.login.seq, wire.NewError(wire.ErrNumSecureTransport, "Connections using insecure transport are prohibited while --require_secure_transport=ON."))
		return false
	case proxy.LacksCertificate:
		h.fatal(h.login.seq, wire.AccessDenied(h.login.user, h.s.Host(), true))
		return false
	}
	return true
}

// switchPlugin asks the client to answer by our plugin.
func (h *handler) switchPlugin() {
	h.login.newNonce()
	sw := wire.AuthSwitch{Plugin: h.login.plugin, Data: h.login.nonce[:]}
	h.send(h.login.seq, sw.Append(nil))
	h.phase = phaseSwitch
}

// judge decides over the client's answer. An unknown user and a wrong
// password take the same way and time.
func (h *handler) judge(answer []byte) {
	user := h.s.Upstream.User(h.login.user)
	known := user != nil
	if !known {
		user = &proxy.User{Password: h.s.Upstream.Target.Password}
	}
	right := wire.VerifyScramble(h.login.plugin, h.login.nonce[:], answer, user.Password)
	if !right || !known {
		h.fatal(h.login.seq, wire.AccessDenied(h.login.user, h.s.Host(), len(answer) > 0))
		return
	}
	h.s.SetUser(h.login.user)
	if h.login.plugin == wire.PluginCachingSHA2 && len(answer) > 1 {
		h.send(h.login.seq, wire.AppendAuthMore(nil, wire.FastAuthOK))
		h.login.seq++
	}
	h.enter()
}

// enter makes the session a fresh one on the wanted database. The first
// session with its flags, collation and database tries them upstream; what was
// learnt then holds for later ones, which cost the upstream nothing.
func (h *handler) enter() {
	h.db, h.settings, h.hold = h.login.database, nil, 0
	h.base = h.up.base(h.linkKey().base(), h.s.Upstream.Generation())
	h.rekey()
	if h.base != nil {
		h.welcome()
		return
	}
	h.phase = phaseEntering
	if h.acquire() {
		h.entered()
	}
}

// entered ends the trial of a session's first link.
func (h *handler) entered() {
	if err := h.stage.linkErr; err != nil {
		h.stage = stage{}
		h.fatal(h.login.seq, h.linkError(err))
		return
	}
	h.s.ReleaseLink()
	h.welcome()
}

// welcome lets the client in.
func (h *handler) welcome() {
	h.status, h.shows = h.base.status, h.base.shows
	h.past, h.between = past{elsewhere: true, foundElsewhere: true}, true
	ok := wire.OK{Status: h.status}
	if h.db != "" && h.base.shows.schema {
		ok.State = wire.AppendStateChange(nil, wire.StateChange{Kind: wire.TrackSchema, Value: []byte(h.db)})
	}
	h.send(h.login.seq, ok.Append(nil, h.caps))
	h.phase = phaseCommand
	if h.login.compressor != nil {
		h.s.Pack(h.login.compressor)
		h.login.compressor = nil
	}
	h.s.LoggedIn()
}
