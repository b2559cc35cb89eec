package postgres

import (
	"bytes"
	"slices"

	"freshet/planner"
	pg "freshet/protocol/postgres"
)

// effects notes, when a statement is sent, what it may do to the session, and
// in its op what is to be taken back if it fails. The statement's class
// decides; texts are only looked into for what no class and no catalog tells.
func (h *handler) effects(o *op, text []byte, params [][]byte) {
	ls := h.link()
	ls.user = h.s.ID
	reads := asksSequences(o.st, text)
	if reads {
		h.asksSequences(ls)
	}
	if changesCode(o, text) {
		o.done = both(o.done, h.codeChanged)
	}
	if classOf(o.st) == planner.ClassRead {
		// A read in a transaction may show what the feed has not applied; once
		// the transaction is over, no older answer is to follow.
		h.wrote = h.wrote || h.tx != pg.TxIdle && !h.calm
		if !plainRead(o.st) {
			h.calm = false
			h.runsCode(ls, o, text)
		}
		return
	}
	// The transaction may have written, or changed what its reads see.
	h.calm = false
	switch classOf(o.st) {
	case planner.ClassTransaction:
		// The class is that of the most severe of the text's statements.
		if several(text) {
			h.wrote = true
			h.runsCode(ls, o, text)
		}
		return
	case planner.ClassWrite:
		h.wrote = true
		h.touchesSequences(ls)
		h.runsCode(ls, o, text)
		return
	case planner.ClassSchema:
		// What it makes may run with it, and it may drop the session's own table.
		h.wrote, h.dirty, ls.hidden = true, true, true
		h.touchesSequences(ls)
		return
	}
	h.wrote, h.dirty, ls.hidden = true, true, true
	if h.passthrough {
		return
	}
	h.called = h.called || classOf(o.st) == planner.ClassOther || speaksOfPrepared(text)
	h.noteCustoms(text, params)
	if !reads {
		h.touchesSequences(ls)
	}
	if forgetsPrepared(text) {
		h.forgetAll(ls, o)
	}
	if resetsAll(text) {
		o.done = both(o.done, h.s.ResetOptions)
	}
}

// several tells whether a text may hold more than one statement.
func several(text []byte) bool {
	return bytes.IndexByte(bytes.TrimRight(text, "; \t\r\n"), ';') >= 0
}

// considerNames makes the client's statement names the link's, before a text
// is sent that may speak of them. It tells false when it has to be known first
// which names there are, and that the server is not skipping to a Sync; the
// client is then held until it is.
func (h *handler) considerNames(st *planner.Statement, text []byte) bool {
	switch classOf(st) {
	case planner.ClassOther, planner.ClassSession, planner.ClassSchema:
	default:
		return true
	}
	if h.native || h.passthrough || !speaksOfPrepared(text) || forgetsPrepared(text) {
		return true
	}
	if h.replies.Len() > 0 {
		h.awaitAnswers()
		return false
	}
	h.goNative(false)
	return true
}

// touchesSequences: the statement may draw from sequences, so currval and
// lastval mean this session's values on this link from now on.
func (h *handler) touchesSequences(ls *linkState) {
	ls.writer = h.s.ID
	if h.shared.usesSequences.Load() {
		h.keepsLink = true
	}
}

// asksSequences: the statement asks for values that were drawn before. If
// another session has drawn since on this link, they would be that session's:
// the server is made to forget them, and says itself that there is none. From
// now on sessions keep the link on which they wrote.
func (h *handler) asksSequences(ls *linkState) {
	h.shared.usesSequences.Store(true)
	h.keepsLink = true
	if ls.writer == h.s.ID || ls.writer == 0 {
		return
	}
	ls.writer = h.s.ID
	if h.tx == pg.TxIdle && !h.batch && h.replies.Idle() {
		h.ownQuery("DISCARD SEQUENCES", nil)
	}
}

// goNative gives the client's statements their own names on the link, since
// its SQL may speak of them. Outside a batch each has a Sync of its own; in a
// batch an error drops the rest of it, the statement that spoke of names
// included. After an error the link is asked what it has, unless that is what
// is being acted on (asked): then what cannot be parsed is merely not there.
func (h *handler) goNative(asked bool) {
	if h.native || h.tx == pg.TxFailed {
		return // a failed transaction parses nothing, and runs none of these either
	}
	alone := !h.batch
	h.native, h.nativeIs = true, presence{sure: true}
	h.dirty = h.dirty || !asked // it may come to nothing, and the link be given back
	action := pg.ActionSwallow
	if alone {
		action = pg.ActionHide
	}
	undo := func() { h.native, h.dirty, h.nativeIs.sure = false, true, true }
	if asked {
		undo = nil
	}
	left := 0
	arrived := func() {
		if left--; left == 0 {
			h.nativeIs.arrived()
		}
	}
	guarded := alone && h.tx == pg.TxOpen
	h.statements.all(func(s *statement) {
		left++
		h.native, h.nativeIs.sure = true, false
		if guarded {
			h.ownQuery("SAVEPOINT "+h.shared.prefix+"names", nil)
		}
		h.parseUnderOwnName(s, action, undo, arrived)
		if alone {
			h.pushSync(pg.ActionHide, &op{})
			h.send(pg.Sync.Append(nil))
		}
		if guarded {
			// One that no longer parses must not cost the client its transaction;
			// what was parsed stays.
			h.ownQuery("ROLLBACK TO SAVEPOINT "+h.shared.prefix+"names; RELEASE SAVEPOINT "+h.shared.prefix+"names", nil)
		}
	})
}

// parseUnderOwnName gives the link a statement under the client's name, and
// looks whether the columns are still those that the client's Parse found: a
// server would refuse it then. decided is called once that is known.
func (h *handler) parseUnderOwnName(s *statement, action pg.Action, undo, decided func()) {
	s.outdated = false
	h.push(pg.ReplyClose, action, &op{})
	h.send((&pg.Close{Target: pg.TargetStatement, Name: []byte(s.name)}).Append(nil))
	h.sendOwnParse(s.name, s, action, &op{undo: undo})
	h.push(pg.ReplyDescribe, action, &op{done: decided, undo: decided, seen: collect(func(d []byte) {
		s.outdated = s.description != nil && !sameColumns(s.description, d)
	})})
	h.send((&pg.Describe{Target: pg.TargetStatement, Name: []byte(s.name)}).Append(nil))
}

// forgetAll: DISCARD ALL or DEALLOCATE ALL. The statements are gone at once
// for what is sent behind it; if it fails they are back.
func (h *handler) forgetAll(ls *linkState, o *op) {
	changes, prepared := h.statements.clear(), ls.prepared
	ls.prepared = map[string]*linkStatement{}
	ls.loseUnnamed()
	o.done = both(o.done, func() { h.statements.confirmAll(changes) })
	o.undo = func() {
		h.statements.cancelAll(changes)
		for key, p := range prepared {
			if ls.prepared[key] == nil {
				ls.prepared[key] = p
			}
		}
	}
}

// maxCustoms bounds the settings that are asked for by name.
const maxCustoms = 64

// noteCustoms collects names that could be customised settings: two words with
// a dot between. pg_settings does not show those that were made by setting
// them, so they are asked for by name.
func (h *handler) noteCustoms(text []byte, params [][]byte) {
	add := func(name []byte) {
		if len(name) < 64 && len(h.customs) < maxCustoms && !slices.Contains(h.customs, string(name)) {
			h.customs = append(h.customs, string(name))
		}
	}
	if len(text) <= maxPlanned {
		dottedNames(text, add)
	}
	for _, p := range params {
		if len(p) < 64 {
			dottedNames(p, func(name []byte) {
				if len(name) == len(p) {
					add(name)
				}
			})
		}
	}
}

func isWordByte(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// dottedNames calls f with each run of words joined by dots that has a dot and
// starts with a letter.
func dottedNames(text []byte, f func([]byte)) {
	for i := 0; i < len(text); {
		if !isWordByte(text[i]) {
			i++
			continue
		}
		start, dots := i, 0
		for i < len(text) && (isWordByte(text[i]) || text[i] == '.' && i+1 < len(text) && isWordByte(text[i+1])) {
			if text[i] == '.' {
				dots++
			}
			i++
		}
		if dots > 0 && (text[start] < '0' || text[start] > '9') && text[start] < 0x80 {
			f(text[start:i])
		}
	}
}

// words calls f with each word of a text in lower case, and the byte other
// than space that precedes it (0: none, 'w': another word), until f tells
// false. Comments count as space; strings and quoted names are passed over.
func words(text []byte, f func(word []byte, before byte) bool) {
	var buf [16]byte
	before := byte(0)
	for i := 0; i < len(text); {
		if n := skipUnworded(text[i:]); n > 0 {
			if c := text[i]; c != ' ' && c != '\t' && c != '\n' && c != '\r' && (n == 1 || c == '\'' || c == '"') {
				before = c
			}
			i += n
			continue
		}
		start := i
		for i < len(text) && isWordByte(text[i]) {
			i++
		}
		if !f(lowered(buf[:0], text[start:i]), before) {
			return
		}
		before = 'w'
	}
}

// lowered gives a word in lower case, or nothing if it is longer than any that
// is looked for.
func lowered(dst, word []byte) []byte {
	if len(word) > cap(dst) {
		return dst
	}
	for _, c := range word {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// skipUnworded is how many bytes at the front are no part of a word: a comment,
// a string, a quoted name, or one other byte.
func skipUnworded(text []byte) int {
	c := text[0]
	end := ""
	switch {
	case isWordByte(c):
		return 0
	case c == '\'', c == '"':
		end = string(c)
	case bytes.HasPrefix(text, []byte("--")):
		end = "\n"
	case bytes.HasPrefix(text, []byte("/*")):
		end = "*/"
	default:
		return 1
	}
	from := min(len(end), len(text))
	if n := bytes.Index(text[from:], []byte(end)); n >= 0 {
		return from + n + len(end)
	}
	return len(text)
}

// asksSequences tells whether a statement asks for what a sequence gave to the
// session before (currval, lastval).
func asksSequences(st *planner.Statement, text []byte) bool {
	if st != nil {
		if p := st.Plan(); p != nil && !p.ReadsSession {
			return false
		}
	}
	return mentionsSequences(text)
}

func mentionsSequences(text []byte) (found bool) {
	words(text, func(w []byte, _ byte) bool {
		found = bytes.Equal(w, []byte("currval")) || bytes.Equal(w, []byte("lastval"))
		return !found
	})
	return found
}

// speaksOfPrepared: a statement of the text is, or explains or uses, PREPARE,
// EXECUTE or DEALLOCATE of one name.
func speaksOfPrepared(text []byte) (found bool) {
	starts := true
	previous := ""
	words(text, func(w []byte, before byte) bool {
		switch string(w) {
		case "prepare", "execute":
			found = starts || before == 0 || before == ';' || previous == "as"
			starts = false
		case "deallocate":
			found = before == 0 || before == ';' || starts
		case "explain", "analyze", "verbose":
			// What is explained starts anew.
		case "all":
			if previous == "deallocate" || previous == "prepare" {
				found = false
			}
			starts = false
		default:
			starts = before == ')' && starts
		}
		previous = string(w)
		return !found || previous == "deallocate" || previous == "prepare"
	})
	return found
}

// resetsAll: the text has RESET ALL or DISCARD ALL.
func resetsAll(text []byte) (found bool) {
	last := ""
	words(text, func(w []byte, before byte) bool {
		found = before == 'w' && string(w) == "all" && (last == "reset" || last == "discard")
		last = string(w)
		return !found
	})
	return found
}

// forgetsPrepared: the text has DISCARD ALL or DEALLOCATE [PREPARE] ALL.
func forgetsPrepared(text []byte) (found bool) {
	var last, beforeLast string
	words(text, func(w []byte, before byte) bool {
		if string(w) == "all" && before == 'w' {
			found = last == "discard" || last == "deallocate" || last == "prepare" && beforeLast == "deallocate"
		}
		beforeLast, last = last, string(w)
		return !found
	})
	return found
}
