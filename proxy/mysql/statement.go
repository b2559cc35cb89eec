package mysql

import (
	"slices"

	"freshet/planner"
	wire "freshet/protocol/mysql"
)

// statement is one prepared statement of the client's. Its id is the
// session's own; on a link it is prepared when it is first needed there.
type statement struct {
	id      uint32
	text    string
	meaning meaning
	params  int
	types   []byte // of the parameters, as last sent
	effects effects
	plan    *planner.Statement // nil when it is no read
	context uint64             // the session's when it was prepared
	// cursor: one is open; longData: values were sent ahead.
	cursor, longData bool
	called           string // see name
	// broken is why values sent ahead went nowhere.
	broken error
}

// meaning is what of the session's state a text is read under.
type meaning struct {
	db       string
	settings settings // of meaningNames
	text     string   // all of it
}

// meaningNames are the settings in it. Without them equal texts may differ: in
// what is a string, in the collation of literals, and in the columns' types and
// lengths, which MySQL settles when it prepares (DAYNAME() by the language).
var meaningNames = append([]string{"sql_mode", "old_mode", "sql_auto_is_null", "lc_time_names", "div_precision_increment", "group_concat_max_len", "time_zone"}, charsetGroup...)

func (h *handler) meaning() meaning {
	m := meaning{db: h.db, settings: h.settings.only(meaningNames)}
	m.text = linkKey{database: m.db, settings: m.settings}.String()
	return m
}

// name is what equal statements share.
func (s *statement) name() string {
	if s.called == "" {
		s.called = s.meaning.text + "\x00" + s.text
	}
	return s.called
}

// silent sends a command that has no reply.
func (h *handler) silent(payload []byte) {
	b, _ := wire.AppendPacket(nil, 0, payload)
	h.s.Link.Write(b)
}

// remember adds a statement to the link's set.
func (h *handler) remember(s *statement, private bool, id uint32) {
	set := &h.link().prepared
	owner := s
	if !private {
		owner = nil
	}
	for _, closed := range set.put(s.name(), &prepared{id: id, owner: owner}) {
		h.silent(wire.AppendStatementCommand(nil, wire.ComStmtClose, closed))
	}
}

// ensurePrepared finds a twin for the statement, executed with these types, on
// the attached link, or has one prepared there: not ready means that the
// command waits, or was answered by an error.
func (h *handler) ensurePrepared(s *statement, types []byte, private bool) (*prepared, bool) {
	if pr := h.link().prepared.get(s, types, private); pr != nil {
		return pr, true
	}
	now := h.meaning()
	if now.text == s.meaning.text {
		h.prepareHere(s, private, func() {})
		return nil, false
	}
	// A text means what it meant when the client prepared it.
	h.switchTo(s.meaning, now, func() {
		h.prepareHere(s, private, func() { h.switchTo(now, s.meaning, func() {}) })
	})
	return nil, false
}

// switchTo changes the link's database and settings for a moment, which costs
// it what it knew of the statement before. If that fails the link is in no
// known state, and is dropped.
func (h *handler) switchTo(to, from meaning, next func()) {
	h.past.away()
	h.past.yielded = h.past.yielded || h.hold&holdDiagnostics != 0
	step := func(payload []byte, next func()) {
		h.ask1(payload, expect{effects: effUse, ours: true, then: func(a *answer) {
			if a.failed {
				h.refuse(a.err)
				h.s.DropLink()
				h.LinkLost(a.err)
				return
			}
			next()
		}})
	}
	set := func() {
		if slices.Equal(to.settings, from.settings) {
			next()
			return
		}
		text, err := to.settings.filled(meaningNames, h.base.initial).statement(*h.up.collations.Load())
		if err != nil {
			h.refuse(wire.NewError(wire.ErrNumUnknown, "freshet: %v", err))
			return
		}
		step(wire.AppendQuery(nil, h.link().caps, text), next)
	}
	if to.db == from.db || to.db == "" {
		set()
		return
	}
	step(append([]byte{byte(wire.ComInitDB)}, to.db...), set)
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

// addressed finds the statement that a command names by its id. Without one the
// command is dealt with: consumed tells whether it is over.
func (h *handler) addressed(p []byte) (s *statement, consumed bool) {
	if h.stage.answered {
		return nil, true
	}
	id, err := wire.DecodeStatementID(p)
	if err != nil {
		return nil, h.malformed()
	}
	if s = h.statements[id]; s == nil {
		return nil, h.unknownStatement(p, id)
	}
	return s, false
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
