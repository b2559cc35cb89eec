package postgres

import (
	pg "freshet/protocol/postgres"
)

// link is the attached link's state; there must be one.
func (h *handler) link() *linkState { return h.s.Link.State.(*linkState) }

// acquire tells whether a link is attached; if not, LinkReady follows.
func (h *handler) acquire() bool {
	if h.s.Link != nil || h.s.AcquireLink(withCustoms(h.poolKey, h.state.customs)) {
		return true
	}
	h.waiting = true
	return false
}

// LinkReady answers acquire.
func (h *handler) LinkReady(err error) {
	h.waiting = false
	switch {
	case h.stage == stageClosed:
	case err != nil:
		h.noLink(err)
	case h.stage == stageGreet:
		h.greetFromLink()
	default:
		h.adopt()
	}
}

// upstream tells whether messages can be sent: a link is attached and has this
// session's settings. If not, the session is blocked until it is.
func (h *handler) upstream() bool {
	if !h.acquire() {
		return false
	}
	h.review()
	if !h.linkReady {
		h.adopt()
	}
	if h.linkReady && h.held != nil {
		h.openHeld()
	}
	return h.linkReady
}

// adopt makes the link what the session expects: what another session may have
// left is reset, and this session's settings are made again. The client's
// messages wait until that is known to have worked; they must not run under
// settings that are not theirs.
func (h *handler) adopt() {
	ls := h.link()
	if !ls.doubtful && ls.settings == h.state.settings && (!ls.hidden || ls.user == h.s.ID) {
		h.linkReady = true
		return
	}
	text := "RESET ALL"
	if h.state.settings != "" {
		text += "; SELECT " + h.state.settings
	}
	const unsettled = "the session's settings cannot be restored on another upstream connection"
	if ls.doubtful {
		clear(ls.prepared)
		h.ownQuery("DISCARD ALL", h.orEnd(unsettled, nil))
	}
	h.ownQuery(text, h.orEnd(unsettled, func() {
		ls.settings, ls.hidden, ls.doubtful = h.state.settings, false, false
		h.linkReady, h.resume = true, true
	}))
	h.hold()
}

// orEnd watches the replies to something of the proxy's own without which the
// session cannot go on: an error among them ends it, once the server is ready
// again. then, if given, is called if there was none.
func (h *handler) orEnd(message string, then func()) func(kind byte, body []byte) {
	failed := false
	return func(kind byte, _ []byte) {
		switch {
		case kind == pg.TypeErrorResponse:
			failed = true
		case kind != pg.TypeReadyForQuery:
		case failed:
			h.s.DropLink()
			h.fatal("08006", message)
		case then != nil:
			then()
		}
	}
}

// ownQuery runs a text for the proxy itself; nothing of it reaches the client.
func (h *handler) ownQuery(text string, seen func(kind byte, body []byte)) {
	h.link().loseUnnamed()
	h.push(pg.ReplyQuery, pg.ActionHide, &op{seen: seen})
	h.s.Link.Write((&pg.Query{Text: []byte(text)}).Append(nil))
}

// settle is called whenever an answer is complete: if nothing is open on the
// link, its state is asked for where it may have changed, and the link is given
// back unless something on it is the session's.
func (h *handler) settle() {
	if h.stage != stageReady || h.s.Link == nil || !h.replies.Idle() || h.batch {
		return
	}
	if h.wrote && (h.tx == pg.TxIdle || h.calm) {
		h.wrote = false
		h.s.Wrote()
	}
	if !h.resting() {
		return
	}
	h.link().trusted()
	h.review()
	switch {
	case h.passthrough:
		h.s.Link.PinnedBy = "replication"
	case h.dirty && !h.askFailed:
		if !h.asking {
			h.askState()
		}
	case h.resume: // the client's next message is on its way to this link
	default:
		h.askFailed = false
		h.tidy()
	}
}

// tidy gives the link back if it can.
func (h *handler) tidy() {
	if h.s.Link == nil || h.holding || h.waiting || !h.replies.Idle() || h.batch || !h.resting() || h.stage != stageReady {
		return
	}
	if h.s.Link.PinnedBy = h.pinnedBy(); h.s.Link.PinnedBy == "" {
		h.s.Link.PinnedBy = h.s.KeepsLink()
	}
	if h.s.Link.PinnedBy == "" {
		h.release()
	}
}

// pinnedBy says why the link cannot be given back, or "".
func (h *handler) pinnedBy() string {
	switch {
	case h.passthrough:
		return "replication"
	case h.dirty || h.asking:
		return "unknown session state"
	case h.cancels > 0:
		return "a cancel request under way"
	case h.s.Link != nil && h.link().mixed:
		return "a query in a batch's transaction"
	case h.unnamed:
		return "settings of unknown names"
	case h.keepsLink:
		return "values of sequences"
	case h.native:
		return "prepared statements"
	case h.mixed:
		return "statements parsed under other settings"
	}
	return h.state.pinnedBy()
}

func (h *handler) mayRelease() bool {
	return h.stage == stageReady && h.resting() && !h.batch && h.linkReady && h.pinnedBy() == ""
}

// release gives the link back. Statements that were prepared while the session
// had a state of its own are closed first: what their names meant may not be
// what they mean to others. The client is held for so long: with answers to come
// that are not its own, what is Freshet's to answer would be sent upstream.
func (h *handler) release() {
	ls := h.link()
	if h.closePrivate(ls) {
		h.closing = true
		h.hold()
		return
	}
	h.linkReady = false
	h.s.Link.Key = withCustoms(h.poolKey, h.state.customs)
	h.s.ReleaseLink()
}
