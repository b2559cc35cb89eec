package mysql

import (
	"encoding/binary"
	"freshet/planner"
	"strconv"
	"strings"

	"freshet/cache"
	wire "freshet/protocol/mysql"
)

// transactional are the status flags that outlive a statement.
const transactional = wire.StatusInTrans | wire.StatusAutocommit | wire.StatusNoBackslashEscapes | wire.StatusInTransReadonly | statusAnsiQuotes

// statusAnsiQuotes is MariaDB's.
const statusAnsiQuotes wire.Status = 1 << 15

// serverStatus takes in the server's word on the transaction.
func (h *handler) serverStatus(s wire.Status) {
	h.status = s & transactional
	h.owed.status = false
}

// settle draws the consequences of a client's command whose reply is over.
func (h *handler) settle(e *expect, r *reply) {
	t := &r.tracker
	stored := h.settleFill(e, r)
	h.s.Completed()
	safe := e.safe()
	if t.Failed {
		h.hold |= holdDiagnostics
		h.owed.status = h.owed.status || !safe && e.cmd != wire.ComStmtPrepare
	}
	if t.Warned || e.effects&effCalcFound != 0 || e.cmd == wire.ComFieldList && !h.mariadb() {
		h.hold |= holdDiagnostics
	}
	if e.effects&(effLastID|effUnproven) != 0 || e.effects&effInsert != 0 && (t.Failed || r.insertID != 0) {
		h.owed.lastID = true
	}
	h.settlePast(e, r)
	h.settleStatement(e, t)
	h.settleEffects(e, t, safe)
	if e.option != 0 && !t.Failed {
		h.switchMultiStatements(e.option - 1)
	}
	if h.mustBeSeen(e, safe, stored) {
		h.s.Wrote()
		if !safe {
			h.forgetUnlogged()
		}
	}
}

// forgetUnlogged: what was just done may be in no log (sql_log_bin = 0), so the
// feed will never tell of it. Everything kept is dropped; fills under way are
// not kept either.
func (h *handler) forgetUnlogged() {
	if st := h.s.Upstream.Store; h.unlogged && st != nil {
		st.Flush()
	}
}

// mustBeSeen says whether what this session reads next must be at least as new
// as now: after what it may have written, after a transaction, and after a read
// that showed it what the answers in the store may not have yet.
func (h *handler) mustBeSeen(e *expect, safe, stored bool) bool {
	switch {
	case e.wasCalm && e.effects.justEnds():
		return false // what was read was kept, or noted then
	case e.began && !h.inTransaction():
		return true
	case e.cmd != wire.ComQuery && e.cmd != wire.ComStmtExecute && e.cmd != wire.ComStmtFetch:
		return false
	case e.effects&(effQuiet|effMany) == effQuiet:
		return false
	case h.inTransaction() && !e.calm:
		return e.effects&effRead == 0
	}
	return !safe || !stored
}

// settleFill keeps a whole answer of one result set that says nothing but its
// rows; anything else is not for others. It tells whether it is kept.
func (h *handler) settleFill(e *expect, r *reply) (stored bool) {
	if e.fill == nil {
		return false
	}
	t, fill := &r.tracker, e.fill
	e.fill = nil
	switch {
	case t.Failed || t.Warned || t.Results != 1 || t.Columns == 0 || r.dirty || h.inTransaction() && !e.calm || h.owed.changes:
		fill.Abandon()
	case e.effects&effOffset != 0:
		// FOUND_ROWS() is not the number of rows: the link must be asked.
		h.uncounted = fill
	default:
		return h.finish(fill, t.Rows)
	}
	return false
}

// finish ends a fill with the status flags and the number that FOUND_ROWS() gives
// after the answer.
func (h *handler) finish(fill *cache.Fill, found uint64) bool {
	tail := binary.LittleEndian.AppendUint16(nil, uint16(h.status))
	return fill.Append(binary.LittleEndian.AppendUint64(tail, found)) && h.s.Keep(fill)
}

// heardFound takes in FOUND_ROWS() of the session's last read.
func (h *handler) heardFound(a *answer) {
	fill := h.uncounted
	h.uncounted, h.owed.found = nil, false
	h.past.away() // MySQL warns of the question itself
	n, err := strconv.ParseUint(a.cell, 10, 64)
	if err == nil {
		h.past.found = n
	}
	switch {
	case fill == nil:
	case err != nil:
		fill.Abandon()
	default:
		// The client was shown it as not kept: its barrier stands already.
		h.finish(fill, n)
	}
}

// settleEffects notes what keeps the link from being given back.
func (h *handler) settleEffects(e *expect, t *wire.Tracker, safe bool) {
	eff := e.effects
	for _, x := range [...]struct {
		eff  effects
		hold hold
	}{{effVariables, holdVariables}, {effTemporary, holdTemporary}, {effPrepare, holdPrepare}, {effLock, holdLocks},
		{effNamedLock, holdNamedLock}, {effHandler, holdHandler}, {effXA, holdXA}, {effRole, holdRole},
		{effNextTrans, holdNextTrans}, {effTracking, holdTracking}, {effUnproven, holdHidden}, {effConnection, holdConnection}, {effReleases, holdConnection}} {
		if eff&x.eff != 0 {
			h.hold |= x.hold
		}
	}
	if eff&effUnlock != 0 && !t.Failed {
		h.hold &^= holdLocks
	}
	switch {
	case h.status.Has(wire.StatusInTransReadonly):
		// It would be the next transaction's, too, if a statement ended this one
		// unasked (seen on MySQL 9.7).
		h.hold |= holdNextTrans
	case e.isStatement() && eff&effNextTrans == 0 && !t.Failed && !h.status.Has(wire.StatusInTrans) && (eff.justEnds() || !e.began):
		h.hold &^= holdNextTrans
	}
	h.between = !h.status.Has(wire.StatusInTrans) && (eff&(effEnds|effMany) == effEnds && !t.Failed || h.between && eff&effQuiet != 0)
	if eff&effGlobal != 0 {
		h.s.Upstream.DefaultsSet()
	}
	h.unlogged = h.unlogged || eff&effUnlogged != 0
	h.owed.settings = h.owed.settings || !safe && eff&effQuiet == 0 && !eff.justEnds() && h.s.Upstream.SettingsChangeUnseen()
	mariadb := h.mariadb()
	if mariadb && eff&effComputed != 0 || e.hides() {
		// MariaDB does not tell every setting that such a SET changes.
		h.hold |= holdHidden
	}
	switch {
	case t.Failed && eff&effUnproven != 0 && !mariadb:
		h.owed.ping = true
	case t.Failed && eff&effUnproven != 0:
		// MariaDB keeps what changed before the error to itself (seen on 10.11).
		h.hold |= holdUnknown
	case eff&effRead != 0 && !safe && !mariadb && !h.inTransaction() && !h.caps.Has(wire.ClientDeprecateEOF):
		// A stored function may have changed the session; an EOF does not
		// tell, but MySQL's next OK does.
		h.owed.status, h.owed.ping = true, true
	}
}

// hides says whether a read may have done to its session what its words do not
// tell: a stored function may do what a procedure may, and a view may take a
// lock.
func (e *expect) hides() bool {
	if e.effects&effRead == 0 || !e.planned {
		return false
	}
	const telling = effVariables | effNamedLock | effLastID
	return e.class == planner.ClassOther || e.class == planner.ClassSession && e.effects&telling == 0
}

// takeChanges takes in what the server told of the session's state, and
// returns what of it the client would have been told without us.
func (h *handler) takeChanges(data []byte, e *expect) []byte {
	changes, err := wire.DecodeStateChanges(h.changes[:0], data)
	h.changes = changes
	if err != nil {
		h.s.Log().Warn("session tracking cannot be read", "cause", err)
		h.hold |= holdUnknown
		return nil
	}
	var kept []byte
	for _, c := range changes {
		if c.Kind == wire.TrackSystemVariables && string(c.Name) == "statement_id" && h.hold&holdTracking == 0 {
			continue // MySQL numbers statements with it: no change of anything
		}
		if e.ours {
			continue
		}
		h.reply.dirty = true
		if h.takeChange(c, e) && !(e.swallow && e.cmd == wire.ComQuery) {
			kept = wire.AppendStateChange(kept, c)
		}
	}
	return kept
}

// takeChange takes in one change and says whether the client is to be told.
func (h *handler) takeChange(c wire.StateChange, e *expect) bool {
	switch c.Kind {
	case wire.TrackSystemVariables:
		name, value := string(c.Name), string(c.Value)
		if e.effects&effStatement != 0 {
			return h.shows.variable(name) // it held for that statement only
		}
		if !e.swallow && e.effects&effTracking != 0 {
			h.shows.change(name, value)
		}
		h.variable(name, value)
		if h.untold(e.effects) {
			return false // the server would not have told without our SESSION
		}
		return h.shows.variable(name) || h.hold&holdTracking != 0
	case wire.TrackSchema:
		h.useDatabase(string(c.Value))
		return h.shows.schema
	case wire.TrackStateChange:
		if !e.explains() {
			h.hold |= holdUnknown
		}
		return h.shows.state
	}
	return true
}

// explains says whether a command's words account for the server's mark that
// some state changed: then its effects tell which, and variables are named.
func (e *expect) explains() bool {
	const telling = effSet | effUse | effTemporary | effPrepare
	if e.swallow && e.cmd == wire.ComQuery {
		return true // our own SET
	}
	return e.effects&telling != 0 && e.effects&effUnproven == 0
}

// conclude asks what is owed and gives the link back if nothing keeps it;
// false: it asked something, and more is to come.
func (h *handler) conclude() bool {
	if h.s.Link == nil {
		return true
	}
	switch {
	case h.owed.status:
		h.askStatus()
		return false
	case h.owed.changes:
		// A flag without data: MariaDB tells with the next change.
		if h.owed.unknown {
			h.hold |= holdUnknown
		}
		h.owed.changes, h.owed.unknown = false, false
		h.internal("SET session_track_schema = ON", nil)
		return false
	case h.uncounted != nil:
		h.internal("SELECT FOUND_ROWS()", h.heardFound)
		return false
	case h.inTransaction() && !h.between:
		h.s.Link.PinnedBy = "transaction"
		return true
	case h.owed.settings && h.hold&soft == 0:
		h.askSettings()
		return false
	case h.owed.collation && h.hold&holdDiagnostics == 0:
		h.internal("SELECT @@collation_connection", h.heardCollation)
		return false
	case h.hold&^soft == 0 && h.s.KeepsLink() != "":
		h.s.Link.PinnedBy = h.s.KeepsLink()
		return true
	case h.hold != 0:
		h.s.Link.PinnedBy = h.hold.String()
		if h.hold&^soft == 0 {
			return h.rest()
		}
		return true
	case h.owed.found && !h.past.foundElsewhere:
		h.internal("SELECT FOUND_ROWS()", h.heardFound)
		return false
	case h.owed.lastID:
		h.internal("SELECT LAST_INSERT_ID()", func(a *answer) {
			h.owed.lastID = false
			h.heardLastID(a.cell)
		})
		return false
	}
	h.giveBack()
	return true
}

// giveBack gives the link to the others, as one of the session's own key.
func (h *handler) giveBack() {
	h.past.away()
	h.s.Link.Key = h.key
	h.s.ReleaseLink()
}

// askStatus asks for the status flags by commands that leave warnings and
// ROW_COUNT() as an error leaves them. COM_SET_OPTION, with the option as it is,
// answers an EOF; COM_PING an OK, which on MySQL also brings the changes that an
// error or an EOF kept back, and which would make ROW_COUNT() 0.
func (h *handler) askStatus() {
	if h.owed.ping {
		h.ask1([]byte{byte(wire.ComPing)}, expect{})
	}
	h.owed.status, h.owed.ping = false, false
	option := byte(wire.OptionMultiStatementsOff)
	if h.caps.Has(wire.ClientMultiStatements) {
		option = wire.OptionMultiStatementsOn
	}
	h.ask1([]byte{byte(wire.ComSetOption), option, 0}, expect{})
}

// askSettings asks for the session variables that can be replayed, and for
// those that hold for a moment.
func (h *handler) askSettings() {
	names := make([]string, 0, len(replayable))
	var text strings.Builder
	for name := range replayable {
		if _, ok := h.base.initial[name]; ok && name != resultsCollation {
			names = append(names, name)
			text.WriteString(", IFNULL(@@" + name + ", '')")
		}
	}
	text.WriteString(", @@insert_id <> 0 OR ABS(@@timestamp - UNIX_TIMESTAMP(SYSDATE(6))) > 1")
	h.internal("SELECT CONCAT_WS('\n'"+text.String()+")", func(a *answer) { h.heardSettings(names, a) })
}

func (h *handler) heardSettings(names []string, a *answer) {
	h.owed.settings = false
	h.past.away()
	values := strings.Split(a.cell, "\n")
	if a.failed || len(values) != len(names)+1 {
		h.hold |= holdUnknown
		return
	}
	for i, name := range names {
		if value := asShown(values[i], h.value(name)); value != h.value(name) {
			h.variable(name, value)
		}
	}
	if values[len(names)] != "0" {
		h.hold |= holdSetting
	}
}

// asShown writes a variable's value as SHOW VARIABLES and session tracking
// do, which is how it was before: SELECT @@name gives 1 for ON.
func asShown(value, before string) string {
	switch {
	case before != "ON" && before != "OFF":
	case value == "1":
		return "ON"
	case value == "0":
		return "OFF"
	}
	return value
}

// heardCollation takes in what SET NAMES and its kin do not tell: the collation
// of literals, and the collation that character_set_results stands for, which
// shows in column definitions only.
func (h *handler) heardCollation(a *answer) {
	h.owed.collation = false
	if a.failed || a.cell == "" {
		h.hold |= holdUnknown
		return
	}
	h.set("collation_connection", a.cell)
	h.set(resultsCollation, resultsCollationOf(h.value("character_set_results"), a.collation))
}

// switchMultiStatements follows COM_SET_OPTION.
func (h *handler) switchMultiStatements(option uint16) {
	if option == wire.OptionMultiStatementsOn {
		h.caps |= wire.ClientMultiStatements
	} else {
		h.caps &^= wire.ClientMultiStatements
	}
	h.link().caps = h.link().caps&^wire.ClientMultiStatements | h.caps&wire.ClientMultiStatements
	h.rekey()
}
