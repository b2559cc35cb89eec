package postgres

import (
	"errors"

	pg "freshet/protocol/postgres"
)

// askProof starts SCRAM-SHA-256, which over TLS may be bound to the connection. An unknown user goes through the same steps
// as a known one. When the DSN has no password, the upstream asks its user for
// none, and neither do we.
func (h *handler) askProof(user string) {
	if user == h.s.Upstream.Target.User {
		h.challenge(h.shared.verifier)
		return
	}
	known := h.s.Upstream.User(user)
	if known == nil {
		verifier, err := pg.NewMockVerifier(user, h.shared.mockSecret)
		h.verified(verifier, err)
		return
	}
	if verifier := h.shared.verifiers.get(known); verifier != nil {
		h.challenge(verifier)
		return
	}
	// Off the loop: it takes a millisecond, by intention (RFC 5802, section 2.2).
	h.s.Blocked = true
	go func() {
		verifier, err := h.shared.verifiers.make(known)
		h.s.Post(func() {
			if h.stage == stageStartup {
				h.verified(verifier, err)
			}
			h.s.Unblock()
		})
	}()
}

func (h *handler) verified(verifier *pg.Verifier, err error) {
	if err != nil {
		h.s.Log().Error("login", "cause", err)
		h.fatal("58000", "internal error during authentication")
		return
	}
	h.challenge(verifier)
}

// challenge begins the exchange; nil is for a user without a password.
func (h *handler) challenge(verifier *pg.Verifier) {
	if verifier == nil {
		h.loggedIn(nil)
		return
	}
	h.login = verifier.Begin(h.s.ChannelBinding())
	ask := pg.Authentication{Kind: pg.AuthSASL, Data: pg.AppendMechanisms(nil, h.login.Mechanisms()...)}
	h.s.Write(ask.Append(nil))
	h.stage = stageLogin
}

// loginData takes the two messages of the exchange.
func (h *handler) loginData(in []byte) int {
	n := 0
	for h.stage == stageLogin {
		kind, body, size, err := pg.Next(in[n:], pg.MaxSmallLen)
		switch {
		case err != nil || size > 0 && kind != pg.TypePassword && kind != pg.TypeTerminate:
			h.s.Malformed()
			h.fatal("08P01", "expected SASL response, got message type "+itoa(int(kind)))
			return len(in)
		case size == 0:
			return n
		}
		n += size
		if kind == pg.TypeTerminate {
			h.terminate()
			return n
		}
		h.loginMessage(body)
	}
	return n
}

func (h *handler) loginMessage(body []byte) {
	if !h.saslStarted() {
		h.saslFirst(body)
		return
	}
	final, err := h.login.Final(&pg.SASLResponse{Data: body})
	switch {
	case errors.Is(err, pg.ErrBindingDiffers):
		h.fatal("28000", err.Error())
		return
	case err != nil:
		h.fatal("28P01", `password authentication failed for user "`+h.s.User+`"`)
		return
	}
	h.loggedIn((&pg.Authentication{Kind: pg.AuthSASLFinal, Data: final}).Append(nil))
}

// saslStarted: the first message was taken. The key is made with it.
func (h *handler) saslStarted() bool { return h.key.Secret != nil }

func (h *handler) saslFirst(body []byte) {
	var first pg.SASLInitialResponse
	err := first.Decode(body)
	var reply []byte
	if err == nil {
		reply, err = h.login.First(&first)
	}
	if errors.Is(err, pg.ErrBindingWithheld) {
		h.fatal("28000", err.Error())
		return
	}
	if err != nil {
		h.s.Malformed()
		reason := "malformed SCRAM message"
		if m := (*pg.MalformedError)(nil); errors.As(err, &m) {
			reason = m.Reason
		}
		h.fatal("08P01", reason)
		return
	}
	if err := h.makeKey(); err != nil {
		h.s.Log().Error("login", "cause", err)
		h.fatal("58000", "internal error during authentication")
		return
	}
	h.s.Write((&pg.Authentication{Kind: pg.AuthSASLContinue, Data: reply}).Append(nil))
}

// loggedIn greets the client, once it is known what a link of its pool key is
// told: for the first client of a key that takes opening one.
func (h *handler) loggedIn(before []byte) {
	if !h.saslStarted() {
		if err := h.makeKey(); err != nil {
			h.s.Log().Error("login", "cause", err)
			h.fatal("58000", "internal error during authentication")
			return
		}
	}
	h.login = nil
	h.s.Write(before)
	if g := h.shared.greeting(h.poolKey); g != nil {
		h.greet(g)
		return
	}
	h.stage = stageGreet
	if h.acquire() {
		h.greetFromLink()
	}
}

// greetFromLink: a link has been opened, so its greeting is known now.
func (h *handler) greetFromLink() {
	if g := h.shared.greeting(h.poolKey); g != nil {
		h.greet(g)
		return
	}
	h.fatal("58000", "the upstream's greeting was lost")
}

func (h *handler) greet(g *greeting) {
	h.state, h.scope = g.state, g.scope
	h.context = h.s.Upstream.Context(h.state.context(h.poolKey))
	h.stage = stageReady
	h.s.LoggedIn()
	out := (&pg.Authentication{Kind: pg.AuthOK}).Append(nil)
	for _, p := range g.parameters {
		out = (&pg.ParameterStatus{Name: []byte(p.Name), Value: []byte(p.Value)}).Append(out)
	}
	out = h.key.Append(out)
	h.s.Write((&pg.ReadyForQuery{Status: pg.TxIdle}).Append(out))
	if h.s.Link != nil && !h.passthrough {
		h.release()
	}
}
