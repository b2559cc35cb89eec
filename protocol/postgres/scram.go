package postgres

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/xdg-go/scram"
	"github.com/xdg-go/stringprep"
)

// The SASL mechanisms offered. The -PLUS variant binds the proof to the TLS
// connection (RFC 5802, section 6), so it needs one.
const (
	MechanismSCRAM     = "SCRAM-SHA-256"
	MechanismSCRAMPlus = "SCRAM-SHA-256-PLUS"
)

// scramIterations is the server's default (scram_iterations). It is paid once
// for each Verifier here, and by each client for each login.
const scramIterations = 4096

// ErrAuthFailed says that a client did not prove that it knows the password.
// It does not say whether the user exists.
var ErrAuthFailed = errors.New("postgres: password authentication failed")

// Errors of channel binding (SQLSTATE 28000): somebody stands between the client
// and the TLS connection that it believes to have.
var (
	// ErrBindingWithheld: the client could bind, but was told that we could not.
	ErrBindingWithheld = errors.New("SCRAM channel binding negotiation error")
	// ErrBindingDiffers: the client speaks TLS with another than us.
	ErrBindingDiffers = errors.New("SCRAM channel binding check failed")
)

// A Verifier holds what a server keeps of one password (RFC 5802, section 3).
// It is immutable and may be shared.
type Verifier struct {
	server *scram.Server
	mock   bool
}

// NewVerifier derives a verifier from a plain password, with a fresh salt.
func NewVerifier(password string) (*Verifier, error) {
	salt := make([]byte, 16)
	if _, err := rand.Read(salt); err != nil {
		return nil, fmt.Errorf("postgres: salt: %w", err)
	}
	return newVerifier(password, salt, false)
}

// NewMockVerifier makes a verifier that nobody can satisfy, for users that do
// not exist: the exchange looks like any other, and the salt is the same at
// each try because it comes from the user's name and a secret of the process.
func NewMockVerifier(user string, secret []byte) (*Verifier, error) {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(user))
	return newVerifier("", mac.Sum(nil)[:16], true)
}

func newVerifier(password string, salt []byte, mock bool) (*Verifier, error) {
	// A password that is not valid for SASLprep is used as it is, as the
	// server and libpq do.
	if prepared, err := stringprep.SASLprep.Prepare(password); err == nil {
		password = prepared
	}
	salted := make([]byte, sha256.Size)
	if !mock {
		var err error
		if salted, err = pbkdf2.Key(sha256.New, password, salt, scramIterations, sha256.Size); err != nil {
			return nil, fmt.Errorf("postgres: %w", err)
		}
	}
	storedKey := sha256.Sum256(hmacSHA256(salted, "Client Key"))
	credentials := scram.StoredCredentials{
		KeyFactors: scram.KeyFactors{Salt: string(salt), Iters: scramIterations},
		StoredKey:  storedKey[:],
		ServerKey:  hmacSHA256(salted, "Server Key"),
	}
	server, err := scram.SHA256.NewServer(func(string) (scram.StoredCredentials, error) {
		// The name in the exchange is ignored: the startup message named the user.
		return credentials, nil
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return &Verifier{server: server, mock: mock}, nil
}

func hmacSHA256(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// SCRAM is one login. First and Final are called once each, in that order.
type SCRAM struct {
	verifier *Verifier
	conv     *scram.ServerConversation
	binds    bool
}

// Begin starts a login. endPoint is the TLS connection's tls-server-end-point
// (RFC 5929, section 4); without one no channel binding is offered.
func (v *Verifier) Begin(endPoint []byte) *SCRAM {
	if len(endPoint) == 0 {
		return &SCRAM{verifier: v, conv: v.server.NewConversation()}
	}
	binding := scram.ChannelBinding{Type: scram.ChannelBindingTLSServerEndpoint, Data: endPoint}
	return &SCRAM{verifier: v, conv: v.server.NewConversationWithChannelBinding(binding), binds: true}
}

// Mechanisms are those to offer, the better one first.
func (s *SCRAM) Mechanisms() []string {
	if s.binds {
		return []string{MechanismSCRAMPlus, MechanismSCRAM}
	}
	return []string{MechanismSCRAM}
}

// First takes the client's first message (RFC 5802, section 7) and returns
// what AuthSASLContinue carries. An error is a violation of the protocol
// (SQLSTATE 08P01) or ErrBindingWithheld, not a wrong password.
func (s *SCRAM) First(m *SASLInitialResponse) ([]byte, error) {
	plus := string(m.Mechanism) == MechanismSCRAMPlus
	if string(m.Mechanism) != MechanismSCRAM && (!plus || !s.binds) {
		return nil, &MalformedError{Type: TypePassword, Reason: "client selected an invalid SASL authentication mechanism"}
	}
	// The flag says what the client does about binding: p, does; y, could; n, cannot.
	flag := byte(0)
	if len(m.Data) > 0 {
		flag = m.Data[0]
	}
	switch {
	case plus != (flag == 'p'):
		return nil, &MalformedError{Type: TypePassword, Reason: "malformed SCRAM message"}
	case s.binds && flag == 'y':
		return nil, ErrBindingWithheld
	}
	reply, err := s.conv.Step(string(m.Data))
	if err != nil {
		return nil, &MalformedError{Type: TypePassword, Reason: "malformed SCRAM message"}
	}
	if s.conv.AuthzID() != "" {
		return nil, &MalformedError{Type: TypePassword, Reason: "client uses authorization identity, but it is not supported"}
	}
	return []byte(reply), nil
}

// Final takes the client's proof and returns what AuthSASLFinal carries, or
// ErrAuthFailed or ErrBindingDiffers.
func (s *SCRAM) Final(m *SASLResponse) ([]byte, error) {
	reply, err := s.conv.Step(string(m.Data))
	if err != nil && reply == scram.ErrChannelBindingsDontMatch {
		return nil, ErrBindingDiffers
	}
	if err != nil || !s.conv.Valid() || s.verifier.mock {
		return nil, ErrAuthFailed
	}
	return []byte(reply), nil
}
