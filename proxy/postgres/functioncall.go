package postgres

import (
	pg "freshet/protocol/postgres"
)

// functionCall forwards a call of a function by its number, whose effects
// nobody knows here.
func (h *handler) functionCall(frame []byte) bool {
	if !h.upstream() {
		return false
	}
	h.s.Forwarded(nil, "a function call by number")
	h.effects(nil, nil, nil, true)
	if h.replies.Push(pg.ReplyFunctionCall, pg.ActionForward, &op{}) {
		h.batch = false
	}
	h.send(frame)
	h.s.Sent()
	return true
}
