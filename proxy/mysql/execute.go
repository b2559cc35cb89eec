package mysql

import (
	"bytes"
	"encoding/binary"

	"freshet/planner"
	wire "freshet/protocol/mysql"
)

// execute takes COM_STMT_EXECUTE.
func (h *handler) execute(p []byte) bool {
	s, consumed := h.addressed(p)
	if s == nil {
		return consumed
	}
	e, err := wire.DecodeExecute(p, h.caps, s.params)
	if err != nil {
		return h.malformed()
	}
	if e.NewTypes {
		s.types = e.AppendTypes(s.types[:0])
	}
	if s.effects&effRowCount != 0 && h.past.lost() {
		// Also after a wait: preparing it here may have cost the link its past.
		h.rowCount([]byte(s.text), true)
		return true
	}
	if !h.stage.asked {
		// A cursor's answer comes in parts; values sent ahead are not in the
		// packet; attributes are read by functions of the server's.
		mayRead := s.plan != nil && !e.Cursor() && !s.longData && e.Count == s.params && len(s.types) >= 2*s.params &&
			len(p) <= maxKeyText && h.mayLookup()
		if mayRead && h.hit(h.executeKey(s, &e)) {
			return true
		}
		if !h.considerExecute(s, &e, mayRead) {
			return h.stage.answered
		}
	}
	return h.sendExecute(p, s, &e)
}

// executeKey: what is executed is the text as it was understood when it was
// prepared, so that context is in the key as well as the present one. The
// plan's number stands for text and scope at that time; the number of
// parameters is its, so types, NULLs and values cannot run into each other.
func (h *handler) executeKey(s *statement, e *wire.Execute) []byte {
	k := h.startKey(kindExecute)
	k = binary.LittleEndian.AppendUint64(k, s.context)
	k = binary.LittleEndian.AppendUint64(k, s.plan.ID)
	k = append(k, s.types[:2*s.params]...)
	k = append(k, e.Nulls...)
	k = append(k, e.Values...)
	h.s.KeepKey(k)
	return k
}

// considerExecute is consider for a prepared statement.
func (h *handler) considerExecute(s *statement, e *wire.Execute, mayRead bool) bool {
	h.stage.effects = s.effects
	switch {
	case s.plan == nil:
		h.s.Forwarded(nil, "not a read")
	case !mayRead:
		return h.goBy(s.plan)
	default:
		if !h.locate(s, e) {
			h.s.Forwarded(s.plan, "its parameters cannot be read")
			break
		}
		return h.ask(s.plan, func() []byte { return h.executeKey(s, e) }, h.params)
	}
	h.stage.asked = true
	return true
}

// locate finds the parameters' values for the planner.
func (h *handler) locate(s *statement, e *wire.Execute) bool {
	var err error
	h.located, err = e.Params(h.located[:0], s.types)
	h.params = h.params[:0]
	for _, p := range h.located {
		h.params = append(h.params, planner.Param{Null: p.Null, Binary: true, Type: uint32(p.Type), Data: p.Data})
	}
	return err == nil
}

// sendExecute forwards an execution.
func (h *handler) sendExecute(p []byte, s *statement, e *wire.Execute) bool {
	if s.broken != nil {
		h.fail(h.linkError(s.broken))
		s.broken, s.longData = nil, false
		return true
	}
	if !h.haveLink() || !h.prime(h.stage.effects) {
		return h.stage.answered
	}
	pr, ready := h.ensurePrepared(s, s.types, e.Cursor() || s.longData)
	if !ready {
		return h.stage.answered
	}
	return h.forward(h.rebind(p, e, s.types, pr), expect{cmd: wire.ComStmtExecute, first: h.commandSeq() + 1, stmt: s})
}

// rebind makes of a client's execution the link's: with its twin there, and
// with the types if the client relies on those it sent before and the twin was
// not executed yet, or, being private, with others.
func (h *handler) rebind(p []byte, e *wire.Execute, types []byte, pr *prepared) []byte {
	out := h.rebound[:0]
	known := pr.typed && bytes.Equal(pr.types, types)
	if e.Count > 0 && !e.NewTypes && !known && len(types) >= 2*e.Count {
		flag := len(p) - len(e.Values) - 1
		out = append(append(out, p[:flag]...), 1)
		out = e.AppendRawTypes(out, types)
		out = append(out, e.Values...)
	} else {
		out = append(out, p...)
	}
	if !known {
		pr.typed, pr.types = true, append(pr.types[:0], types...)
	}
	wire.PutStatementID(out, pr.id)
	h.rebound = out
	return out
}
