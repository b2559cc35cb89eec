package mysql

import (
	wire "freshet/protocol/mysql"
)

// closeStatement takes COM_STMT_CLOSE, which has no reply.
func (h *handler) closeStatement(p []byte) bool {
	id, err := wire.DecodeStatementID(p)
	s := h.statements[id]
	if err != nil || s == nil {
		return true
	}
	delete(h.statements, id)
	if h.s.Link == nil {
		return true
	}
	ps := &h.link().prepared
	if pr := ps.get(s, nil, true); pr != nil {
		ps.remove(pr.id)
		h.silent(wire.AppendStatementCommand(nil, wire.ComStmtClose, pr.id))
	}
	h.holdStatements()
	if h.conclude(); len(h.queue) > 0 {
		h.concluding = true
	}
	return true
}

// resetStatement takes COM_STMT_RESET: only a cursor or values sent ahead make
// it more than an OK.
func (h *handler) resetStatement(p []byte) bool {
	s, consumed := h.addressed(p)
	if s == nil {
		return consumed
	}
	s.broken = nil
	pr := h.here(s)
	switch {
	case pr != nil:
	case h.s.Link != nil:
		// There is nothing to reset there, but ROW_COUNT() and the warnings
		// are as after the command.
		return h.forward([]byte{byte(wire.ComPing)}, expect{cmd: wire.ComPing, first: 1})
	default:
		h.past.none()
		h.ok()
		return true
	}
	return h.forward(wire.AppendStatementCommand(nil, wire.ComStmtReset, pr.id), expect{cmd: wire.ComStmtReset, first: 1, stmt: s})
}

// here finds a statement's own upstream twin on the attached link, if it has
// something there.
func (h *handler) here(s *statement) *prepared {
	if h.s.Link == nil || !s.cursor && !s.longData {
		return nil
	}
	return h.link().prepared.get(s, nil, true)
}

// fetch takes COM_STMT_FETCH.
func (h *handler) fetch(p []byte) bool {
	if h.stage.answered {
		return true
	}
	f, err := wire.DecodeFetch(p)
	if err != nil {
		return h.malformed()
	}
	s := h.statements[f.StatementID]
	if s == nil {
		return h.unknownStatement(p, f.StatementID)
	}
	pr := h.here(s)
	if pr == nil {
		h.fail(wire.NewError(wire.ErrNumNoCursor, "The statement (%d) has no open cursor.", s.id))
		return true
	}
	out := append(h.rebound[:0], p...)
	wire.PutStatementID(out, pr.id)
	h.rebound = out
	return h.forward(out, expect{cmd: wire.ComStmtFetch, first: 1, stmt: s})
}

// longData takes COM_STMT_SEND_LONG_DATA, which has no reply: what goes wrong
// is told when the statement is executed.
func (h *handler) longData(p []byte) bool {
	l, err := wire.DecodeLongData(p)
	s := h.statements[l.StatementID]
	if err != nil || s == nil || s.broken != nil {
		return true
	}
	if h.stage.linkErr != nil {
		s.broken = h.stage.linkErr
		return true
	}
	if h.s.Link == nil && !h.acquire() {
		return false
	}
	pr := h.link().prepared.get(s, nil, true)
	if pr == nil {
		return h.prepareForData(s)
	}
	s.longData = true
	h.hold |= holdLongData
	out := append(h.rebound[:0], p...)
	wire.PutStatementID(out, pr.id)
	h.rebound = out
	h.silent(out)
	return true
}

// prepareForData has the statement prepared on the link for its values. A
// failure must not be answered now.
func (h *handler) prepareForData(s *statement) bool {
	h.ask1(append([]byte{byte(wire.ComStmtPrepare)}, s.text...), expect{then: func(a *answer) {
		if a.failed {
			s.broken = a.err
			h.concluding = true
			return
		}
		h.remember(s, true, a.prepared.StatementID)
	}})
	return false
}
