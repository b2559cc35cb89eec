package postgres

import (
	"bytes"

	pg "freshet/protocol/postgres"
)

// describe forwards a Describe.
func (h *handler) describe(body, frame []byte) bool {
	var m pg.Describe
	if m.Decode(body) != nil {
		return h.forwardRaw(pg.ReplyDescribe, frame)
	}
	if m.Target == pg.TargetPortal {
		return h.describePortal(m.Name, frame)
	}
	if h.tx == pg.TxFailed && h.replies.Len() > 0 {
		h.awaitAnswers()
		return false
	}
	if h.describeAborted(&m) {
		return true
	}
	alias, s, ok := h.bindTo(m.Name)
	if !ok {
		return false
	}
	o := &op{alias: alias, name: string(m.Name)}
	if s != nil && s.description == nil {
		o.seen = h.describedAs(s)
	}
	h.push(pg.ReplyDescribe, pg.ActionForward, o)
	if alias == string(m.Name) {
		h.send(frame)
	} else {
		h.send((&pg.Describe{Target: m.Target, Name: []byte(alias)}).Append(nil))
	}
	return true
}

func (h *handler) describePortal(name, frame []byte) bool {
	if !h.upstream() || !h.haunt(name) {
		return false
	}
	o := &op{}
	if h.claim != nil {
		o.capture = h.claim.capture
	}
	h.push(pg.ReplyDescribe, pg.ActionForward, o)
	h.send(frame)
	return true
}

// describeAborted answers a Describe that a server allows in a failed
// transaction, of a statement without columns, if the link does not have it:
// nothing can be parsed there until the transaction has ended.
func (h *handler) describeAborted(m *pg.Describe) bool {
	s := h.statements.get(m.Name)
	if h.tx != pg.TxFailed || s == nil || s.description == nil || h.native || !h.statements.sure(m.Name) {
		return false
	}
	if ls := h.link(); ls.prepared[h.linkKey(s)] != nil || ls.unnamed.what == s || !bytes.HasSuffix(s.description, noData) {
		return false
	}
	h.s.Write(s.description)
	return true
}

var noData = pg.NoData.Append(nil)
