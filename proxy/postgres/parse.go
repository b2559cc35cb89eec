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
	if h.native && !h.present(&h.nativeIs) {
		return false
	}
	s := h.newStatement(&m, st)
	switch {
	case len(m.Name) == 0:
		h.parseUnnamed(s, frame)
	case h.native:
		h.parseNative(s, frame)
	case h.statements.get(m.Name) != nil:
		h.parseInUse(s)
	default:
		h.parseNamed(s)
	}
	return true
}

func (h *handler) parseUnnamed(s *statement, frame []byte) {
	ls := h.link()
	c := h.statements.change("", s)
	h.unnamedSent(ls, s)
	h.push(pg.ReplyParse, pg.ActionForward, &op{st: s.st,
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
	h.send(frame)
}

func (h *handler) parseNative(s *statement, frame []byte) {
	o := &op{st: s.st}
	if h.statements.get([]byte(s.name)) == nil { // else the server's error; the old one stays
		c := h.statements.change(s.name, s)
		o.done, o.undo = func() { h.statements.confirm(c) }, func() { h.statements.cancel(c) }
	}
	h.push(pg.ReplyParse, pg.ActionForward, o)
	h.send(frame)
}

// parseInUse has the server judge a text whose name is in use: whatever is wrong
// with it comes first, as it would. Then the server is made to fail where it
// would have found the name, and the client is told its error for that.
func (h *handler) parseInUse(s *statement) {
	ls := h.link()
	h.evict(ls)
	s.own = h.s.ID // so the link does not keep it
	key := h.linkKey(s) + "\x00in use"
	if ls.prepared[key] != nil {
		h.sendClose(ls, key)
	}
	p := h.addPrepared(ls, key, s)
	h.sendOwnParse(p.name, s, pg.ActionSwallow, &op{undo: func() { forgetPrepared(ls, key, p) }, done: p.arrived})
	h.failUpstream(pg.AppendError(nil, pg.SeverityError, "42P05", `prepared statement "`+s.name+`" already exists`,
		pg.ErrorField{Code: pg.FieldRoutine, Value: []byte("StorePreparedStatement")}))
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
	h.push(kind, pg.ActionForward, &op{})
	h.send(frame)
	return true
}
