// Package pki makes certificates for tests: authorities, and what they sign, as
// PEM files.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	// File holds its certificate.
	File string
	// Pool has it alone.
	Pool *x509.CertPool

	t      testing.TB
	folder string
	cert   *x509.Certificate
	key    crypto.Signer
}

// Pair are the files of a certificate and its key.
type Pair struct{ Cert, Key string }

// New makes an authority whose files lie in a folder of the test's own.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, folder: t.TempDir(), key: newKey(t, x509.ECDSA)}
	template := template("authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.File = a.write("authority.pem", "CERTIFICATE", der)
	a.Pool = x509.NewCertPool()
	a.Pool.AddCert(a.cert)
	return a
}

// Sign makes a key and its certificate for localhost and 127.0.0.1, good for
// servers and clients. The same name is written to the same files.
func (a *Authority) Sign(name string) Pair { return a.SignWith(name, x509.ECDSA) }

// SignWith is Sign with a key for an algorithm.
func (a *Authority) SignWith(name string, algorithm x509.PublicKeyAlgorithm) Pair {
	a.t.Helper()
	key := newKey(a.t, algorithm)
	template := template(name)
	template.DNSNames, template.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	parent, signer := a.cert, a.key
	if algorithm == x509.Ed25519 { // the signature is what channel binding looks at
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return Pair{Cert: a.write(name+".pem", "CERTIFICATE", der), Key: a.write(name+".key", "PRIVATE KEY", private)}
}

func template(name string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // documented never to happen
	}
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
}

func newKey(t testing.TB, algorithm x509.PublicKeyAlgorithm) (key crypto.Signer) {
	t.Helper()
	var err error
	switch algorithm {
	case x509.RSA:
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case x509.Ed25519:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *Authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.folder, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}
