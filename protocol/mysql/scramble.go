package mysql

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"

	"filippo.io/edwards25519"
)

// ScrambleNative answers a nonce for mysql_native_password:
// SHA1(password) XOR SHA1(nonce, SHA1(SHA1(password))). An empty password has
// an empty answer.
func ScrambleNative(nonce []byte, password string) []byte {
	if password == "" {
		return nil
	}
	once := sha1.Sum([]byte(password))
	twice := sha1.Sum(once[:])
	h := sha1.New()
	h.Write(nonce)
	h.Write(twice[:])
	out := h.Sum(nil)
	subtle.XORBytes(out, out, once[:])
	return out
}

// ScrambleSHA2 answers a nonce for caching_sha2_password's fast path:
// SHA256(password) XOR SHA256(SHA256(SHA256(password)), nonce). An empty
// password has an empty answer.
func ScrambleSHA2(nonce []byte, password string) []byte {
	if password == "" {
		return nil
	}
	once := sha256.Sum256([]byte(password))
	twice := sha256.Sum256(once[:])
	h := sha256.New()
	h.Write(twice[:])
	h.Write(nonce)
	out := h.Sum(nil)
	subtle.XORBytes(out, out, once[:])
	return out
}

// Ed25519Sign answers a nonce for MariaDB's client_ed25519: an Ed25519
// signature (RFC 8032, 5.1.6) whose secret scalar and prefix are the SHA-512 of
// the password itself instead of a 32-byte seed, which crypto/ed25519 cannot take.
func Ed25519Sign(nonce []byte, password string) ([]byte, error) {
	h := sha512.Sum512([]byte(password))
	secret, err := edwards25519.NewScalar().SetBytesWithClamping(h[:32])
	if err != nil {
		return nil, err
	}
	public := new(edwards25519.Point).ScalarBaseMult(secret).Bytes()

	d := sha512.New()
	d.Write(h[32:])
	d.Write(nonce)
	r, err := edwards25519.NewScalar().SetUniformBytes(d.Sum(nil))
	if err != nil {
		return nil, err
	}
	commit := new(edwards25519.Point).ScalarBaseMult(r).Bytes()

	d.Reset()
	d.Write(commit)
	d.Write(public)
	d.Write(nonce)
	k, err := edwards25519.NewScalar().SetUniformBytes(d.Sum(nil))
	if err != nil {
		return nil, err
	}
	s := k.MultiplyAdd(k, secret, r)
	return append(commit, s.Bytes()...), nil
}
