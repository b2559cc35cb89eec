package mysql

import (
	wire "freshet/protocol/mysql"
)

// executeBulk takes MariaDB's COM_STMT_BULK_EXECUTE. Its reply is that of an
// execution, and so is what follows from it. The statement's own twin executes
// it, with the types always, so that nobody else's are changed.
func (h *handler) executeBulk(p []byte) bool {
	s, consumed := h.addressed(p)
	if s == nil {
		return consumed
	}
	b, err := wire.DecodeBulkExecute(p, s.params)
	if err != nil {
		return h.malformed()
	}
	if b.Types == nil {
		b.Types = s.types
	}
	s.types = append(s.types[:0], b.Types...)
	h.stage.effects = s.effects
	if !h.stage.asked {
		h.stage.asked = true
		h.s.Forwarded(nil, "an execution in bulk")
	}
	if !h.haveLink() || !h.prime(s.effects) {
		return h.stage.answered
	}
	pr, ready := h.ensurePrepared(s, s.types, true)
	if !ready {
		return h.stage.answered
	}
	pr.typed, pr.types = true, append(pr.types[:0], s.types...)
	b.StatementID = pr.id
	h.rebound = b.Append(h.rebound[:0])
	return h.forward(h.rebound, expect{cmd: wire.ComStmtExecute, first: h.commandSeq() + 1, stmt: s})
}
