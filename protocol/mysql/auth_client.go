package mysql

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// caching_sha2_password's own bytes ("Caching_sha2_password information").
const (
	sha2RequestKey = 0x02
	sha2FastOK     = 0x03
	sha2FullAuth   = 0x04
	sha256GetKey   = 0x01
)

// ErrAuthPlugin says that the server asks for a plugin that is not known or
// not safe on this connection.
var ErrAuthPlugin = errors.New("mysql: authentication plugin not supported")

// maxAuthSteps bounds the packets a server may ask for before it decides.
const maxAuthSteps = 8

// ClientAuth is the client's side of authentication as a machine: it is given
// the server's packets and returns what to send. The caller owns the socket
// and the sequence numbers (each reply has its packet's number plus one).
type ClientAuth struct {
	Password string
	// Secure says that the connection is encrypted or does not leave the
	// machine (Unix socket), so that the password may be sent in plain.
	Secure bool

	plugin  string
	nonce   []byte
	wantKey bool
	steps   int
}

// Start returns the plugin's first answer for the handshake's nonce, to be put
// into HandshakeResponse.Auth, and the plugin's name to be put there too: an
// unknown default plugin is answered with mysql_native_password, and the
// server then switches.
func (a *ClientAuth) Start(plugin string, nonce []byte) (name string, answer []byte, err error) {
	switch plugin {
	case PluginNative, PluginCachingSHA2:
	default:
		plugin = PluginNative
	}
	answer, err = a.begin(plugin, nonce)
	return plugin, answer, err
}

func (a *ClientAuth) begin(plugin string, nonce []byte) ([]byte, error) {
	a.plugin, a.wantKey = plugin, false
	a.nonce = append(a.nonce[:0], nonce...)
	switch plugin {
	case PluginNative:
		return ScrambleNative(nonce[:min(len(nonce), NonceLen)], a.Password), nil
	case PluginCachingSHA2:
		return ScrambleSHA2(nonce[:min(len(nonce), NonceLen)], a.Password), nil
	case PluginEd25519:
		return Ed25519Sign(nonce, a.Password)
	case PluginClear:
		if a.Secure {
			return AppendNulString(nil, a.Password), nil
		}
	case PluginSHA256:
		return a.beginSHA256()
	}
	return nil, fmt.Errorf("%w: %q (encrypted: %t)", ErrAuthPlugin, plugin, a.Secure)
}

func (a *ClientAuth) beginSHA256() ([]byte, error) {
	switch {
	case a.Password == "":
		return []byte{0}, nil
	case a.Secure:
		return AppendNulString(nil, a.Password), nil
	}
	a.wantKey = true
	return []byte{sha256GetKey}, nil
}

// Step takes one payload from the server. send says that reply (which may be
// empty) must go out as a packet; done that the server let us in, with ok its
// OK packet. A refusal comes back as a ServerError.
func (a *ClientAuth) Step(p []byte, caps Capability) (reply []byte, send, done bool, err error) {
	if a.steps++; a.steps > maxAuthSteps {
		return nil, false, false, malformed("authentication without end")
	}
	if len(p) == 0 {
		return nil, false, false, malformed("empty packet in authentication")
	}
	switch p[0] {
	case headerOK:
		_, err = DecodeOK(p, caps)
		return nil, false, err == nil, err
	case headerERR:
		e, derr := DecodeError(p, caps)
		if derr != nil {
			return nil, false, false, derr
		}
		return nil, false, false, e
	case headerAuthSwitch:
		sw, derr := DecodeAuthSwitch(p)
		if derr != nil {
			return nil, false, false, derr
		}
		reply, err = a.begin(sw.Plugin, sw.Data)
		return reply, err == nil, false, err
	case headerAuthMore:
		reply, send, err = a.more(p[1:])
		return reply, send, false, err
	}
	return nil, false, false, malformed("unknown packet in authentication")
}

func (a *ClientAuth) more(data []byte) (reply []byte, send bool, err error) {
	switch {
	case a.wantKey:
		a.wantKey = false
		reply, err = encryptPassword(data, a.nonce, a.Password)
		return reply, err == nil, err
	case a.plugin != PluginCachingSHA2 || len(data) != 1:
		return nil, false, malformed("unexpected auth more data")
	case data[0] == sha2FastOK:
		return nil, false, nil
	case data[0] != sha2FullAuth:
		return nil, false, malformed("unknown caching_sha2_password state")
	case a.Secure:
		return AppendNulString(nil, a.Password), true, nil
	}
	a.wantKey = true
	return []byte{sha2RequestKey}, true, nil
}

// encryptPassword seals the password, made one with the nonce, for the
// server's RSA key (OAEP with SHA-1, as both plugins want it).
func encryptPassword(keyPEM, nonce []byte, password string) ([]byte, error) {
	block, _ := pem.Decode(keyPEM)
	if block == nil || len(nonce) == 0 {
		return nil, malformed("server's RSA key")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("mysql: server's RSA key: %w", err)
	}
	pub, ok := key.(*rsa.PublicKey)
	if !ok {
		return nil, malformed("server's key is not RSA")
	}
	plain := AppendNulString(nil, password)
	for i := range plain {
		plain[i] ^= nonce[i%len(nonce)]
	}
	return rsa.EncryptOAEP(sha1.New(), rand.Reader, pub, plain, nil)
}
