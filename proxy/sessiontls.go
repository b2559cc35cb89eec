package proxy

// Admission says what a client lacks to be let in; see Session.Admission.
type Admission uint8

const (
	Admitted         Admission = iota
	LacksTLS                   // --tls require or verify, and it speaks in clear
	LacksCertificate           // --tls verify, and it showed none
)

// OffersTLS tells whether a client that asks for TLS may have it.
func (s *Session) OffersTLS() bool {
	return s.client.tls == nil && s.Loop.server.certificates.Load() != nil
}

// StartTLS lets the client's TLS handshake begin with the bytes that Data does
// not consume; Data is to return. What was written so far is sent in clear. then
// is called on the loop once the client speaks TLS; a client whose handshake
// fails is gone instead. application is the protocol's name in ALPN: a client
// that names others only is refused, one that names none is not.
func (s *Session) StartTLS(application string, then func()) {
	certs := s.Loop.server.certificates.Load()
	s.Blocked = true
	s.client.startTLS(certs, application, s.Remote, func() {
		s.Blocked = false
		then()
	})
}

// Secure tells whether the client speaks TLS.
func (s *Session) Secure() bool { return s.client.tls != nil }

// Application is the protocol that the client named in ALPN; "" for none.
func (s *Session) Application() string {
	if s.client.tls == nil {
		return ""
	}
	return s.client.tls.state.NegotiatedProtocol
}

// ChannelBinding is the connection's tls-server-end-point (RFC 5929), nil where
// there is none.
func (s *Session) ChannelBinding() []byte {
	if s.client.tls == nil {
		return nil
	}
	return s.client.tls.certs.binding
}

// Admission holds the client to --tls.
func (s *Session) Admission() Admission {
	mode, t := s.Loop.server.config.TLS.Mode, s.client.tls
	switch {
	case t == nil && (mode == TLSRequire || mode == TLSVerify):
		return LacksTLS
	case mode == TLSVerify && len(t.state.PeerCertificates) == 0:
		return LacksCertificate
	}
	return Admitted
}
