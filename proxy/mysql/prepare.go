package mysql

import (
	wire "freshet/protocol/mysql"
)

// maxStatements bounds one session's prepared statements, as servers do.
const maxStatements = 16382

// prepare takes COM_STMT_PREPARE. The columns' description has to come from
// the upstream.
func (h *handler) prepare(p []byte) bool {
	if h.stage.answered {
		return true
	}
	text, err := wire.DecodePrepare(p)
	if err != nil {
		return h.malformed()
	}
	if len(h.statements) >= maxStatements {
		h.fail(wire.NewError(wire.ErrNumMaxPreparedStmts, "Can't create more than max_prepared_stmt_count statements (current value: %d)", maxStatements))
		return true
	}
	if !h.stage.asked {
		h.stage.asked = true
		h.s.Forwarded(nil, "a prepare")
	}
	eff := scanText(text, h.scope.SQLMode)
	var instead []byte
	if h.untold(eff) {
		text = scoped(text, h.scope.SQLMode)
		instead = append([]byte{byte(wire.ComStmtPrepare)}, text...)
	}
	s := &statement{text: string(text), meaning: h.meaning(), context: h.context, effects: eff}
	return h.forward(instead, expect{cmd: wire.ComStmtPrepare, first: h.commandSeq() + 1, stmt: s})
}

// prepared takes in the server's id for a statement and puts the session's own
// in its place.
func (h *handler) prepared(e *expect, hd wire.Header) action {
	if e.swallow {
		return actDrop
	}
	ok := h.reply.tracker.Prepared
	h.lastStmt++
	s := e.stmt
	s.id, s.params = h.lastStmt, int(ok.Params)
	ok.StatementID = s.id
	packet, mark := wire.BeginPacket(h.reply.packet[:0])
	h.reply.packet, _ = wire.EndPacket(ok.Append(packet, h.link().caps), mark, hd.Seq)
	return actReplace
}

// settleStatement keeps a statement that was prepared, and follows cursors and
// values sent ahead.
func (h *handler) settleStatement(e *expect, t *wire.Tracker) {
	s := e.stmt
	if s == nil {
		return
	}
	switch e.cmd {
	case wire.ComStmtPrepare:
		if t.Failed {
			return
		}
		if s.effects&effRead != 0 {
			s.plan = h.s.Upstream.Planner.Statement(h.scopeID, []byte(s.text), nil)
			h.s.Upstream.Planner.Make(s.plan, func() {})
		}
		if h.statements == nil {
			h.statements = map[uint32]*statement{}
		}
		h.statements[s.id] = s
		h.remember(s, false, t.Prepared.StatementID)
	case wire.ComStmtExecute:
		s.longData = false
		s.cursor = !t.Failed && t.Last.Status.Has(wire.StatusCursorExists)
	case wire.ComStmtFetch:
		s.cursor = s.cursor && !t.Failed && !t.Last.Status.Has(wire.StatusLastRowSent)
	case wire.ComStmtReset:
		s.cursor, s.longData = false, false
	}
	h.holdStatements()
}

// holdStatements holds the link while a statement has something there.
func (h *handler) holdStatements() {
	h.hold &^= holdCursor | holdLongData
	for _, s := range h.statements {
		if s.cursor {
			h.hold |= holdCursor
		}
		if s.longData {
			h.hold |= holdLongData
		}
	}
}
