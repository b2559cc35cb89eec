package postgres

import (
	pg "freshet/protocol/postgres"
)

// close forwards a Close. A statement is only the session's: it is taken out,
// and the answer is made up in its turn.
func (h *handler) close(body, frame []byte) bool {
	var m pg.Close
	if m.Decode(body) != nil {
		return h.forwardRaw(pg.ReplyClose, frame)
	}
	if h.native && !h.present(&h.nativeIs) {
		return false
	}
	if m.Target == pg.TargetStatement && !h.native {
		c := h.statements.change(string(m.Name), nil)
		h.makeUp(pg.ReplyClose, &op{made: pg.CloseComplete.Append(nil),
			done: func() { h.statements.confirm(c) }, undo: func() { h.statements.cancel(c) }})
		return true
	}
	if h.s.Link == nil && h.quiet() {
		h.s.Write(pg.CloseComplete.Append(nil)) // no portal outlives its batch
		return true
	}
	if !h.upstream() {
		return false
	}
	o := &op{}
	if m.Target == pg.TargetStatement {
		c := h.statements.change(string(m.Name), nil)
		o.done, o.undo = func() { h.statements.confirm(c) }, func() { h.statements.cancel(c) }
	} else {
		delete(h.portals, string(m.Name))
	}
	h.batch = true
	h.replies.Push(pg.ReplyClose, pg.ActionForward, o)
	h.send(frame)
	return true
}

// makeUp answers a message here, at once or when its turn comes.
func (h *handler) makeUp(kind pg.ReplyKind, o *op) {
	h.replies.Push(kind, pg.ActionMakeUp, o)
	h.tellMade()
}

// tellMade writes what is due of the replies that are made up.
func (h *handler) tellMade() {
	for e, ok := h.replies.Made(); ok; e, ok = h.replies.Made() {
		h.s.Write(e.Ref.made)
		e.Ref.finish()
	}
}
