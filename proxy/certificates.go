package proxy

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"
)

// TLSMode is --tls: what is asked of clients.
type TLSMode string

const (
	TLSPrefer  TLSMode = "prefer"  // TLS for those that ask for it
	TLSRequire TLSMode = "require" // no client without TLS
	TLSVerify  TLSMode = "verify"  // no client without a certificate that the authorities in CA have signed
)

// TLSConfig is TLS on the clients' side. Without Cert there is none.
type TLSConfig struct {
	Cert, Key string // PEM files: the certificate with its chain, and its key
	CA        string // PEM file: who signs clients' certificates; "" for not asking for any
	Mode      TLSMode
}

// validate fills the default and refuses what makes no sense.
func (c *TLSConfig) validate() error {
	switch c.Mode {
	case "", TLSPrefer, TLSRequire, TLSVerify:
	default:
		return fmt.Errorf("--tls %q: want prefer, require or verify", c.Mode)
	}
	switch {
	case (c.Cert == "") != (c.Key == ""):
		return errors.New("--tls-cert and --tls-key go together: give both")
	case c.Cert == "" && c.Mode != "":
		return fmt.Errorf("--tls %s: needs a certificate: give --tls-cert and --tls-key", c.Mode)
	case c.Cert == "" && c.CA != "":
		return errors.New("--tls-ca: needs a certificate: give --tls-cert and --tls-key")
	case c.Mode == TLSVerify && c.CA == "":
		return errors.New("--tls verify: needs --tls-ca, a file with the authorities that sign clients' certificates")
	}
	if c.Cert != "" && c.Mode == "" {
		c.Mode = TLSPrefer
	}
	return nil
}

// certificates are what the files held when they were read. Sessions keep those
// with which they began. Immutable.
type certificates struct {
	config  *tls.Config
	binding []byte // see endPoint
	expires time.Time
}

// load reads the files. nil without an error: no TLS.
func (c *TLSConfig) load() (*certificates, error) {
	if c.Cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert %s, --tls-key %s: %w", c.Cert, c.Key, err)
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   tls.VersionTLS12,
		// A ticket would let a client back in that a new --tls-ca no longer would.
		SessionTicketsDisabled: true,
		// Answers leave in one write each, so small first records gain nothing.
		DynamicRecordSizingDisabled: true,
	}
	if c.CA != "" {
		text, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--tls-ca %s: no certificate in it (want PEM)", c.CA)
		}
		// One that is missing is told of in the dialect's words; see Admission.
		config.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return &certificates{config: config, binding: endPoint(pair.Leaf), expires: pair.Leaf.NotAfter}, nil
}

// endPoint is the tls-server-end-point channel binding (RFC 5929, section 4.1):
// the certificate hashed as its signature was, by SHA-256 in place of MD5 and
// SHA-1. nil where the signature's algorithm has no such hash.
func endPoint(leaf *x509.Certificate) []byte {
	var h crypto.Hash
	switch leaf.SignatureAlgorithm {
	case x509.MD5WithRSA, x509.SHA1WithRSA, x509.ECDSAWithSHA1,
		x509.SHA256WithRSA, x509.SHA256WithRSAPSS, x509.ECDSAWithSHA256:
		h = crypto.SHA256
	case x509.SHA384WithRSA, x509.SHA384WithRSAPSS, x509.ECDSAWithSHA384:
		h = crypto.SHA384
	case x509.SHA512WithRSA, x509.SHA512WithRSAPSS, x509.ECDSAWithSHA512:
		h = crypto.SHA512
	default:
		return nil
	}
	sum := h.New()
	sum.Write(leaf.Raw)
	return sum.Sum(nil)
}

// forClient is the configuration of one connection. application is the name by
// which the protocol goes in ALPN (RFC 7301), "" for none.
func (c *certificates) forClient(application string) *tls.Config {
	if application == "" {
		return c.config
	}
	config := c.config.Clone()
	config.NextProtos = []string{application}
	return config
}

// tlsStatus describes the clients' side for SHOW FRESHET STATUS.
func (s *Server) tlsStatus() string {
	c := s.certificates.Load()
	if c == nil {
		return "off"
	}
	return fmt.Sprintf("%s, certificate valid until %s", s.config.TLS.Mode, c.expires.UTC().Format(time.RFC3339))
}
