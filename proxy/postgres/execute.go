package postgres

import (
	pg "freshet/protocol/postgres"
)

// execute forwards an Execute.
func (h *handler) execute(body, frame []byte) bool {
	var m pg.Execute
	if m.Decode(body) != nil {
		return h.forwardRaw(pg.ReplyExecute, frame)
	}
	if !h.upstream() || !h.haunt(m.Portal) {
		return false
	}
	o := &op{}
	var text []byte
	if s := h.portals[string(m.Portal)]; s != nil {
		o.st, text = s.st, s.text
	}
	if !h.considerNames(o.st, text) {
		return false
	}
	if h.claim == nil {
		h.noteForwarded(o.st, text)
	} else {
		o.capture = h.claim.capture
	}
	// The parameters may name settings; they were in the last Bind.
	h.effects(o, text, h.lastParams)
	h.push(pg.ReplyExecute, pg.ActionForward, o)
	h.send(frame)
	h.s.Sent()
	return true
}
