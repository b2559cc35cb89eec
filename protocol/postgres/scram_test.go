package postgres

import (
	"errors"
	"strings"
	"testing"

	"github.com/xdg-go/scram"
)

// login plays a client's part with the library's own client; the header is
// exchanged for what other clients send ("n,," or, with TLS at hand, "y,,").
func login(t *testing.T, v *Verifier, password string) error {
	t.Helper()
	client, err := scram.SHA256.NewClient("", password, "")
	if err != nil {
		t.Fatal(err)
	}
	conv := client.NewConversation()
	first, err := conv.Step("")
	if err != nil {
		t.Fatal(err)
	}
	s := v.Begin(nil)
	reply, err := s.First(&SASLInitialResponse{Mechanism: []byte(MechanismSCRAM), Data: []byte(first)})
	if err != nil {
		return err
	}
	proof, err := conv.Step(string(reply))
	if err != nil {
		t.Fatal(err)
	}
	final, err := s.Final(&SASLResponse{Data: []byte(proof)})
	if err != nil {
		return err
	}
	if _, err := conv.Step(string(final)); err != nil || !conv.Valid() {
		t.Errorf("the client does not believe the server: %v", err)
	}
	return nil
}

func TestSCRAM(t *testing.T) {
	for _, password := range []string{"secret", "", "pä\u00a0ss", "Ⅸ"} {
		v, err := NewVerifier(password)
		if err != nil {
			t.Fatal(err)
		}
		if err := login(t, v, password); err != nil {
			t.Errorf("%q: %v", password, err)
		}
		if err := login(t, v, password+"x"); !errors.Is(err, ErrAuthFailed) {
			t.Errorf("%q, wrong: %v", password, err)
		}
	}
}

func TestMockVerifier(t *testing.T) {
	a, err := NewMockVerifier("nobody", []byte("k"))
	if err != nil {
		t.Fatal(err)
	}
	if err := login(t, a, ""); !errors.Is(err, ErrAuthFailed) {
		t.Errorf("got %v", err)
	}
	salt := func(v *Verifier) string {
		reply, err := v.Begin(nil).First(&SASLInitialResponse{Mechanism: []byte(MechanismSCRAM), Data: []byte("n,,n=,r=abc")})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(string(reply), ",")[1]
	}
	again, err := NewMockVerifier("nobody", []byte("k"))
	if err != nil {
		t.Fatal(err)
	}
	if salt(a) != salt(again) {
		t.Error("the salt changes between tries, which gives the user away")
	}
}

func TestSCRAMFirstMessages(t *testing.T) {
	v, err := NewVerifier("x")
	if err != nil {
		t.Fatal(err)
	}
	for data, ok := range map[string]bool{
		"n,,n=,r=abc":                        true, // libpq without TLS
		"y,,n=,r=abc":                        true, // libpq with TLS, -PLUS not offered
		"n,,n=*,r=abc":                       true, // JDBC
		"n,,n=user,r=abc":                    true, // lib/pq
		"p=tls-server-end-point,,n=,r=abc":   false,
		"n,a=other,n=,r=abc":                 false,
		"":                                   false,
		"n,,":                                false,
		"n,,m=ext,n=,r=abc":                  false,
		"\x00\xff":                           false,
		strings.Repeat(",", 10000):           false,
		"n,,n=" + strings.Repeat("=", 10000): false,
	} {
		_, err := v.Begin(nil).First(&SASLInitialResponse{Mechanism: []byte(MechanismSCRAM), Data: []byte(data)})
		if (err == nil) != ok {
			t.Errorf("%.40q: %v", data, err)
		}
	}
	if _, err := v.Begin(nil).First(&SASLInitialResponse{Mechanism: []byte("SCRAM-SHA-1"), Data: []byte("n,,n=,r=abc")}); err == nil {
		t.Error("another mechanism was accepted")
	}
}

// Under TLS: who binds must say so by mechanism and flag alike, who could bind but
// was told that we cannot is warned, and what is bound must be our connection.
func TestSCRAMBinding(t *testing.T) {
	v, err := NewVerifier("secret")
	if err != nil {
		t.Fatal(err)
	}
	ours := []byte("0123456789abcdef0123456789abcdef")
	for _, c := range []struct {
		mechanism, data string
		want            error // nil: let on; anything else than ErrBindingWithheld: malformed
	}{
		{MechanismSCRAM, "n,,n=,r=abc", nil},
		{MechanismSCRAMPlus, "p=tls-server-end-point,,n=,r=abc", nil},
		{MechanismSCRAM, "y,,n=,r=abc", ErrBindingWithheld},
		{MechanismSCRAM, "p=tls-server-end-point,,n=,r=abc", errors.ErrUnsupported},
		{MechanismSCRAMPlus, "n,,n=,r=abc", errors.ErrUnsupported},
		{MechanismSCRAMPlus, "y,,n=,r=abc", errors.ErrUnsupported},
		{MechanismSCRAMPlus, "p=tls-unique,,n=,r=abc", errors.ErrUnsupported},
		{MechanismSCRAMPlus, "p=,,n=,r=abc", errors.ErrUnsupported},
		{MechanismSCRAMPlus, "", errors.ErrUnsupported},
	} {
		_, err := v.Begin(ours).First(&SASLInitialResponse{Mechanism: []byte(c.mechanism), Data: []byte(c.data)})
		var malformed *MalformedError
		if c.want == nil && err != nil || c.want == ErrBindingWithheld && !errors.Is(err, c.want) || c.want == errors.ErrUnsupported && !errors.As(err, &malformed) {
			t.Errorf("%s %q: %v", c.mechanism, c.data, err)
		}
	}
	for theirs, want := range map[string]error{string(ours): nil, "another": ErrBindingDiffers} {
		client, err := scram.SHA256.NewClient("", "secret", "")
		if err != nil {
			t.Fatal(err)
		}
		conv := client.NewConversationWithChannelBinding(scram.ChannelBinding{Type: scram.ChannelBindingTLSServerEndpoint, Data: []byte(theirs)})
		first, err := conv.Step("")
		if err != nil {
			t.Fatal(err)
		}
		s := v.Begin(ours)
		reply, err := s.First(&SASLInitialResponse{Mechanism: []byte(MechanismSCRAMPlus), Data: []byte(first)})
		if err != nil {
			t.Fatal(err)
		}
		proof, err := conv.Step(string(reply))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Final(&SASLResponse{Data: []byte(proof)}); !errors.Is(err, want) {
			t.Errorf("bound to %s: %v", theirs, err)
		}
	}
}

func TestPlainAndMD5(t *testing.T) {
	salt := [4]byte{1, 2, 3, 4}
	if err := CheckMD5([]byte(MD5Password("u", "p", salt)), "u", "p", salt); err != nil {
		t.Error(err)
	}
	if err := CheckMD5([]byte(MD5Password("u", "q", salt)), "u", "p", salt); err == nil {
		t.Error("a wrong password passed")
	}
	if CheckCleartext([]byte("p"), "p") != nil || CheckCleartext([]byte("p\x00"), "p") == nil {
		t.Error("cleartext compares wrongly")
	}
}

func FuzzSCRAM(f *testing.F) {
	v, err := NewVerifier("x")
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("n,,n=,r=abc"), []byte("c=biws,r=abc,p=AAAA"))
	f.Fuzz(func(t *testing.T, first, final []byte) {
		s := v.Begin(nil)
		if _, err := s.First(&SASLInitialResponse{Mechanism: []byte(MechanismSCRAM), Data: first}); err != nil {
			return
		}
		if _, err := s.Final(&SASLResponse{Data: final}); err == nil {
			t.Error("a login without the password")
		}
	})
}
