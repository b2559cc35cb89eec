package mysql

import (
	"strconv"

	"freshet/planner"
	wire "freshet/protocol/mysql"
)

// statement is one prepared statement of the client's. Its id is the
// session's own; on a link it is prepared when it is first needed there.
type statement struct {
	id      uint32
	text    string
	db      string // default database when it was prepared: names mean that
	params  int
	types   []byte // of the parameters, as last sent
	effects effects
	plan    *planner.Statement // nil when it is no read
	// cursor: one is open; longData: values were sent ahead.
	cursor, longData bool
	// broken is why values sent ahead went nowhere.
	broken error
}

// key names the statement in a link's set. A private one is not shared with
// equal statements, because a cursor and values sent ahead belong to one.
// (MySQL 9.7 also breaks the protocol when a statement that had a cursor is
// executed without one.)
func (s *statement) key(private bool) string {
	k := s.db + "\x00" + s.text
	if private {
		k += "\x00" + strconv.FormatUint(uint64(s.id), 10)
	}
	return k
}

// prepared is a statement on a link.
type prepared struct {
	id    uint32
	types []byte // as the server has them
	used  uint64
}

// maxPrepared bounds the statements of one link; servers allow 16382 together.
const maxPrepared = 100

// preparedSet is what is prepared on a link, by statement.key.
type preparedSet struct {
	byKey map[string]*prepared
	clock uint64
}

func (p *preparedSet) get(key string) *prepared {
	pr := p.byKey[key]
	if pr != nil {
		p.clock++
		pr.used = p.clock
	}
	return pr
}

func (p *preparedSet) has(id uint32) bool {
	for _, pr := range p.byKey {
		if pr.id == id {
			return true
		}
	}
	return false
}

// put adds a statement and returns the id of one that has to be closed for it,
// 0 for none.
func (p *preparedSet) put(key string, id uint32) (*prepared, uint32) {
	if p.byKey == nil {
		p.byKey = map[string]*prepared{}
	}
	var closed uint32
	if old := p.byKey[key]; old != nil {
		closed = old.id
	} else if len(p.byKey) >= maxPrepared {
		var oldest string
		for k, pr := range p.byKey {
			if oldest == "" || pr.used < p.byKey[oldest].used {
				oldest = k
			}
		}
		closed = p.byKey[oldest].id
		delete(p.byKey, oldest)
	}
	p.clock++
	pr := &prepared{id: id, used: p.clock}
	p.byKey[key] = pr
	return pr, closed
}

// remember adds a statement to the link's set.
func (h *handler) remember(s *statement, private bool, id uint32) *prepared {
	pr, closed := h.link().prepared.put(s.key(private), id)
	if closed != 0 {
		h.silent(wire.AppendStatementCommand(nil, wire.ComStmtClose, closed))
	}
	return pr
}

// silent sends a command that has no reply.
func (h *handler) silent(payload []byte) {
	b, _ := wire.AppendPacket(nil, 0, payload)
	h.s.Link.Write(b)
}

// ensurePrepared finds the statement on the attached link, or has it prepared
// there: not ready means that the command waits, or was answered by an error.
func (h *handler) ensurePrepared(s *statement, private bool) (*prepared, bool) {
	if pr := h.link().prepared.get(s.key(private)); pr != nil {
		return pr, true
	}
	if s.db == "" || s.db == h.db {
		h.prepareHere(s, private, func() {})
		return nil, false
	}
	// Names without a database mean the one of then.
	back := h.db
	h.ask1(append([]byte{byte(wire.ComInitDB)}, s.db...), expect{effects: effUse, then: func(a *answer) {
		if a.failed {
			h.refuse(a.err)
			return
		}
		h.prepareHere(s, private, func() {
			h.ask1(append([]byte{byte(wire.ComInitDB)}, back...), expect{effects: effUse, then: func(a *answer) {
				if a.failed {
					h.refuse(a.err)
				}
			}})
		})
	}})
	return nil, false
}

func (h *handler) prepareHere(s *statement, private bool, next func()) {
	h.ask1(append([]byte{byte(wire.ComStmtPrepare)}, s.text...), expect{then: func(a *answer) {
		if a.failed {
			h.refuse(a.err)
		} else {
			h.remember(s, private, a.prepared.StatementID)
		}
		next()
	}})
}

// refuse answers the current command, which is still unconsumed, with the
// server's own error.
func (h *handler) refuse(e wire.ServerError) {
	if h.stage.answered {
		return
	}
	h.abandonFill()
	h.stage.answered = true
	h.concluding = true
	h.send(1, e.Append(nil, h.caps))
}

// unknownStatement answers a command that names no statement of the session's.
// The server words it, and remembers it for SHOW WARNINGS, so it is asked if
// the id is nobody's on the link either.
func (h *handler) unknownStatement(p []byte, id uint32) bool {
	if h.stage.answered {
		return true
	}
	if !h.haveLink() {
		return h.stage.answered
	}
	if h.link().prepared.has(id) {
		h.fail(wire.NewError(wire.ErrNumUnknownStmtHandler, "Unknown prepared statement handler (%d) given to freshet", id))
		if h.conclude(); len(h.queue) > 0 {
			h.concluding = true
		}
		return true
	}
	return h.forward(nil, expect{cmd: wire.Command(p[0]), first: 1})
}
