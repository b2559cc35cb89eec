package postgres

import (
	"freshet/planner"
	pg "freshet/protocol/postgres"
)

// askState asks the link what the session has become. The client's messages
// wait: what may be served to them depends on the answer.
func (h *handler) askState() {
	h.asking = true
	h.hold()
	if p := h.s.Upstream.Planner; (h.ranCode || h.called) && p.Hidden() == nil {
		// The names of the settings that it makes must be known first.
		p.AwaitHidden(func() {
			h.s.Post(func() {
				if h.stage == stageReady && h.s.Link != nil {
					h.sendStateQuery()
				}
			})
		})
		return
	}
	h.sendStateQuery()
}

func (h *handler) sendStateQuery() {
	h.hiddenSettings()
	var now state
	ok := false
	h.ownQuery(stateQuery(h.shared.prefix, h.s.User, h.customs), func(kind byte, body []byte) {
		switch kind {
		case pg.TypeDataRow:
			var row pg.DataRow
			err := row.Decode(body)
			if err == nil {
				now, err = readState(row.Values)
			}
			if ok = err == nil; !ok {
				h.s.Log().Warn("session state", "cause", err)
			}
		case pg.TypeErrorResponse:
			ok = false
		case pg.TypeReadyForQuery:
			h.asking = false
			if ok {
				h.become(now)
			}
			h.askFailed, h.resume = !ok, true
		}
	})
}

// become takes the answer over: it is the session's exact context.
func (h *handler) become(now state) {
	ls := h.link()
	now.customs = now.customsAmong(h.customs)
	h.state, h.dirty = now, false
	ls.settings = now.settings
	h.scope = h.s.Upstream.Planner.Scope(now.scope(h.s.User, h.database))
	h.context = h.s.Upstream.Context(now.context(h.poolKey))
	h.mixed = h.mixesSettings()
	switch {
	case h.native:
		h.reconcile(now.names)
		h.native = len(now.names) > 0
	case len(now.names) > 0: // made by SQL that was not seen coming
		h.goNative(true)
	}
	if now.ours != itoa(len(ls.prepared)) {
		// Something closed statements behind our back; what is left is not known.
		clear(ls.prepared)
	}
}

// reconcile drops the statements that the client's SQL has deallocated.
func (h *handler) reconcile(names []string) {
	left := make(map[string]bool, len(names))
	for _, n := range names {
		left[n] = true
	}
	h.statements.all(func(s *statement) {
		if !left[s.name] {
			h.statements.set(s.name, nil)
		}
	})
}

// classOf is what a statement does; one that was not planned may do anything.
func classOf(st *planner.Statement) planner.Class {
	if st == nil {
		return planner.ClassOther
	}
	if p := st.Plan(); p != nil {
		return p.Class
	}
	return planner.ClassOther
}
