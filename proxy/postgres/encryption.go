package postgres

import (
	pg "freshet/protocol/postgres"
	"freshet/proxy"
)

// maxEncryptionRequests: GSSAPI, then TLS, each asked for once.
const maxEncryptionRequests = 2

const (
	// alpn is the protocol's registered name, which direct TLS must come with: it
	// keeps a browser from being led here (protocol-flow, "SSL Session Encryption").
	alpn = "postgresql"
	// tlsHandshake is a TLS record's first byte; no startup packet begins with it,
	// for it would be too long.
	tlsHandshake = 0x16
)

// encryption answers a request for it. more bytes have come after the request,
// which nobody may send before the answer: they would be taken for the client's
// under TLS, though anybody on the way could have added them.
func (h *handler) encryption(kind pg.StartupKind, more int) {
	h.asked++
	switch {
	case h.asked > maxEncryptionRequests, h.s.Secure():
		h.fatal("08P01", "unsupported frontend protocol")
	case kind != pg.StartupSSL || !h.s.OffersTLS():
		h.s.Write([]byte{'N'})
	case more > 0:
		h.s.Malformed()
		h.fatal("08P01", "received unencrypted data after SSL request")
	default:
		h.s.Write([]byte{'S'})
		h.s.StartTLS(alpn, func() {})
	}
}

// startsDirectly begins TLS for a client that does not ask (sslnegotiation=direct).
func (h *handler) startsDirectly(in []byte) bool {
	if len(in) == 0 || in[0] != tlsHandshake || h.asked > 0 || !h.s.OffersTLS() {
		return false
	}
	h.s.StartTLS(alpn, func() {
		if h.s.Application() != alpn {
			h.s.Malformed()
			h.fatal("08P01", "received direct SSL connection request without ALPN protocol negotiation extension")
		}
	})
	return true
}

// admitted holds the client to --tls, in the words of pg_hba.conf.
func (h *handler) admitted() bool {
	switch h.s.Admission() {
	case proxy.LacksTLS:
		h.fatal("28000", `no pg_hba.conf entry for host "`+h.s.Host()+`", user "`+h.s.User+`", database "`+h.database+`", no encryption`)
		return false
	case proxy.LacksCertificate:
		h.fatal("28000", "connection requires a valid client certificate")
		return false
	}
	return true
}
