package mysql

import (
	"time"

	"freshet/cache"
	"freshet/planner"
	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// phase is what the client's next bytes are.
type phase uint8

const (
	phaseResponse phase = iota // the answer to our handshake
	phaseSwitch                // the answer to our auth switch
	phaseEntering              // let in; the database is being tried upstream
	phaseCommand               // commands
	phaseFile                  // a file that the upstream asked for
	phaseOver                  // nothing: the session is being closed
)

// handler is one client's session. Everything in it belongs to the session's
// loop.
type handler struct {
	s     *proxy.Session
	up    *shared
	phase phase
	login login

	// What the client is. caps are those agreed on with it; a link's may be
	// more (tracking) and never less in what shapes its bytes.
	caps      wire.Capability
	collation uint16

	// What the session is upstream: with base these decide key (the pool's)
	// and context (the store's), which rekey keeps in step.
	db       string
	settings settings
	base     *base
	key      string
	context  uint64
	scope    planner.Scope
	scopeID  planner.ScopeID
	// dirtyReads: the isolation level is READ UNCOMMITTED.
	dirtyReads, readCommitted bool

	// status is the server's last word on the transaction; hold says what
	// keeps the link from being given back.
	status wire.Status
	shows  shows
	// between: the last transaction has ended and, autocommit being off, the
	// next has not begun. Without autocommit that is all that tells when nothing
	// of the session's is on its link.
	between bool
	// held is a BEGIN that has not gone upstream. calm: the transaction is READ
	// COMMITTED and has only read; see lazy.go.
	held []byte
	calm bool
	// withheld is what the client would have been told with an OK of its own,
	// but came with one of ours; its next OK brings it.
	withheld []byte
	hold     hold
	owed     owed

	// lastID is the session's LAST_INSERT_ID(), wherever it last was known.
	lastID uint64
	past   past

	// unlogged: the session has spoken of sql_log_bin, so its changes may be in
	// no log.
	unlogged bool

	statements map[uint32]*statement
	lastStmt   uint32

	stage stage
	raw   []byte // the current command's packets, headers included
	join  []byte // a command that came in several packets

	// waits: for a link since this ticket; 0 when not.
	waits uint64
	// restUntil is when a link held for ROW_COUNT() alone is given back;
	// resting, that a timer runs for it.
	restUntil time.Time
	resting   bool
	// uncounted is a fill that is whole but for FOUND_ROWS().
	uncounted *cache.Fill
	queue     []expect
	reply     reply
	// concluding: the client's command is over, and what the link still has
	// to tell, or its return to the pool, is not.
	concluding bool
	fileRest   int // of the packet of a file that is passing
	changes    []wire.StateChange
	scratch    []byte // a packet on its way to the client or the link
	rebound    []byte // an execution made the link's own
	params     []planner.Param
	located    []wire.Param
}

// stage is how far the current command has come. It outlives the call when
// the command has to wait, and is cleared when the command is consumed.
type stage struct {
	answered bool        // the client has its answer
	asked    bool        // store and planner have been asked: what is left is to forward
	plans    int         // times a plan was waited for
	fill     *cache.Fill // to be filled by the forwarded command
	class    planner.Class
	keepable bool // the plan allows the answer to be kept
	planned  bool // class is the planner's
	bare     bool // planned, and reads no table
	scanned  bool
	effects  effects
	linkErr  error
	primed   bool   // the link's diagnostics are those of the session's past
	instead  []byte // payload to forward in the command's place
}

// Open implements proxy.Handler: the server speaks first.
func (h *handler) Open() {
	if h.s.Full {
		h.fatal(0, wire.NewError(wire.ErrNumTooManyConnections, "Too many connections"))
		return
	}
	h.greet()
}

// Data implements proxy.Handler.
func (h *handler) Data(in []byte) (used int) {
	for used < len(in) && !h.s.Blocked {
		n := h.step(in[used:])
		if n == 0 {
			break
		}
		used += n
	}
	return used
}

// step takes one message, or nothing.
func (h *handler) step(in []byte) int {
	switch h.phase {
	case phaseCommand:
		return h.nextCommand(in)
	case phaseFile:
		return h.file(in)
	case phaseEntering:
		return 0
	case phaseOver:
		return len(in)
	}
	return h.nextLogin(in)
}

// LinkReady implements proxy.Handler.
func (h *handler) LinkReady(err error) {
	h.up.arrived(h)
	if err != nil {
		h.stage.linkErr = err
		h.abandonFill()
	} else {
		h.attached()
	}
	if h.phase == phaseEntering {
		h.entered()
	}
}

// attached looks at a link that was just given to the session.
func (h *handler) attached() {
	ls := h.link()
	h.past.away()
	if h.base != ls.base {
		// The server's defaults changed since the session began: what is
		// answered now is answered under the new ones.
		h.base = ls.base
		h.abandonFill()
		h.rekey()
	}
}

// link is the attached link's state.
func (h *handler) link() *linkState { return h.s.Link.State.(*linkState) }

// Closed implements proxy.Handler.
func (h *handler) Closed() {
	h.up.arrived(h)
	h.up.stay(h)
	h.abandonFill()
	h.leave()
	h.abandonReplies()
}

// leave gives back a link on which the session leaves nothing but what its next
// statement could have asked for. The core closes any other.
func (h *handler) leave() {
	idle := h.s.Link != nil && h.phase == phaseCommand && len(h.queue) == 0 && !h.concluding && !h.inTransaction()
	if idle && h.hold&^soft == 0 && !h.owed.unsure() {
		h.giveBack()
	}
}

// abandonFill gives up the fill of a command that was not sent yet.
func (h *handler) abandonFill() {
	if h.stage.fill != nil {
		h.stage.fill.Abandon()
		h.stage.fill = nil
	}
}

// inTransaction says whether the next statement belongs to one.
func (h *handler) inTransaction() bool {
	return h.status&(wire.StatusInTrans|wire.StatusAutocommit) != wire.StatusAutocommit
}
