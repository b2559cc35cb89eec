package mysql

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"testing"

	"filippo.io/edwards25519"
)

var nonce = []byte("abcdefghijklmnopqrst")

// The servers keep a hash and undo the scramble with it: the test does as they do.
func TestScrambles(t *testing.T) {
	answer := ScrambleNative(nonce, "secret")
	once := sha1.Sum([]byte("secret"))
	stored := sha1.Sum(once[:])
	mask := sha1.Sum(append(append([]byte(nil), nonce...), stored[:]...))
	for i := range mask {
		mask[i] ^= answer[i]
	}
	if sha1.Sum(mask[:]) != stored {
		t.Error("mysql_native_password: the server would refuse")
	}
	answer = ScrambleSHA2(nonce, "secret")
	once2 := sha256.Sum256([]byte("secret"))
	stored2 := sha256.Sum256(once2[:])
	mask2 := sha256.Sum256(append(append([]byte(nil), stored2[:]...), nonce...))
	for i := range mask2 {
		mask2[i] ^= answer[i]
	}
	if sha256.Sum256(mask2[:]) != stored2 {
		t.Error("caching_sha2_password: the server would refuse")
	}
	for _, plugin := range []string{PluginNative, PluginCachingSHA2} {
		a := ClientAuth{Password: "secret"}
		_, answer, err := a.Start(plugin, nonce)
		if err != nil || !VerifyScramble(plugin, nonce, answer, "secret") {
			t.Errorf("%s: own answer refused (%v)", plugin, err)
		}
		for _, wrong := range []string{"", "Secret", "secret "} {
			if VerifyScramble(plugin, nonce, answer, wrong) {
				t.Errorf("%s: accepted for %q", plugin, wrong)
			}
		}
		if VerifyScramble(plugin, nonce, nil, "secret") || VerifyScramble(plugin, nonce, answer[:10], "secret") {
			t.Errorf("%s: a short answer was accepted", plugin)
		}
		if !VerifyScramble(plugin, nonce, nil, "") {
			t.Errorf("%s: an empty password was refused", plugin)
		}
	}
	if VerifyScramble("other", nonce, nil, "") {
		t.Error("an unknown plugin was accepted")
	}
}

// Whatever the secret is made from, the result is an Ed25519 signature under
// the public point, which the standard library can check.
func TestEd25519(t *testing.T) {
	message := bytes.Repeat([]byte{7}, 32)
	sig, err := Ed25519Sign(message, "secret")
	if err != nil {
		t.Fatal(err)
	}
	key := ed25519Public(t, "secret")
	if !ed25519.Verify(key, message, sig) {
		t.Error("the server would refuse")
	}
	if ed25519.Verify(ed25519Public(t, "other"), message, sig) {
		t.Error("another password's key verifies")
	}
}

func ed25519Public(t *testing.T, password string) ed25519.PublicKey {
	t.Helper()
	h := sha512Of(password)
	s, err := edwards25519.NewScalar().SetBytesWithClamping(h[:32])
	if err != nil {
		t.Fatal(err)
	}
	return new(edwards25519.Point).ScalarBaseMult(s).Bytes()
}

func TestClientAuthFull(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	pemKey := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})

	a := ClientAuth{Password: "secret"}
	if _, _, err := a.Start(PluginNative, nonce); err != nil {
		t.Fatal(err)
	}
	sw := AuthSwitch{Plugin: PluginCachingSHA2, Data: []byte("ABCDEFGHIJKLMNOPQRST")}
	reply, send, _, err := a.Step(sw.Append(nil), 0)
	if err != nil || !send || !VerifyScramble(PluginCachingSHA2, sw.Data, reply, "secret") {
		t.Fatalf("auth switch: %x, %v", reply, err)
	}
	reply, send, _, err = a.Step(AppendAuthMore(nil, []byte{4}), 0)
	if err != nil || !send || !bytes.Equal(reply, []byte{2}) {
		t.Fatalf("full authentication: %x, %v", reply, err)
	}
	reply, send, _, err = a.Step(AppendAuthMore(nil, pemKey), 0)
	if err != nil || !send {
		t.Fatal(err)
	}
	plain, err := rsa.DecryptOAEP(sha1.New(), rand.Reader, key, reply, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range plain {
		plain[i] ^= sw.Data[i%len(sw.Data)]
	}
	if string(plain) != "secret\x00" {
		t.Fatalf("password %q", plain)
	}
	ok := OK{}
	if _, send, done, err := a.Step(ok.Append(nil, 0), 0); err != nil || send || !done {
		t.Fatal(done, err)
	}
}

func TestClientAuthEnds(t *testing.T) {
	e := AccessDenied("u", "h", true)
	for name, c := range map[string]struct {
		secure bool
		in     []byte
		reply  string
		fails  error
	}{
		"fast":                   {false, AppendAuthMore(nil, FastAuthOK), "", nil},
		"full over TLS":          {true, AppendAuthMore(nil, []byte{4}), "secret\x00", nil},
		"refused":                {false, e.Append(nil, ClientProtocol41), "", e},
		"clear text, open line":  {false, (&AuthSwitch{Plugin: PluginClear}).Append(nil), "", ErrAuthPlugin},
		"clear text, over TLS":   {true, (&AuthSwitch{Plugin: PluginClear}).Append(nil), "secret\x00", nil},
		"unknown plugin":         {true, (&AuthSwitch{Plugin: "dialog"}).Append(nil), "", ErrAuthPlugin},
		"password hash of 1998":  {true, []byte{0xfe}, "", ErrMalformed},
		"empty":                  {true, nil, "", ErrMalformed},
		"a key that is no key":   {false, AppendAuthMore(nil, []byte("xx")), "", ErrMalformed},
		"something else instead": {false, []byte{7}, "", ErrMalformed},
	} {
		a := ClientAuth{Password: "secret", Secure: c.secure}
		if _, _, err := a.Start(PluginCachingSHA2, nonce); err != nil {
			t.Fatal(err)
		}
		reply, _, done, err := a.Step(c.in, ClientProtocol41)
		if string(reply) != c.reply || done || !errors.Is(err, c.fails) {
			t.Errorf("%s: %q, %t, %v", name, reply, done, err)
		}
	}
}
