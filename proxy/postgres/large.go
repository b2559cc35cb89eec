package postgres

import (
	pg "freshet/protocol/postgres"
)

// largeAbove is the size from which a client's message is passed on while it
// comes in, so that it does not have to fit in memory. Nothing of that size is
// looked up.
const largeAbove = 1 << 20

// large takes the beginning of a message that is not all there.
func (h *handler) large(in []byte) (used int, more bool) {
	kind, n, ok, err := pg.Header(in, pg.MaxMessageLen)
	if err != nil || !ok || n < largeAbove {
		return 0, false
	}
	if h.ignored(kind) {
		h.discard = pg.HeaderLen + n
		return 0, true
	}
	if kind != pg.TypeCopyData && h.replies.Copying() {
		h.push(pg.ReplyQuery, pg.ActionForward, &op{})
		h.passing = pg.HeaderLen + n
		return 0, true
	}
	body := in[pg.HeaderLen:]
	switch kind {
	case pg.TypeCopyData:
		if h.s.Link == nil || h.replies.Idle() {
			h.discard = pg.HeaderLen + n
			return 0, true
		}
		h.passing = pg.HeaderLen + n
		return 0, true
	case pg.TypeQuery:
		return h.largeQuery(n)
	case pg.TypeBind:
		return h.largeBind(body, n)
	}
	return 0, false
}

// passOn takes bytes of a message that was begun.
func (h *handler) passOn(in []byte) int {
	if h.discard > 0 {
		k := min(h.discard, len(in))
		h.discard -= k
		return k
	}
	k := min(h.passing, len(in))
	h.passing -= k
	h.s.Link.Write(in[:k])
	return k
}

func (h *handler) largeQuery(n int) (used int, more bool) {
	if h.refusal != nil {
		h.discard = pg.HeaderLen + n
		return 0, h.refuse(pg.TypeQuery)
	}
	if !h.upstream() {
		return 0, false
	}
	h.noteForwarded(nil, nil)
	o := &op{}
	h.effects(o, nil, nil)
	h.pushQuery(o)
	h.s.Sent()
	h.passing = pg.HeaderLen + n
	return 0, true
}

// largeBind sends a Bind's beginning up to its parameters anew, since the
// statement has another name on the link, and lets the rest pass.
func (h *handler) largeBind(body []byte, n int) (used int, more bool) {
	portal, name, tail, ok := pg.BindNames(body)
	if !ok {
		return 0, false
	}
	if h.refusal != nil {
		h.discard = pg.HeaderLen + n
		return 0, h.refuse(pg.TypeBind)
	}
	alias, s, ok := h.bindTo(name)
	if !ok {
		return 0, false
	}
	h.setPortal(portal, s)
	h.lastParams = nil
	h.push(pg.ReplyBind, pg.ActionForward, &op{alias: alias, name: string(name), undo: h.losePortal(portal)})
	h.out = append(h.out[:0], pg.TypeBind, 0, 0, 0, 0)
	length := 4 + n - len(name) + len(alias)
	h.out[1], h.out[2], h.out[3], h.out[4] = byte(length>>24), byte(length>>16), byte(length>>8), byte(length)
	h.out = append(append(append(h.out, portal...), 0), alias...)
	h.s.Link.Write(append(h.out, 0))
	used = pg.HeaderLen + len(body) - len(tail)
	h.passing = pg.HeaderLen + n - used
	return used, true
}
