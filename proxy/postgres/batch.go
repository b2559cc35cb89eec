package postgres

import (
	pg "freshet/protocol/postgres"
)

// A batch is what was sent in the extended protocol since the server last took
// a Sync. After an error in it the server reads on to the next Sync and runs
// nothing on the way, a simple query neither. A simple query that it comes to
// ends the batch, up to PostgreSQL 17; later ones run it in the batch's
// transaction, which then goes on ("ready", but not idle). So a simple query has
// ended a batch once the server has said that it is idle, and until then no
// Sync of our own may be sent: it would end the skipping, and what the client
// sent behind would run, or commit what the client has not. In the same way a
// COPY FROM STDIN swallows the Syncs that were sent before the client knew of
// it.
//
// h.batch is true from the first message until it is certain that the batch has
// ended; a Sync is taken for that at once, and taken back if a COPY swallows it.

// push notes a message as sent. If the server reads it as a part of a COPY, or
// skips it, what was assumed of it is taken back and false is told.
func (h *handler) push(kind pg.ReplyKind, action pg.Action, o *op) bool {
	if !h.replies.Push(kind, action, o) {
		h.dropped(pg.Expected[*op]{Kind: kind, Action: action, Ref: o})
		return false
	}
	if kind.Extended() {
		h.batch = true
		h.extended++
	}
	return true
}

// pushSync notes a Sync as sent.
func (h *handler) pushSync(action pg.Action, o *op) {
	mark, open := h.extended, h.batch
	o.done = both(o.done, func() { h.batchEnds(mark) })
	if o.dropped == nil {
		o.dropped = o.undo
	}
	o.dropped = both(o.dropped, func() { h.batch = open })
	if h.push(pg.ReplySync, action, o) {
		h.batch = false
		h.statements.batch++
	}
}

// pushSimple notes a simple query or a function call as sent.
func (h *handler) pushSimple(kind pg.ReplyKind, action pg.Action, o *op) {
	mark := h.extended
	o.done = both(o.done, func() {
		if h.tx == pg.TxIdle {
			h.batchEnds(mark)
		} else if h.batch && h.s.Link != nil {
			h.link().mixed = true
		}
	})
	if h.push(kind, action, o) {
		h.statements.batch++
	}
}

// batchEnds is called when the server is ready again, unless messages of
// another batch were sent meanwhile; mark is how many there were before.
func (h *handler) batchEnds(mark uint64) {
	if h.extended != mark {
		return
	}
	h.batch = false
	if h.tx == pg.TxIdle {
		clear(h.portals)
	}
}

// breaksCopy tells whether the server, which is copying in, will end the COPY
// with an error because of the message, and passes it on if so.
func (h *handler) breaksCopy(kind byte, frame []byte) bool {
	if !h.replies.Copying() {
		return false
	}
	switch kind {
	case pg.TypeCopyData, pg.TypeCopyDone, pg.TypeCopyFail, pg.TypeFlush, pg.TypeSync, pg.TypeTerminate:
		return false
	}
	h.push(pg.ReplyQuery, pg.ActionForward, &op{})
	h.send(frame)
	return true
}

// both calls two functions in turn; either may be nil.
func both(f, g func()) func() {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func() { f(); g() }
}
