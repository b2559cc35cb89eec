package postgres

import (
	pg "freshet/protocol/postgres"
)

// parse forwards a Parse. Errors and types come from the server, which parses
// anew each time; only the name is another on the link.
func (h *handler) parse(body, frame []byte) bool {
	var m pg.Parse
	if m.Decode(body) != nil {
		return h.forwardRaw(pg.ReplyParse, frame)
	}
	st, ok := h.planned(m.Text, m.OIDs, nil)
	if !ok || !h.upstream() || len(m.Name) > 0 && !h.sureOf(m.Name) || !h.considerNames(st, m.Text) {
		return false
	}
	s := h.newStatement(&m, st)
	switch {
	case len(m.Name) == 0:
		h.parseUnnamed(s, frame)
	case h.native:
		h.parseNative(s, frame)
	case h.statements.get(m.Name) != nil:
		return h.parseInUse(s, h.statements.get(m.Name))
	default:
		h.parseNamed(s)
	}
	return true
}

func (h *handler) parseUnnamed(s *statement, frame []byte) {
	ls := h.link()
	h.batch = true
	c := h.statements.change("", s)
	h.replies.Push(pg.ReplyParse, pg.ActionForward, &op{st: s.st,
		done: func() {
			ls.haveUnnamed(s)
			h.statements.confirm(c)
		},
		undo: func() { // the server drops the unnamed statement before it parses the new one
			ls.loseUnnamed()
			c.to = nil
			h.statements.confirm(c)
		},
		dropped: func() { // the server never saw it
			ls.loseUnnamed()
			h.statements.cancel(c)
		}})
	h.unnamedSent(ls, s)
	h.send(frame)
}

func (h *handler) parseNative(s *statement, frame []byte) {
	h.batch = true
	o := &op{st: s.st}
	if h.statements.get([]byte(s.name)) == nil { // else the server's error; the old one stays
		c := h.statements.change(s.name, s)
		o.done, o.undo = func() { h.statements.confirm(c) }, func() { h.statements.cancel(c) }
	}
	h.replies.Push(pg.ReplyParse, pg.ActionForward, o)
	h.send(frame)
}

// parseInUse lets the server itself refuse a name that is in use: the link has
// the old statement under some name, and is asked to parse the new text under
// that same one. Whatever else is wrong with the text comes first, as it would.
func (h *handler) parseInUse(s, old *statement) bool {
	name, at := h.onLink(old)
	if at == placeWaiting {
		return false
	}
	h.sendParse(name, s, &op{})
	return true
}

func (h *handler) parseNamed(s *statement) {
	ls := h.link()
	key := h.linkKey(s)
	if ls.prepared[key] != nil {
		h.sendClose(ls, key)
	}
	h.evict(ls)
	p := h.addPrepared(ls, key, s)
	c := h.statements.change(s.name, s)
	h.sendParse(p.name, s, &op{
		done: func() {
			p.arrived()
			h.statements.confirm(c)
		},
		undo: func() {
			forgetPrepared(ls, key, p)
			h.statements.cancel(c)
		}})
	h.sendDescribe(p.name, func(description []byte) {
		p.description = description
		s.describe(description)
		h.remember(s, description)
	})
}

// forwardRaw passes on a message that cannot be read here; the server will say
// what is wrong with it.
func (h *handler) forwardRaw(kind pg.ReplyKind, frame []byte) bool {
	if !h.upstream() {
		return false
	}
	h.batch = true
	h.replies.Push(kind, pg.ActionForward, &op{})
	h.send(frame)
	return true
}
