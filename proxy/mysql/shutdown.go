package mysql

import wire "freshet/protocol/mysql"

// Shutdown implements proxy.Handler: a session that is at rest is told what
// MySQL's own shutdown tells (ER_SERVER_SHUTDOWN).
func (h *handler) Shutdown(now bool) {
	resting := h.phase != phaseCommand || len(h.queue) == 0 && !h.s.Blocked && (!h.inTransaction() || h.between)
	if h.phase == phaseOver || !now && !resting {
		return
	}
	h.fatal(0, wire.NewError(wire.ErrNumServerShutdown, "Server shutdown in progress"))
}
