package mysql

import (
	"bytes"
	"encoding/binary"

	"freshet/planner"
	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// Kinds of store keys.
const (
	kindText    = 'q'
	kindExecute = 'x'
	within      = 0x80 // in a transaction
)

// maxKeyText bounds the texts that are looked up: the key holds them whole.
const maxKeyText = 16 << 10

// query takes COM_QUERY.
func (h *handler) query(p []byte) bool {
	if h.stage.answered {
		return true
	}
	if h.stage.instead != nil {
		return h.forward(h.stage.instead, expect{cmd: wire.ComQuery, first: 1})
	}
	q, err := wire.DecodeQuery(p, h.caps)
	if err != nil {
		return h.malformed()
	}
	// Query attributes are read by functions of the server's: such a text is
	// not answered from the store.
	mayRead := q.Params == 0 && len(q.Text) <= maxKeyText && h.mayLookup()
	if !h.stage.asked {
		if q.Params == 0 && h.transactHere(q.Text) {
			return true
		}
		if mayRead && h.hit(h.textKey(q.Text)) {
			return true
		}
		if !h.consider(q, mayRead) {
			return h.stage.answered
		}
	}
	if plain, ok := withoutHint(p, q.Text); ok {
		return h.forward(plain, expect{cmd: wire.ComQuery, first: 1})
	}
	if h.untold(h.stage.effects) {
		head := p[:len(p)-len(q.Text)]
		return h.forward(append(bytes.Clone(head), scoped(q.Text, h.scope.SQLMode)...), expect{cmd: wire.ComQuery, first: 1})
	}
	return h.forward(nil, expect{cmd: wire.ComQuery, first: h.commandSeq() + 1})
}

// untold says whether a statement may set variables in a way that the server's
// session tracking does not tell of.
func (h *handler) untold(eff effects) bool {
	return eff&effUnscoped != 0 && h.mariadb()
}

// withoutHint blanks one of Freshet's own hints in a command's payload, whose
// end text is: MySQL takes it for an optimizer hint and warns of it, and an
// answer with a warning is not kept.
func withoutHint(payload, text []byte) ([]byte, bool) {
	open := bytes.Index(text, []byte("/*+"))
	if open < 0 {
		return nil, false
	}
	inside := bytes.TrimLeft(text[open+3:], " \t\r\n")
	end := bytes.Index(text[open:], []byte("*/"))
	if end < 0 || len(inside) < 8 || !bytes.EqualFold(inside[:8], []byte("freshet:")) {
		return nil, false
	}
	plain := bytes.Clone(payload)
	start := len(payload) - len(text) + open
	for i := start; i < start+end+2; i++ {
		plain[i] = ' '
	}
	return plain, true
}

func (h *handler) textKey(text []byte) []byte {
	k := append(h.startKey(kindText), text...)
	h.s.KeepKey(k)
	return k
}

// startKey begins a key. In a transaction the status flags are told with the
// answer; kinds of such keys are their own.
func (h *handler) startKey(kind byte) []byte {
	if !h.inTransaction() {
		return h.s.Key(kind, h.context)
	}
	return binary.LittleEndian.AppendUint16(h.s.Key(kind|within, h.context), uint16(h.status))
}

// hit answers from the store.
func (h *handler) hit(key []byte) bool {
	v, ok := h.s.Lookup(key)
	if !ok {
		return false
	}
	h.answerKept(v)
	h.letGo()
	return true
}

// consider decides what becomes of a text that was not found: false means that
// it waits, or was answered.
func (h *handler) consider(q wire.Query, mayRead bool) bool {
	if !h.stage.scanned {
		h.stage.scanned = true
		h.stage.effects = scanText(q.Text, h.scope.SQLMode)
	}
	eff := h.stage.effects
	switch {
	case eff&effConsole != 0 && h.s.Console(q.Text, h.scope, h.consoleDone):
		return false
	case eff&effKill != 0 && !h.killText(q.Text):
		return false
	case eff&effRowCount != 0 && h.past.lost():
		return h.rowCount(q.Text, false)
	case eff&effRead == 0:
		h.s.Forwarded(nil, "not a read")
	case mayRead:
		return h.ask(h.s.Upstream.Planner.Statement(h.scopeID, q.Text, nil), func() []byte { return h.textKey(q.Text) }, nil)
	default:
		var st *planner.Statement
		if len(q.Text) <= maxKeyText {
			st = h.s.Upstream.Planner.Statement(h.scopeID, q.Text, nil)
		}
		return h.goBy(st)
	}
	h.stage.asked = true
	return true
}

// goBy has a read go by the cache. What it is still matters: a proven read
// leaves no trace. False means that it waits for the planner's word.
func (h *handler) goBy(st *planner.Statement) bool {
	if st != nil {
		plan := st.Plan()
		if plan == nil && h.stage.plans < maxPlans {
			h.stage.plans++
			h.s.Plan(st, h.plannedLate)
			return false
		}
		if plan != nil {
			h.stage.class, h.stage.planned = plan.Class, true
		}
	}
	h.passBy()
	h.stage.asked = true
	return true
}

// passBy notes why a read goes by the cache.
func (h *handler) passBy() {
	switch {
	case h.inTransaction():
		h.s.InTransaction(nil)
	case h.dirtyReads:
		h.s.Forwarded(nil, "READ UNCOMMITTED shows what may never be committed")
	case h.hold&opaque != 0:
		h.stage.keepable = true // at another time
		h.s.Forwarded(nil, "the session has "+(h.hold&opaque).String())
	default:
		h.s.Forwarded(nil, "the statement or the session's state forbids it")
	}
}

// plannedLate ends the wait for a plan: one that is late is not waited for.
func (h *handler) plannedLate(late bool) {
	if late {
		h.stage.plans = maxPlans
	}
}

// maxPlans is how often a statement is planned before it is forwarded without:
// a plan can be outdated as soon as it is made.
const maxPlans = 3

// ask has the planner's word on a read and takes its place in line for the
// answer: false means that the command waits.
func (h *handler) ask(st *planner.Statement, key func() []byte, params []planner.Param) bool {
	plan := st.Plan()
	if plan == nil {
		if h.stage.plans < maxPlans {
			h.stage.plans++
			h.s.Plan(st, h.plannedLate)
			return false
		}
		h.s.Forwarded(nil, "its tables are being changed")
		h.stage.asked = true
		return true
	}
	h.stage.class, h.stage.planned = plan.Class, true
	h.stage.keepable = plan.Cacheable || plan.TTLMillis > 0
	h.stage.bare = plan.Class == planner.ClassRead && len(plan.Tables) == 0
	miss, fill := h.s.Miss(key(), st, params)
	if miss == proxy.MissWait {
		h.s.AwaitProof(func() {})
		return false
	}
	h.stage.asked = true
	h.stage.fill = fill
	return miss != proxy.MissJoin
}
