package postgres

import (
	pg "freshet/protocol/postgres"
)

// close forwards a Close.
func (h *handler) close(body, frame []byte) bool {
	var m pg.Close
	if m.Decode(body) != nil {
		return h.forwardRaw(pg.ReplyClose, frame)
	}
	if h.native && !h.present(&h.nativeIs) {
		return false
	}
	if m.Target == pg.TargetStatement && !h.native {
		h.closeStatement(m.Name)
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
	h.push(pg.ReplyClose, pg.ActionForward, o)
	h.send(frame)
	return true
}

// closeStatement closes a statement that is only the session's: it is taken
// out, and the link stays as it is. If answers are still to come, the server
// may not come to the Close; it is sent one of nothing, to tell in its turn.
func (h *handler) closeStatement(name []byte) {
	if h.replies.Len() == 0 {
		h.statements.set(string(name), nil)
		h.s.Write(pg.CloseComplete.Append(nil))
		return
	}
	c := h.statements.change(string(name), nil)
	h.push(pg.ReplyClose, pg.ActionForward, &op{
		done: func() { h.statements.confirm(c) }, undo: func() { h.statements.cancel(c) }})
	h.send((&pg.Close{Target: pg.TargetStatement, Name: []byte(h.shared.prefix + "none")}).Append(nil))
}
