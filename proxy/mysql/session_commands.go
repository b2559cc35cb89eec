package mysql

import (
	"context"

	wire "freshet/protocol/mysql"
)

// ping is answered here, since it asks whether the server that the client sees
// is there; unless a link is held, whose ROW_COUNT() it makes 0, and whose
// warnings its OK counts on MySQL.
func (h *handler) ping() bool {
	if h.stage.answered {
		return true
	}
	if h.s.Link != nil {
		return h.relay([]byte{byte(wire.ComPing)})
	}
	h.past.none()
	h.ok()
	return true
}

func (h *handler) quit() bool {
	h.leave()
	h.close()
	return true
}

// resetConnection takes COM_RESET_CONNECTION. What it leaves is found out once
// and is the same ever after, so that it costs the upstream nothing.
func (h *handler) resetConnection() bool {
	reset := h.base.reset.Load()
	if reset == nil && h.stage.linkErr == nil {
		h.learnReset()
		return false
	}
	if reset == nil {
		h.fail(h.linkError(h.stage.linkErr))
		return true
	}
	h.forget()
	h.settings, h.shows = *reset, h.base.shows
	h.rekey()
	h.ok()
	return true
}

// learnReset has it found out, off the loop.
func (h *handler) learnReset() {
	h.s.Blocked = true
	u, key, b := h.s.Upstream, h.linkKey(), h.base
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), u.ConnectTimeout)
		defer cancel()
		err := learnReset(ctx, u, key, b)
		h.s.Post(func() {
			h.stage.linkErr = err
			h.s.Unblock()
		})
	}()
}

// forget makes the session's state a fresh one's, but for its database. What
// it left on a link goes with the link.
func (h *handler) forget() {
	if h.s.Link != nil {
		h.s.DropLink()
	}
	h.s.ResetOptions()
	h.hold, h.owed = 0, owed{}
	h.status, h.between = h.base.status, true
	h.held, h.calm = nil, false
	h.settings = nil
	h.statements = nil
	h.lastID = 0
	h.withheld = nil
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
	if h.mariadb() {
		// Of its effect on sql_mode nothing is left: only a login of its own has it.
		h.caps &^= wire.ClientIgnoreSpace
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
