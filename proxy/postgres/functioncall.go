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
	o := &op{}
	h.effects(o, nil, nil)
	h.pushSimple(pg.ReplyFunctionCall, pg.ActionForward, o)
	h.send(frame)
	h.s.Sent()
	return true
}
