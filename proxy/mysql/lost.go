package mysql

import (
	wire "freshet/protocol/mysql"
)

// LinkLost implements proxy.Handler. A reply that the client has seen a part
// of cannot be ended; a transaction, or state that was on the link, is gone,
// and the client must not go on as if it were not.
func (h *handler) LinkLost(err error) {
	// Also LAST_INSERT_ID() of an INSERT that has just been made: a wrong one would be
	// written into other tables.
	gone := h.inTransaction() && !h.between || h.hold&lasting != 0 || h.phase == phaseFile || h.owed.lastID || h.s.KeepsLink() != ""
	pending, first, started := h.pendingReply()
	h.losePast()
	h.abandonReplies()
	h.owed = owed{}
	h.hold &^= soft
	switch {
	case started:
		h.close()
	case pending:
		e := wire.NewError(wire.ErrNumServerShutdown, "freshet: the connection to the upstream was lost%s", because(err))
		h.send(first, e.Append(nil, h.caps))
		if gone {
			h.close()
			return
		}
		h.resume()
	case gone:
		h.close()
	default:
		// A command that waited for its statement to be prepared is offered
		// again and finds another link, within bounds.
		h.stage.plans++
		if h.stage.plans > maxPlans {
			h.stage.linkErr = err
		}
		h.resume()
	}
}

// losePast notes what nobody knows any more of the statements before, so that a
// question for it gets an error and no wrong answer.
func (h *handler) losePast() {
	p := &h.past
	p.lostFound = p.lostFound || h.owed.found || p.calculated && !p.foundElsewhere
	p.yielded = p.yielded || h.hold&holdDiagnostics != 0
	p.away()
}

// pendingReply finds the client's command among what was awaited.
func (h *handler) pendingReply() (pending bool, first uint8, started bool) {
	for i := range h.queue {
		if !h.queue[i].swallow {
			return true, h.queue[i].first, i == 0 && h.reply.started
		}
	}
	return false, 0, false
}

func (h *handler) resume() {
	if h.s.Blocked && h.phase == phaseCommand {
		h.s.Unblock()
	}
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}
