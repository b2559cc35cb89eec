package postgres

import (
	"freshet/planner"
	pg "freshet/protocol/postgres"
	"freshet/proxy"
)

// query takes a simple query.
func (h *handler) query(body, frame []byte) bool {
	var m pg.Query
	if m.Decode(body) != nil {
		return h.sendQuery(frame, nil, nil, nil) // the server's own error
	}
	if h.claim == nil && h.quiet() {
		done, ok := h.queryHere(m.Text)
		if done || !ok {
			return ok
		}
	}
	if h.claim == nil && h.tx == pg.TxOpen && h.replies.Idle() && !h.batch && !h.passthrough &&
		consoleKind(m.Text) != notConsole && h.consoleQuery(m.Text) {
		return true
	}
	st, ok := h.planned(m.Text, nil, nil)
	if !ok {
		return false
	}
	if h.claim == nil {
		h.noteForwarded(st, m.Text)
		h.claim = &claim{}
	}
	return h.sendQuery(frame, m.Text, st, h.claim.capture)
}

// queryHere answers a simple query without the link if it can (done), or
// decides how it is forwarded; ok is false when that has to wait.
func (h *handler) queryHere(text []byte) (done, ok bool) {
	if value, ok := h.takeJoined(); ok {
		h.answerQuery(value)
		return true, true
	}
	if h.transactQuery(text) {
		return true, true
	}
	if h.cacheable() && len(text) <= maxPlanned {
		k := append(h.s.Key(keyQuery, h.context), text...)
		value, ok := h.s.Lookup(k)
		h.s.KeepKey(k)
		if ok {
			h.answerQuery(value)
			return true, true
		}
	}
	if consoleKind(text) != notConsole && h.consoleQuery(text) {
		return true, true
	}
	st, ok := h.planned(text, nil, nil)
	if !ok {
		return false, false
	}
	if h.whyForward(st) != "" {
		h.forwardUnseen(st, h.whyForward(st))
		return false, true
	}
	k := append(h.s.Key(keyQuery, h.context), text...)
	miss, fill := h.s.Miss(k, st, nil)
	h.s.KeepKey(k)
	switch miss {
	case proxy.MissJoin:
		h.waiting = true
		return false, false
	case proxy.MissWait:
		h.awaitProof()
		return false, false
	case proxy.MissFill:
		h.claim = &claim{capture: &capture{session: h.s, fill: fill, described: true}}
	default:
		h.claim = &claim{}
	}
	return false, true
}

func (h *handler) answerQuery(value []byte) {
	h.heldRead = true
	h.statements.set("", nil) // a simple query ends the unnamed statement
	h.losesPortal()
	h.s.Write(value)
	h.s.Write(h.ready())
}

// noteForwarded notes a statement that goes upstream without a look at the
// cache. What it shows may be newer than what the feed has applied, and the
// session must not see anything older afterwards. The end of a transaction that
// has only read shows nothing: were it to count, a client whose driver opens one
// for every read would wait for the feed before each, and never hit while it
// asks faster than the feed proves.
func (h *handler) noteForwarded(st *planner.Statement, text []byte) {
	if !h.calm || len(text) > maxTransact || endsPlainly(text) == "" {
		h.wrote = true
	}
	if h.tx != pg.TxIdle && classOf(st) == planner.ClassRead {
		h.s.InTransaction(st)
		return
	}
	h.s.Forwarded(st, "")
}

func (h *handler) sendQuery(frame, text []byte, st *planner.Statement, c *capture) bool {
	if !h.upstream() || !h.considerNames(st, text) {
		return false
	}
	h.claim = nil
	o := &op{st: st, capture: c}
	h.effects(o, text, nil)
	h.pushQuery(o)
	h.send(frame)
	h.s.Sent()
	return true
}

// pushQuery notes a simple query as sent. It ends the unnamed statement, the
// session's and the link's, whatever comes of it.
func (h *handler) pushQuery(o *op) {
	h.link().loseUnnamed()
	h.ghost = nil
	c := h.statements.change("", nil)
	o.done = both(o.done, func() { h.statements.confirm(c) })
	o.dropped = both(o.undo, func() { h.statements.cancel(c) })
	h.pushSimple(pg.ReplyQuery, pg.ActionForward, o)
}

func (h *handler) send(frame []byte) { h.s.Link.Write(frame) }
