package postgres

import (
	"encoding/binary"

	"freshet/planner"
	pg "freshet/protocol/postgres"
	"freshet/proxy"
)

// The kinds of store keys. What an answer holds: the kind says whether the
// columns' description comes before the rows.
const (
	keyQuery     byte = 'q' // a simple query: described
	keyDescribed byte = 'd' // Bind, Describe, Execute
	keyPlain     byte = 'e' // Bind, Execute
)

// verdict is what became of looking for a unit.
type verdict uint8

const (
	unitForward verdict = iota // its messages go their ordinary way
	unitDone                   // it was answered
	unitWait                   // more bytes, or something else, is waited for
)

// claim is what was decided about the statement at the head of the input
// while its messages still wait for a link. There is one at most.
type claim struct {
	capture *capture // nil: nothing is kept
}

var (
	readyIdle  = (&pg.ReadyForQuery{Status: pg.TxIdle}).Append(nil)
	boundOnly  = pg.BindComplete.Append(nil)
	readyOpen  = (&pg.ReadyForQuery{Status: pg.TxOpen}).Append(nil)
	parsedOnly = pg.ParseComplete.Append(nil)
	parsedAnd  = pg.BindComplete.Append(pg.ParseComplete.Append(nil))
)

// unit looks whether the head of the input can be answered here.
func (h *handler) unit(in []byte) (used int, _ verdict) {
	switch in[0] {
	case pg.TypeParse, pg.TypeBind, pg.TypeDescribe:
	default:
		return 0, unitForward
	}
	u := &h.found
	switch shape := u.match(in); shape {
	case shapeMore:
		return 0, unitWait
	case shapeRun, shapeOther:
		s := h.statements.get(u.name)
		switch {
		case h.transactRun(u, s):
			return u.size, unitDone
		case shape == shapeRun:
			return h.run(u, s)
		}
	case shapeLook:
		return h.look(u)
	}
	return 0, unitForward
}

// run answers a run of one statement, or decides how it is forwarded.
func (h *handler) run(u *found, s *statement) (int, verdict) {
	text, oids := u.parse.Text, u.parse.OIDs
	switch {
	case h.tx != pg.TxIdle && len(u.bind.Portal) > 0:
		return 0, unitForward // named portals outlive a batch within a transaction
	case h.state.temporary && h.quiet() && h.commandRun(u, s):
		return u.size, unitDone
	case !h.cacheable(), !u.hasParse && s != nil && h.otherSettings(s) && consoleKind(s.text) == notConsole:
		return h.runForward(u, s)
	case u.hasParse && len(u.name) > 0 && (s != nil || h.native):
		return 0, unitForward // the name is in use: the server's error; or the link's
	case !u.hasParse && s == nil:
		return 0, unitForward // there is no such statement: likewise
	case !u.hasParse:
		text, oids = s.text, s.oids
	case len(u.name) > 0 && h.recall(text, oids) == nil:
		return 0, unitForward // what it will be known by has to be asked first
	}
	if value, ok := h.takeJoined(); ok {
		h.answerRun(u, value)
		return u.size, unitDone
	}
	k := h.runKey(u, text, oids)
	if u.hasParse || s.current() {
		value, ok := h.s.Lookup(k)
		h.s.KeepKey(k)
		if ok {
			h.answerRun(u, value)
			return u.size, unitDone
		}
	} else {
		h.s.KeepKey(k)
	}
	return h.runMiss(u, text, oids, s)
}

// current tells whether the tables' definitions are what they were when the
// client parsed the statement, as far as the planner knows.
func (s *statement) current() bool {
	return s.st != nil && s.plan != nil && s.st.Plan() == s.plan
}

// recallNamed finds what a named statement will be known by later.
func (h *handler) recallNamed(u *found) *described {
	if len(u.name) == 0 {
		return nil
	}
	return h.recall(u.parse.Text, u.parse.OIDs)
}

func (h *handler) runKey(u *found, text []byte, oids []uint32) []byte {
	kind := keyPlain
	if u.describe {
		kind = keyDescribed
	}
	k := h.s.Key(kind, h.context)
	k = binary.LittleEndian.AppendUint32(k, uint32(len(text)))
	k = append(k, text...)
	k = binary.LittleEndian.AppendUint32(k, uint32(len(oids)))
	for _, oid := range oids {
		k = binary.LittleEndian.AppendUint32(k, oid)
	}
	return append(k, u.bind.Tail...)
}

// answerRun tells the whole answer to a run from its rows.
func (h *handler) answerRun(u *found, value []byte) {
	h.heldRead = true
	before := boundOnly
	if u.hasParse {
		before = parsedAnd
		h.parsedHere(u)
	}
	h.leavesPortal(u)
	h.s.Write(before)
	h.s.Write(value)
	h.s.Write(h.ready())
}

// parsedHere notes a Parse that was answered without the link. A text that
// was parsed before keeps its statement.
func (h *handler) parsedHere(u *found) {
	s := h.statements.get(u.name)
	if s != nil && s.same(u.parse.Text, u.parse.OIDs) && !h.otherSettings(s) && (s.st == nil || s.current()) {
		return
	}
	fresh := h.newStatement(&u.parse, nil)
	if d := h.recallNamed(u); d != nil {
		fresh.st, fresh.plan = d.st, d.plan
		fresh.describe(d.bytes)
	}
	h.statements.set(fresh.name, fresh)
}

// runMiss plans a run that was not answered and asks whether its answer is
// to be kept or is on its way already.
func (h *handler) runMiss(u *found, text []byte, oids []uint32, s *statement) (int, verdict) {
	if consoleKind(text) != notConsole && h.consoleRun(u, text) {
		return u.size, unitDone
	}
	st, ok := h.planned(text, oids, s)
	if !ok {
		return 0, unitWait
	}
	if s != nil && !u.hasParse {
		s.adoptPlan(st)
	}
	if why := h.whyForwardRun(u, st, s); why != "" {
		h.forwardUnseen(st, why)
		return 0, unitForward
	}
	k := h.runKey(u, text, oids)
	miss, fill := h.s.Miss(k, st, h.params)
	h.s.KeepKey(k)
	switch miss {
	case proxy.MissJoin:
		h.waiting = true
		return 0, unitWait
	case proxy.MissWait:
		h.awaitProof()
		return 0, unitWait
	case proxy.MissFill:
		h.claim = &claim{capture: &capture{session: h.s, fill: fill, described: u.describe}}
	default:
		h.claim = &claim{}
	}
	return 0, unitForward
}

// whyForward says why a statement is forwarded without asking whether its
// answer is to be kept, or "".
func (h *handler) whyForward(st *planner.Statement) string {
	switch {
	case st == nil:
		return "the text is too long to be looked at"
	case st.Plan() == nil:
		return "its tables' definitions are changing"
	case !h.cacheable():
		return "the session has temporary tables"
	case h.joinFailed:
		return "the fill it waited for was given up"
	}
	return ""
}

func (h *handler) whyForwardRun(u *found, st *planner.Statement, s *statement) string {
	if why := h.whyForward(st); why != "" {
		return why
	}
	switch {
	case s != nil && !u.hasParse && !s.current():
		return "its tables' definitions may have changed since it was parsed"
	case !h.parameters(u, s):
		return "the parameters' formats do not fit"
	}
	return ""
}

// forwardUnseen decides for forwarding without a look at the cache.
func (h *handler) forwardUnseen(st *planner.Statement, why string) {
	h.joinFailed = false
	h.noteForwarded(st, nil)
	h.s.Forwarded(st, why)
	h.claim = &claim{}
}

// runForward notes a run that is not looked up because of the session's state.
func (h *handler) runForward(u *found, s *statement) (int, verdict) {
	text, oids := u.parse.Text, u.parse.OIDs
	if !u.hasParse {
		if s == nil {
			return 0, unitForward
		}
		text, oids = s.text, s.oids
	}
	st, ok := h.planned(text, oids, s)
	if !ok {
		return 0, unitWait
	}
	h.forwardUnseen(st, "the session has temporary tables")
	return 0, unitForward
}

// adoptPlan gives a statement that was only hit so far its plan.
func (s *statement) adoptPlan(st *planner.Statement) {
	if s.st == nil {
		s.st = st
		if st != nil {
			s.plan = st.Plan()
		}
	}
}

// parameters reads the run's parameters for the planner; false if the formats
// do not fit, which is for the server to say.
func (h *handler) parameters(u *found, s *statement) bool {
	h.params = h.params[:0]
	types := u.parse.OIDs
	if !u.hasParse {
		if types = s.oids; s.params != nil {
			types = s.params
		}
	}
	for i, p := range u.bind.Params {
		format, ok := u.bind.ParamFormat(i)
		if !ok || format > pg.FormatBinary {
			return false
		}
		param := planner.Param{Null: p == nil, Binary: format == pg.FormatBinary, Data: p}
		if i < len(types) {
			param.Type = types[i]
		}
		h.params = append(h.params, param)
	}
	return true
}

// maxPlanned bounds the texts that are planned; a longer one may do anything.
const maxPlanned = 16 << 10

// maxPlanTries bounds how often a statement is planned anew because its
// tables' definitions change while it is being planned.
const maxPlanTries = 3

// planned gives the statement of a text with its plan, or blocks the session
// until there is one. A nil statement means that nothing is known of it.
func (h *handler) planned(text []byte, oids []uint32, s *statement) (*planner.Statement, bool) {
	if len(text) > maxPlanned {
		return nil, true
	}
	var st *planner.Statement
	if s != nil && s.st != nil && s.same(text, oids) {
		st = s.st
	} else {
		st = h.s.Upstream.Planner.Statement(h.scope, text, oids)
	}
	if st == nil || st.Plan() != nil || h.planTries >= maxPlanTries {
		h.planTries = 0
		return st, true
	}
	h.planTries++
	h.waiting = true
	h.s.Plan(st, func(late bool) {
		h.waiting = false
		if late {
			h.planTries = maxPlanTries
		}
	})
	return nil, false
}

// Joined brings the answer that another session's fill was waiting for. The
// statement is still at the head of the input and is offered again next; it
// then finds the answer, or that there is none and it has to be forwarded.
func (h *handler) Joined(value []byte, ok bool) {
	h.waiting = false
	h.joined, h.joinFailed = nil, !ok
	if ok {
		h.joined = value
	}
}

// awaitProof lets the client wait for an answer that its session may not be
// shown yet. The statement is offered again then.
func (h *handler) awaitProof() {
	h.waiting = true
	h.s.AwaitProof(func() { h.waiting = false })
}

// takeJoined gives the answer that a join has brought, once.
func (h *handler) takeJoined() ([]byte, bool) {
	v := h.joined
	h.joined = nil
	return v, v != nil
}
