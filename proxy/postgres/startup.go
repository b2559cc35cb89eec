package postgres

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	pg "freshet/protocol/postgres"
)

// newestProtocol is the newest minor version that is spoken to clients. What
// 3.2 adds (longer cancellation keys) ends here, so it does not depend on the
// upstream.
const newestProtocol = pg.ProtocolVersion32

// startupData takes the packets before the session: requests for encryption,
// for another session's end, or the startup message.
func (h *handler) startupData(in []byte) int {
	if h.startsDirectly(in) {
		return 0
	}
	n := 0
	for h.stage == stageStartup && !h.s.Blocked {
		body, size, err := pg.NextStartup(in[n:])
		if err != nil {
			h.s.Malformed()
			h.fatal("08P01", "invalid length of startup packet")
			return len(in)
		}
		if size == 0 {
			return n
		}
		n += size
		h.startupPacket(body, len(in)-n)
	}
	if h.stage == stageLogin {
		n += h.loginData(in[n:])
	}
	return n
}

// startupPacket takes one packet; more bytes have come after it.
func (h *handler) startupPacket(body []byte, more int) {
	kind, err := pg.KindOfStartup(body)
	if err != nil {
		h.s.Malformed()
		h.fatal("08P01", "invalid startup packet")
		return
	}
	switch kind {
	case pg.StartupSSL, pg.StartupGSSENC:
		h.encryption(kind, more)
	case pg.StartupCancel:
		h.cancelRequest(body)
	case pg.StartupSession:
		h.begin(body)
	default:
		version := binary.BigEndian.Uint32(body)
		h.fatal("0A000", fmt.Sprintf("unsupported frontend protocol %d.%d: server supports 3.0 to 3.2", version>>16, version&0xFFFF))
	}
}

// begin takes the startup message and asks for the client's proof.
func (h *handler) begin(body []byte) {
	if err := h.startup.Decode(body); err != nil {
		h.s.Malformed()
		h.fatal("08P01", "invalid startup packet layout: expected terminator as last byte")
		return
	}
	user, _ := h.startup.Get("user")
	switch {
	case user == "":
		h.fatal("28000", "no PostgreSQL user name specified in startup packet")
		return
	case h.s.Full:
		h.fatal("53300", "sorry, too many clients already")
		return
	case h.shared.broken != nil:
		h.s.Log().Error("upstream cannot be used", "cause", h.shared.broken)
		h.fatal("58000", "the proxy's upstream is not configured properly")
		return
	}
	if reply, needed := h.startup.Negotiate(newestProtocol); needed {
		h.s.Write(reply.Append(nil))
	}
	h.s.SetUser(user)
	h.poolKey = poolKey(&h.startup, h.s.OtherUser())
	var parameters map[string]string
	h.database, parameters = splitKey(h.poolKey)
	h.passthrough = replicates(parameters)
	if h.admitted() {
		h.askProof(user)
	}
}

// makeKey makes what the client must show to cancel: the process id is the
// session's number, the rest is random.
func (h *handler) makeKey() error {
	size := 4
	if h.startup.Version >= pg.ProtocolVersion32 {
		size = 32
	}
	h.key = pg.BackendKeyData{ProcessID: uint32(h.s.ID), Secret: make([]byte, size)}
	_, err := rand.Read(h.key.Secret)
	return err
}
