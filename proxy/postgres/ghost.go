package postgres

import pg "freshet/protocol/postgres"

// ghost is the unnamed portal as a client in a transaction knows it, when a run
// that made it, or a simple query that ended it, was answered without the link.
// Hardly any client speaks of it again; for one that does, the run is played
// upstream first.
type ghost struct {
	s    *statement // nil: there is no unnamed portal
	bind []byte     // the Bind's body
}

// abortedTransaction is the server's error for what it does not run because of
// an earlier one in the transaction.
func abortedTransaction() []byte {
	return pg.AppendError(nil, pg.SeverityError, "25P02", "current transaction is aborted, commands ignored until end of transaction block")
}

// leavesPortal notes a run that was answered here.
func (h *handler) leavesPortal(u *found) {
	if h.tx == pg.TxOpen {
		h.ghost = &ghost{s: h.statements.get(u.name), bind: clone(u.bound)}
	}
}

// losesPortal notes a simple query that was answered here.
func (h *handler) losesPortal() {
	if h.tx == pg.TxOpen {
		h.ghost = &ghost{}
	}
}

// haunt brings the link's unnamed portal to where the client believes it to be,
// before a message that speaks of it. It tells false when that has to wait.
func (h *handler) haunt(portal []byte) bool {
	g := h.ghost
	if g == nil || len(portal) > 0 {
		return true
	}
	if g.s != nil && h.tx == pg.TxFailed {
		// Nothing can be played any more; the server would run it as little.
		h.failUpstream(abortedTransaction())
		return true
	}
	if g.s == nil {
		if !h.upstream() {
			return false
		}
		h.ghost = nil
		h.push(pg.ReplyClose, pg.ActionSwallow, &op{})
		h.send((&pg.Close{Target: pg.TargetPortal}).Append(nil))
		return true
	}
	_, _, tail, ok := pg.BindNames(g.bind)
	if !ok {
		return true
	}
	if !h.upstream() {
		return false
	}
	alias, at := h.onLink(g.s)
	if at == placeWaiting {
		return false
	}
	h.ghost = nil
	h.setPortal(nil, g.s)
	h.push(pg.ReplyBind, pg.ActionSwallow, &op{undo: h.losePortal(nil)})
	h.send(pg.AppendBindAs(nil, nil, []byte(alias), tail))
	h.push(pg.ReplyExecute, pg.ActionSwallow, &op{})
	h.send((&pg.Execute{}).Append(nil))
	return true
}
