package postgres

import pg "freshet/protocol/postgres"

// Shutdown implements proxy.Handler: a session that is at rest is told what
// PostgreSQL's own shutdown tells (57P01).
func (h *handler) Shutdown(now bool) {
	resting := h.stage != stageReady || h.replies.Idle() && h.tx == pg.TxIdle && !h.batch && !h.waiting && h.claim == nil
	if h.stage == stageClosed || !now && !resting {
		return
	}
	h.fatal("57P01", "terminating connection due to administrator command")
}
