package mysql

import (
	wire "freshet/protocol/mysql"
)

// ping is answered here: it asks whether the server the client sees is there.
func (h *handler) ping() bool {
	h.ok()
	return true
}

func (h *handler) quit() bool {
	h.close()
	return true
}

// resetConnection takes COM_RESET_CONNECTION.
func (h *handler) resetConnection() bool {
	h.forget()
	h.settings = h.base.reset
	h.rekey()
	h.ok()
	return true
}

// forget makes the session's state a fresh one's, but for its database. What
// it left on a link goes with the link.
func (h *handler) forget() {
	if h.s.Link != nil {
		h.s.DropLink()
	}
	h.hold, h.owed = 0, owed{}
	h.status = h.base.status
	h.settings = nil
	h.statements = nil
	h.lastID = 0
	h.past = past{}
}

// changeUser takes COM_CHANGE_USER: a login on the same connection.
func (h *handler) changeUser(p []byte) bool {
	c, err := wire.DecodeChangeUser(p, h.caps)
	if err != nil {
		return h.malformed()
	}
	h.forget()
	if c.Collation != 0 {
		h.collation = c.Collation
	}
	h.login.user, h.login.database = string(c.User), string(c.Database)
	h.login.seq = h.commandSeq() + 1
	if !h.caps.Has(wire.ClientPluginAuth) {
		h.judge(c.Auth)
		return true
	}
	h.login.plugin = h.up.greeting.Load().plugin
	h.switchPlugin()
	return true
}
