package postgres

import (
	pg "freshet/protocol/postgres"
)

// sync ends a batch. One that the upstream had no part in is answered here.
func (h *handler) sync(frame []byte) bool {
	if h.skipToSync {
		h.skipToSync = false
		h.s.Write(readyIdle)
		return true
	}
	if h.s.Link == nil || h.held != nil || h.quiet() && !h.linkReady {
		h.s.Write(h.ready())
		return true
	}
	o := &op{}
	if h.claim != nil {
		o.capture = h.claim.capture
		h.claim = nil
	}
	h.pushSync(pg.ActionForward, o)
	h.send(frame)
	return true
}

// flush asks the server to send what it has.
func (h *handler) flush(frame []byte) bool {
	if h.s.Link != nil && h.linkReady {
		h.send(frame)
	}
	return true
}
