package postgres

import (
	"bytes"

	"freshet/planner"
	pg "freshet/protocol/postgres"
	"freshet/proxy"
)

// handler is one client's session. All of it belongs to the session's loop.
type handler struct {
	s      *proxy.Session
	shared *shared
	stage  stage

	// Of the start.
	startup pg.StartupMessage
	login   *pg.SCRAM
	key     pg.BackendKeyData
	asked   int // how often the client asked for encryption

	poolKey  string
	database string
	// passthrough: a replication session. Nothing is looked at.
	passthrough bool

	state   state
	scope   planner.ScopeID
	context uint64
	// dirty: a statement ran that may have changed the state; nothing is served
	// from memory until the link was asked. asking: it is being asked.
	dirty, asking bool
	customs       []string // names of settings that pg_settings may not show
	// ranCode: what made it dirty may have run what users wrote; called: it may
	// have called it by name. unnamed: that may have made settings whose names
	// nobody knows. recodes: a statement of the transaction may have changed what
	// code there is (hidden.go).
	ranCode, called, unnamed, recodes bool

	tx pg.TxStatus // as the client knows it
	// held is a BEGIN that has not gone upstream. calm: the transaction is READ
	// COMMITTED and has only read; see lazy.go.
	held []byte
	calm bool
	// heldRead: a read was answered from memory since a BEGIN was held back.
	heldRead bool
	ghost    *ghost // nil: the unnamed portal is the link's
	replies  pg.Replies[*op]
	// batch: extended messages were sent upstream that no Sync has ended, or not
	// for certain (see batch.go). extended counts those messages.
	batch    bool
	extended uint64
	// wrote: something ran that the session's next hits must reflect.
	wrote bool

	statements names
	portals    map[string]*statement // what each portal of this batch or transaction runs
	// native: the client's statement names are the link's, because it also
	// speaks of them in SQL. The link is then pinned.
	native   bool
	nativeIs presence
	// mixed: see mixesSettings.
	mixed bool
	// keepsLink: values of sequences are on this link and may be asked for.
	keepsLink bool

	claim   *claim // what was decided about the unit at the head of the input
	discard int    // of a message that is dropped while it comes in
	passing int    // bytes of a large client message on its way upstream
	// skipToSync: an error was made up here, outside a batch: what follows is
	// dropped until a Sync, as the server would.
	skipToSync bool
	refusal    []byte // the error that answers the next statement
	joined     []byte // the answer that a join has brought
	joinFailed bool

	// holding: the session is blocked by us; waiting: by the core. awaiting: we
	// hold it until the link has described a statement; closing: until the link
	// has closed what is not for others. resume: what we held for has come.
	holding, waiting, awaiting, closing, resume bool
	askFailed                                   bool       // the state query failed; it is asked again after the next statement
	changed                                     *statement // the unnamed statement, found to have other columns now
	linkReady                                   bool       // the attached link has this session's state
	planTries                                   int
	cancels                                     int  // cancel requests on their way upstream
	farewell                                    bool // the server said goodbye; the client has it

	streaming  int // bytes of a large server message that still pass
	found      found
	lastParams [][]byte
	params     []planner.Param
	out        []byte // scratch
}

// stage is where in its life a session is.
type stage uint8

const (
	stageStartup stage = iota // a startup packet is awaited
	stageLogin                // the client's proof is awaited
	stageGreet                // a link of the pool key is being opened
	stageReady
	stageClosed
)

// op is what is remembered with each message whose replies are expected.
type op struct {
	// st and capture of what runs; either may be nil.
	st      *planner.Statement
	capture *capture
	// undo takes back what was assumed when the message was sent: it was
	// answered by an error, or the server never looked at it. dropped, if set,
	// does so in the second case.
	undo, dropped func()
	// done is called once it was answered well.
	done func()
	// seen is shown each reply to a message that the client did not send, and
	// those to a Describe.
	seen func(kind byte, body []byte)
	// made is what is told to the client for ActionReplace.
	made []byte
	// alias and name: the statement's name upstream and the client's, for
	// errors that quote it.
	alias, name string
}

// Open waits for the client: PostgreSQL's server does not speak first.
func (h *handler) Open() {}

// Data takes the client's messages.
func (h *handler) Data(in []byte) int {
	switch h.stage {
	case stageStartup:
		return h.startupData(in)
	case stageLogin:
		return h.loginData(in)
	case stageReady:
		return h.readyData(in)
	case stageClosed:
		return len(in)
	}
	return 0 // stageGreet: blocked
}

// readyData is the main loop of a session.
func (h *handler) readyData(in []byte) int {
	if h.holding {
		h.s.Blocked = true
		return 0
	}
	n := 0
	for n < len(in) && !h.s.Blocked && h.stage == stageReady {
		if h.discard > 0 || h.passing > 0 {
			n += h.passOn(in[n:])
			continue
		}
		used, more := h.next(in[n:])
		n += used
		if used == 0 && !more {
			break
		}
	}
	if h.s.Link != nil && h.claim == nil {
		h.tidy()
	}
	return n
}

// next takes one message, or one unit that is answered at once, off the front.
// It tells 0 and false when it has to wait for more bytes or is blocked.
func (h *handler) next(in []byte) (used int, more bool) {
	if h.quiet() && h.claim == nil && !h.skipToSync && h.refusal == nil {
		used, verdict := h.unit(in)
		switch verdict {
		case unitDone:
			return used, true
		case unitWait:
			return 0, false
		}
	}
	kind, body, size, err := pg.Next(in, pg.MaxMessageLen)
	if err != nil {
		h.s.Malformed()
		h.fatal("08P01", "invalid message length")
		return len(in), false
	}
	if size == 0 {
		return h.large(in)
	}
	if !h.message(kind, body, in[:size]) {
		return 0, false
	}
	return size, true
}

// message is the dispatcher: each kind of message has its own file. It tells
// false when the message could not be taken yet.
func (h *handler) message(kind byte, body, frame []byte) bool {
	if h.ignored(kind) {
		return true
	}
	if h.breaksCopy(kind, frame) {
		return true
	}
	if h.refusal != nil && kind != pg.TypeTerminate {
		return h.refuse(kind)
	}
	switch kind {
	case pg.TypeQuery:
		return h.query(body, frame)
	case pg.TypeParse:
		return h.parse(body, frame)
	case pg.TypeBind:
		return h.bindMessage(body, frame)
	case pg.TypeDescribe:
		return h.describe(body, frame)
	case pg.TypeExecute:
		return h.execute(body, frame)
	case pg.TypeClose:
		return h.close(body, frame)
	case pg.TypeFlush:
		return h.flush(frame)
	case pg.TypeSync:
		return h.sync(frame)
	case pg.TypeCopyData, pg.TypeCopyDone, pg.TypeCopyFail:
		return h.copyMessage(kind, frame)
	case pg.TypeFunctionCall:
		return h.functionCall(frame)
	case pg.TypeTerminate:
		h.terminate()
		return true
	}
	h.s.Malformed()
	h.fatal("08P01", "invalid frontend message type "+itoa(int(kind)))
	return true
}

// ignored tells whether the server would drop the message because of an
// earlier error: everything up to a Sync, a Query too.
func (h *handler) ignored(kind byte) bool {
	if kind == pg.TypeSync || kind == pg.TypeTerminate {
		return false
	}
	return h.skipToSync || h.replies.Skipping()
}

// quiet: nothing is owed to the client, no transaction that matters or batch is
// open, and the context is known, so an answer from memory would come in its
// turn.
func (h *handler) quiet() bool {
	return h.replies.Idle() && (h.tx == pg.TxIdle || h.calm && h.tx == pg.TxOpen) && !h.batch && !h.dirty && !h.asking && !h.passthrough
}

// cacheable: a quiet session whose answers can be known from its context.
func (h *handler) cacheable() bool {
	return h.quiet() && !h.state.temporary
}

// terminate ends the session. The link is kept for others if nothing is on it.
func (h *handler) terminate() {
	if h.s.Link != nil && h.replies.Idle() && h.mayRelease() {
		h.release()
	}
	h.stage = stageClosed
	h.s.Close()
}

// Closed is told when the client is gone. What it ran is not known to have
// come to an end, so fills are given up and the core closes the link.
func (h *handler) Closed() {
	h.stage = stageClosed
	h.abandon()
}

func (h *handler) abandon() {
	if h.claim != nil && h.claim.capture != nil {
		h.claim.capture.end(false)
	}
	h.claim = nil
	h.replies.DropAll()
}

// dropped is told of each message that the server will not answer.
func (h *handler) dropped(e pg.Expected[*op]) {
	if e.Ref == nil {
		return
	}
	switch {
	case e.Ref.dropped != nil:
		e.Ref.dropped()
	case e.Ref.undo != nil:
		e.Ref.undo()
	}
	if e.Ref.capture != nil {
		e.Ref.capture.end(false)
	}
}

// hold blocks the client's messages until unhold.
func (h *handler) hold() {
	h.holding = true
	h.s.Blocked = true
}

// unhold lets the client's messages in again. Not to be called within Data.
func (h *handler) unhold() {
	if !h.holding {
		return
	}
	h.holding = false
	if !h.waiting {
		h.s.Unblock()
	}
}

// finish is called when the answer is complete and no error.
func (o *op) finish() {
	if o.done != nil {
		o.done()
		o.done = nil
	}
}

// clone keeps bytes that are only lent.
func clone(b []byte) []byte { return bytes.Clone(b) }
