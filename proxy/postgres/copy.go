package postgres

import (
	pg "freshet/protocol/postgres"
)

// copyMessage passes the client's side of a COPY on. Outside of one the server
// ignores these messages.
func (h *handler) copyMessage(kind byte, frame []byte) bool {
	if h.s.Link == nil || h.replies.Idle() && !h.passthrough {
		return true
	}
	if kind != pg.TypeCopyData {
		h.push(pg.ReplyCopyEnd, pg.ActionForward, &op{})
	}
	h.send(frame)
	return true
}
