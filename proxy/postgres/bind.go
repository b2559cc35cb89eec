package postgres

import (
	"freshet/planner"
	pg "freshet/protocol/postgres"
)

// bindMessage forwards a Bind, with the statement's name on the link.
func (h *handler) bindMessage(body, frame []byte) bool {
	portal, name, tail, ok := pg.BindNames(body)
	if !ok {
		return h.forwardRaw(pg.ReplyBind, frame)
	}
	alias, s, ok := h.bindTo(name)
	if !ok {
		return false
	}
	h.setPortal(portal, s)
	h.noteParams(s, body)
	h.push(pg.ReplyBind, pg.ActionForward, &op{alias: alias, name: string(name), undo: h.losePortal(portal), done: s.accepted()})
	if alias == string(name) {
		h.send(frame)
	} else {
		h.out = pg.AppendBindAs(h.out[:0], portal, []byte(alias), tail)
		h.send(h.out)
	}
	return true
}

// bindTo finds the name that a statement has on the link. ok is false when the
// message has to wait or was answered by an error. A name that the session
// does not know is passed on as it is: the server says that there is none.
func (h *handler) bindTo(name []byte) (alias string, s *statement, ok bool) {
	if !h.upstream() {
		return "", nil, false
	}
	if !h.sureOf(name) {
		return "", nil, false
	}
	s = h.statements.get(name)
	if s == nil {
		h.hideUnnamed(name)
		return string(name), nil, true
	}
	if !h.considerNames(s.st, s.text) || h.native && !h.present(&h.nativeIs) {
		return "", s, false
	}
	alias, at := h.onLink(s)
	if at == placeWaiting {
		return "", s, false
	}
	if at == placeChanged {
		h.failUpstream(changedColumns())
	}
	return alias, s, true
}

// sureOf tells whether it is known what a name stands for. If that hangs on
// answers that are still to come, the client is held until they have.
func (h *handler) sureOf(name []byte) bool {
	if h.statements.sure(name) {
		return true
	}
	h.awaitAnswers()
	return false
}

// hideUnnamed: the client has no unnamed statement, but the link may have one
// of another session's.
func (h *handler) hideUnnamed(name []byte) {
	if len(name) != 0 {
		return
	}
	h.link().loseUnnamed()
	h.push(pg.ReplyClose, pg.ActionSwallow, &op{})
	h.send((&pg.Close{Target: pg.TargetStatement}).Append(nil))
}

func (h *handler) setPortal(portal []byte, s *statement) {
	if len(portal) == 0 {
		h.ghost = nil
	}
	if h.portals == nil {
		h.portals = map[string]*statement{}
	}
	h.portals[string(portal)] = s
}

// accepted is for a Bind that succeeds: the server itself has compared the
// statement's columns with what they were, so what the planner knew when the
// message was sent holds for the statement.
func (s *statement) accepted() func() {
	if s == nil || s.st == nil {
		return nil
	}
	plan := s.st.Plan()
	return func() { s.plan = plan }
}

// losePortal is for a Bind that fails: what the name then stands for, if
// anything, is not known.
func (h *handler) losePortal(portal []byte) func() {
	name := string(portal)
	return func() { delete(h.portals, name) }
}

// noteParams keeps the parameters of a statement whose effects are looked
// into: set_config takes a setting's name as one.
func (h *handler) noteParams(s *statement, body []byte) {
	h.lastParams = nil
	if s != nil {
		switch classOf(s.st) {
		case planner.ClassOther, planner.ClassSession:
		default:
			return
		}
	}
	var m pg.Bind
	if m.Decode(clone(body)) == nil {
		h.lastParams = m.Params
	}
}
