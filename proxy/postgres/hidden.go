package postgres

import (
	"bytes"
	"math"
	"slices"

	"freshet/cache/feed"
	"freshet/planner"
	pg "freshet/protocol/postgres"
)

// A statement that writes runs triggers, rules, defaults and constraints, and a
// read that is not cacheable may run views and policies. What these do to the
// session no class tells. So after such a statement the session is asked for
// its state, unless the planner knows that the database has no code that could
// change it. That knowledge may be a moment old: the link remembers that it was
// trusted (linkState.trust), until it is known that it held after the statement
// was done, or that it did not.

// runsCode notes that a statement may run what users wrote.
func (h *handler) runsCode(ls *linkState, o *op, text []byte) {
	known := h.s.Upstream.Planner.Hidden()
	if known == nil || known.Able || h.s.Upstream.Feed == nil || namesSettings(o.st, text) {
		h.mayHaveChanged(ls)
		return
	}
	if ls.trust == nil {
		ls.trustedBy = h.s.ID
	} else if ls.trustedBy != h.s.ID {
		ls.trustedBy = 0 // several
	}
	ls.trust, ls.trustedAt = known, math.MaxInt64
}

func (h *handler) mayHaveChanged(ls *linkState) {
	h.dirty, h.ranCode, ls.hidden = true, true, true
}

// trusted is called when the link's statements are done: what was trusted has
// to hold from now on.
func (ls *linkState) trusted() {
	if ls.trust != nil && ls.trustedAt == math.MaxInt64 {
		ls.trustedAt = feed.Now()
	}
}

// review looks what became of the trust. If it was wrong, the session whose
// statement it was is asked for its state, and what that statement left is
// taken off the link before another session uses it.
func (h *handler) review() {
	ls := h.link()
	if ls.trust == nil {
		return
	}
	switch ls.trust.Since(ls.trustedAt) {
	case planner.Proven:
		ls.trust = nil
	case planner.Lost:
		if ls.trustedBy == h.s.ID {
			ls.trust = nil
			h.mayHaveChanged(ls)
			if h.claim != nil && h.claim.capture != nil {
				h.claim.capture.spoil()
			}
		} else if h.tx == pg.TxIdle && !h.batch && h.replies.Idle() && h.pinnedBy() == "" {
			ls.trust = nil
			ls.doubtful, h.linkReady = true, false
		}
	}
}

// hiddenSettings adds to the names that are asked for those of the options that
// the database's own code sets.
func (h *handler) hiddenSettings() {
	known := h.s.Upstream.Planner.LastHidden()
	if known == nil {
		known = &planner.Hidden{}
	}
	for _, name := range known.Settings {
		if len(h.customs) < maxCustoms && !slices.Contains(h.customs, name) {
			h.customs = append(h.customs, name)
		}
	}
	h.unnamed = h.unnamed || h.ranCode && known.UnnamedByWrites || h.called && known.Unnamed
	h.ranCode, h.called = false, false
}

// changesCode tells whether a statement may change what code there is, once its
// transaction has ended.
func changesCode(o *op, text []byte) bool {
	switch classOf(o.st) {
	case planner.ClassSchema:
		return o.st.Plan() == nil || o.st.Plan().Keyword != "TRUNCATE"
	case planner.ClassOther:
		return text == nil || containsFold(text, "create") || containsFold(text, "alter")
	case planner.ClassTransaction:
		return containsFold(text, "prepared")
	}
	return false
}

// codeChanged drops what is known of the code, at the latest before the client
// hears that its transaction has ended.
func (h *handler) codeChanged() {
	if h.tx != pg.TxIdle || h.batch {
		h.recodes = true
		return
	}
	h.s.Upstream.Planner.HiddenChanged()
}

// namesSettings tells whether a statement names the view of the settings, by
// which they can be updated.
func namesSettings(st *planner.Statement, text []byte) bool {
	if st != nil {
		if p := st.Plan(); p != nil && slices.ContainsFunc(p.Tables, func(t string) bool { return containsFold([]byte(t), "pg_settings") }) {
			return true
		}
	}
	return containsFold(text, "pg_settings")
}

// containsFold looks for a word of small letters in any case.
func containsFold(text []byte, word string) bool {
	for i := 0; i+len(word) <= len(text); i++ {
		if text[i]|0x20 == word[0] && bytes.EqualFold(text[i:i+len(word)], []byte(word)) {
			return true
		}
	}
	return false
}

// plainRead tells whether a read runs built-in functions alone: it names no
// relation, or only such as can be followed.
func plainRead(st *planner.Statement) bool {
	if st == nil {
		return false
	}
	p := st.Plan()
	return p != nil && (p.Cacheable || len(p.Tables) == 0)
}
