package postgres

import (
	pg "freshet/protocol/postgres"
)

// describe forwards a Describe.
func (h *handler) describe(body, frame []byte) bool {
	var m pg.Describe
	if m.Decode(body) != nil {
		return h.forwardRaw(pg.ReplyDescribe, frame)
	}
	if m.Target == pg.TargetPortal {
		return h.describePortal(frame)
	}
	alias, s, ok := h.bindTo(m.Name)
	if !ok {
		return false
	}
	o := &op{alias: alias, name: string(m.Name)}
	if s != nil && s.description == nil {
		o.seen = h.describedAs(s)
	}
	h.batch = true
	h.replies.Push(pg.ReplyDescribe, pg.ActionForward, o)
	if alias == string(m.Name) {
		h.send(frame)
	} else {
		h.send((&pg.Describe{Target: m.Target, Name: []byte(alias)}).Append(nil))
	}
	return true
}

func (h *handler) describePortal(frame []byte) bool {
	if !h.upstream() {
		return false
	}
	o := &op{}
	if h.claim != nil {
		o.capture = h.claim.capture
	}
	h.batch = true
	h.replies.Push(pg.ReplyDescribe, pg.ActionForward, o)
	h.send(frame)
	return true
}
