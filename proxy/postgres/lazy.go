package postgres

import (
	"bytes"
	"slices"

	pg "freshet/protocol/postgres"
	"freshet/proxy"
)

// Drivers open a transaction for every read. Under READ COMMITTED each of its
// statements sees what is committed when it begins, as a statement on its own
// does; so as long as a transaction has only read (calm), its reads are looked
// up and kept like any others. A BEGIN is held back until a message needs the
// upstream: one whose reads all hit takes no link.
//
// What such a transaction cannot tell from one that the server knows of is told
// in docs/caching.md: its tables are not locked, and its now() is the time of
// the first statement that went upstream.

// readCommitted is the isolation level under which BEGINs are held back.
const readCommitted = "read committed"

// resting: no transaction is open on the link, whatever the client has begun.
func (h *handler) resting() bool { return h.tx == pg.TxIdle || h.held != nil }

// ready is the message that the client is told between its statements, when
// nothing of it comes from the link.
func (h *handler) ready() []byte {
	if h.tx == pg.TxIdle {
		return readyIdle
	}
	return readyOpen
}

// transactHere answers a BEGIN that can be held back, and the end of a
// transaction of which the upstream knows nothing. It tells the tag.
func (h *handler) transactHere(text []byte) (tag string, ok bool) {
	switch {
	case len(text) > maxTransact || !proxy.MayTransact(text) || !h.quiet():
	case h.tx == pg.TxIdle:
		tag, isolated := beginsPlainly(text)
		if tag != "" && (isolated || h.state.isolation == readCommitted) && h.cacheable() && h.s.Caches() {
			h.held, h.heldRead, h.calm, h.tx = clone(text), false, true, pg.TxOpen
			return tag, true
		}
	case h.held != nil:
		if tag := endsPlainly(text); tag != "" {
			h.held, h.calm, h.tx, h.ghost = nil, false, pg.TxIdle, nil
			h.s.EndTransaction()
			return tag, true
		}
	}
	return "", false
}

// transactQuery answers such a text as a simple query.
func (h *handler) transactQuery(text []byte) bool {
	tag, ok := h.transactHere(text)
	if !ok {
		return false
	}
	h.statements.set("", nil)
	h.s.Write((&pg.CommandComplete{Tag: []byte(tag)}).Append(nil))
	h.s.Write(h.ready())
	return true
}

// transactRun answers a run of such a text; one that no Sync ends is told
// nothing about being ready.
func (h *handler) transactRun(u *found, s *statement) bool {
	text := u.parse.Text
	switch {
	case u.hasParse && (len(u.parse.OIDs) > 0 || len(u.name) > 0 && (s != nil || h.native)), !u.hasParse && s == nil:
		return false
	case !u.hasParse:
		text = s.text
	}
	if len(u.bind.Params) > 0 || len(u.bind.Portal) > 0 {
		return false
	}
	tag, ok := h.transactHere(text)
	if !ok {
		return false
	}
	before := boundOnly
	if u.hasParse {
		before = parsedAnd
		s := h.newStatement(&u.parse, nil)
		s.describe(noRows)
		h.statements.set(s.name, s)
	}
	h.leavesPortal(u)
	h.s.Write(before)
	if u.describe {
		h.s.Write(pg.NoData.Append(nil))
	}
	h.s.Write((&pg.CommandComplete{Tag: []byte(tag)}).Append(nil))
	if !u.open {
		h.s.Write(h.ready())
	}
	return true
}

// openHeld sends the BEGIN that was held back, before anything else of its
// transaction. The link has the session's settings.
func (h *handler) openHeld() {
	text, g := h.held, h.ghost
	h.held = nil
	seen := h.orEnd("the transaction cannot be opened on the upstream connection", nil)
	switch {
	case h.heldRead:
		// The server is to know that there was a query: from then on it refuses to
		// have the transaction's characteristics changed.
		h.ownQuery(string(text)+"; SELECT 1", seen)
		return
	case g == nil || g.s == nil || !bytes.Equal(g.s.text, text):
		h.ownQuery(string(text), seen)
		return
	}
	// It was a run, and its portal is still the unnamed one.
	h.ghost = nil
	h.link().loseUnnamed()
	for _, kind := range []pg.ReplyKind{pg.ReplyParse, pg.ReplyBind, pg.ReplyExecute} {
		h.push(kind, pg.ActionHide, &op{seen: seen})
	}
	h.pushSync(pg.ActionHide, &op{seen: seen})
	h.s.Link.Write(pg.Sync.Append((&pg.Execute{}).Append((&pg.Bind{}).Append((&pg.Parse{Text: text}).Append(nil)))))
}

// maxTransact bounds the texts that are looked at as a BEGIN or an end.
const maxTransact = 128

// plainWords are the words of a text of nothing else, with a semicolon at its
// end at most; a comma is one.
func plainWords(text []byte) []string {
	const space = " \t\r\n"
	return proxy.PlainWords(bytes.TrimSuffix(bytes.TrimRight(text, space), []byte(";")), space+",")
}

// beginsPlainly tells the tag of a text that is a BEGIN that READ COMMITTED
// allows to hold back, and whether it asks for that level itself.
func beginsPlainly(text []byte) (tag string, isolated bool) {
	words := plainWords(text)
	switch {
	case len(words) == 0:
		return "", false
	case words[0] == "begin":
		tag, words = "BEGIN", words[1:]
		if len(words) > 0 && (words[0] == "work" || words[0] == "transaction") {
			words = words[1:]
		}
	case words[0] == "start" && len(words) > 1 && words[1] == "transaction":
		tag, words = "START TRANSACTION", words[2:]
	default:
		return "", false
	}
	for first := true; len(words) > 0; first = false {
		if !first && words[0] == "," {
			words = words[1:]
		}
		switch n := len(words); {
		case n >= 4 && slices.Equal(words[:4], []string{"isolation", "level", "read", "committed"}):
			isolated, words = true, words[4:]
		case n >= 2 && words[0] == "read" && (words[1] == "only" || words[1] == "write"):
			words = words[2:]
		default:
			return "", false
		}
	}
	return tag, isolated
}

// endsPlainly tells the tag of a text that does nothing but end a transaction.
func endsPlainly(text []byte) string {
	words := plainWords(text)
	if len(words) == 0 || len(words) > 2 || len(words) == 2 && words[1] != "work" && words[1] != "transaction" {
		return ""
	}
	switch words[0] {
	case "commit", "end":
		return "COMMIT"
	case "rollback", "abort":
		return "ROLLBACK"
	}
	return ""
}
