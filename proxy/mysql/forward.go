package mysql

import (
	"freshet/cache"
	"freshet/planner"
	wire "freshet/protocol/mysql"
)

// expect is a reply that is to come from the link, in the order in which the
// commands were sent.
type expect struct {
	cmd     wire.Command
	first   uint8 // sequence number of its first packet
	swallow bool  // the client is not shown it
	ours    bool  // what it changes is changed back at once
	rows    bool  // of a swallowed reply, rows are wanted whole
	// then is told when a swallowed reply is over.
	then func(*answer)

	effects effects
	class   planner.Class
	planned bool
	fill    *cache.Fill
	// keepable: the answer to the same read may be kept for others.
	keepable bool
	// began: it was sent inside a transaction; wasCalm: which had only read
	// before; calm: and has only read with it.
	began, wasCalm, calm bool
	// option is COM_SET_OPTION's, plus one.
	option uint16
	stmt   *statement
}

// safe says that the command is proven to be a read that leaves no trace.
func (e *expect) safe() bool { return e.planned && e.class == planner.ClassRead }

// isStatement tells statements from the other commands.
func (e *expect) isStatement() bool { return e.cmd == wire.ComQuery || e.cmd == wire.ComStmtExecute }

// answer is what a swallowed reply brought.
type answer struct {
	failed   bool
	err      wire.ServerError
	prepared wire.PrepareOK
	cell     string // first cell of the last row
	// collation is that of the first column's definition.
	collation uint16
}

// forward sends the current command, or a payload in its place, on a link and
// has its reply passed to the client. False: it waits for something.
func (h *handler) forward(instead []byte, e expect) bool {
	e.effects, e.class, e.planned = h.stage.effects, h.stage.class, h.stage.planned
	if !h.haveLink() {
		return h.stage.answered
	}
	if !h.prime(e.effects | h.tellsWarnings(e.cmd)) {
		return h.stage.answered
	}
	switch {
	case h.keepsDiagnostics(&e):
	case e.cmd == wire.ComStmtPrepare:
		h.hold &^= holdDiagnostics // ROW_COUNT() stays
	default:
		h.hold &^= soft
	}
	e.fill, h.stage.fill = h.stage.fill, nil
	e.keepable, e.began, e.wasCalm = h.stage.keepable, h.inTransaction(), h.calm
	h.disturb(&e)
	if instead != nil {
		h.scratch, _ = wire.AppendPacket(h.scratch[:0], 0, instead)
		h.s.Link.Write(h.scratch)
	} else {
		h.s.Link.Write(h.raw)
	}
	h.await(e)
	if !h.leavesPast(e.cmd) {
		h.past.sent()
	}
	h.s.Sent()
	return true
}

func (h *handler) mariadb() bool { return h.s.Upstream.Server.Kind == "mariadb" }

// leavesPast says whether a command leaves the warnings of the statement before
// as they are, unless it fails: then whether the link has them depends on where
// that statement ran, not on where the command does.
func (h *handler) leavesPast(cmd wire.Command) bool {
	switch cmd {
	case wire.ComPing, wire.ComStatistics, wire.ComStmtPrepare:
		return true
	case wire.ComInitDB, wire.ComSetOption, wire.ComFieldList, wire.ComProcessInfo, wire.ComDebug:
		return h.mariadb()
	}
	return false
}

// tellsWarnings is effWarnings for the commands whose reply counts the warnings
// of the statement before, as MySQL has it; after a hit the link's are another's.
func (h *handler) tellsWarnings(cmd wire.Command) effects {
	switch cmd {
	case wire.ComInitDB, wire.ComPing, wire.ComSetOption, wire.ComDebug, wire.ComFieldList:
		if p := &h.past; !h.mariadb() && p.found <= maxCounted && !p.yielded {
			return effWarnings
		}
	}
	return 0
}

// keepsDiagnostics says whether a command leaves the warnings of the one before
// as they are: SHOW WARNINGS and most that are no statement do, on MySQL not a
// preparation, on MariaDB a read of no table and the end of a transaction too.
// MySQL's COM_FIELD_LIST adds a warning of its own.
func (h *handler) keepsDiagnostics(e *expect) bool {
	return h.leavesPast(e.cmd) && (e.cmd != wire.ComStmtPrepare || h.mariadb()) || e.cmd == wire.ComFieldList ||
		e.effects&(effWarnings|effRead) == effWarnings || (h.stage.bare || e.effects.justEnds()) && h.mariadb()
}

// haveLink gets a link, or answers with why there is none.
func (h *handler) haveLink() bool {
	if h.s.Link != nil {
		h.openHeld()
		return true
	}
	if err := h.stage.linkErr; err != nil {
		h.fail(h.linkError(err))
		h.stage.answered = true
		return false
	}
	if !h.acquire() {
		return false
	}
	h.openHeld()
	return true
}

// acquire asks the pool; false means that LinkReady follows.
func (h *handler) acquire() bool {
	if !h.s.AcquireLink(h.key) {
		h.up.waiting(h)
		return false
	}
	h.attached()
	return true
}

// await queues what is to come; until then the client's next command waits.
func (h *handler) await(e expect) {
	h.queue = append(h.queue, e)
	h.s.Blocked = true
}

// ask1 sends a payload of our own.
func (h *handler) ask1(payload []byte, e expect) {
	e.cmd, e.first, e.swallow = wire.Command(payload[0]), 1, true
	b, _ := wire.AppendPacket(nil, 0, payload)
	h.s.Link.Write(b)
	h.await(e)
}

// internal runs a text of our own.
func (h *handler) internal(text string, then func(*answer)) {
	h.ask1(wire.AppendQuery(nil, h.link().caps, text), expect{rows: then != nil, then: then})
}

// relay forwards a command that has nothing to do with the store.
func (h *handler) relay(p []byte) bool {
	if h.stage.answered {
		return true
	}
	cmd := wire.Command(p[0])
	if !h.stage.asked {
		h.stage.asked = true
		h.s.Forwarded(nil, "not a statement")
	}
	switch cmd {
	case wire.ComInitDB:
		h.stage.effects = effUse
	case wire.ComPing:
		h.stage.effects = effQuiet
	}
	if cmd == wire.ComSetOption {
		return h.setOption(p)
	}
	return h.forward(nil, expect{cmd: cmd, first: 1})
}

// setOption switches multi-statements, which is part of what links and
// contexts are told apart by.
func (h *handler) setOption(p []byte) bool {
	option, err := wire.DecodeSetOption(p)
	if err != nil {
		return h.malformed()
	}
	return h.forward(nil, expect{cmd: wire.ComSetOption, first: 1, option: 1 + option})
}
