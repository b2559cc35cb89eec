package mysql

import (
	"bytes"
	"strings"

	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// Under READ COMMITTED each statement of a transaction sees what is committed
// when it begins, as a statement on its own does; so as long as a transaction
// has only read (calm), its reads are looked up and kept like any others. A
// BEGIN is held back until something needs the upstream; so is the one that the
// server, without autocommit, does by itself at the first read. Status flags are
// told with every answer: those before a read are a part of its key, those after
// it of what is kept.

// implicitBegin stands for the transaction that a read begins without autocommit.
var implicitBegin = []byte("BEGIN")

// readsAlone says whether the next read may be answered as one outside of its
// transaction would be.
func (h *handler) readsAlone() bool {
	return h.calm || h.between && !h.status.Has(wire.StatusAutocommit) && !h.status.Has(wire.StatusInTrans) && h.mayHold()
}

// mayHold says whether transactions are of the kind that this is about, and
// nothing else is going on in the session.
func (h *handler) mayHold() bool {
	return h.readCommitted && h.hold&^soft == 0 && !h.owed.unsure() && len(h.withheld) == 0 && h.s.Caches() &&
		!isOn(h.base.initial["session_track_state_change"]) && !h.shows.state && plainDefaults(h.base.initial) &&
		(h.mariadb() || !h.caps.Has(wire.ClientSessionTrack)) // MySQL tells those of every transaction (seen on 9.7)
}

// plainDefaults says whether the server's defaults leave BEGIN and COMMIT what
// they are: no chain, no read-only transactions, nothing told of transactions.
func plainDefaults(initial map[string]string) bool {
	told := initial["session_track_transaction_info"]
	return strings.EqualFold(initial["completion_type"], "NO_CHAIN") && (told == "" || strings.EqualFold(told, "OFF"))
}

// transactHere answers a BEGIN that can be held back, and a COMMIT or ROLLBACK
// of a transaction of which the upstream knows nothing.
func (h *handler) transactHere(text []byte) bool {
	if len(text) > maxTransact || !proxy.MayTransact(text) || h.hold&holdDiagnostics != 0 {
		return false // MariaDB's diagnostics outlive both
	}
	switch words := proxy.PlainWords(text, " "); {
	case beginsPlainly(words):
		if h.inTransaction() || !h.mayHold() || isOn(h.value("transaction_read_only")) || isOn(h.value("tx_read_only")) {
			return false
		}
		h.held, h.calm, h.between = bytes.Clone(text), true, true
		h.status |= wire.StatusInTrans
	case endsPlainly(words):
		if !h.inTransaction() || !h.between || !h.mayHold() {
			return false
		}
		h.held, h.calm = nil, false
		h.status &^= wire.StatusInTrans
	default:
		return false
	}
	h.past.none()
	h.past.yielded = false
	h.ok()
	h.letGo()
	return true
}

// letGo gives up a link that was held for diagnostics that nobody can ask for
// any more.
func (h *handler) letGo() {
	if h.hold != 0 && h.hold&^soft == 0 && h.s.Link != nil {
		h.hold = 0
		h.concluding = !h.conclude()
	}
}

// openHeld sends the BEGIN that was held back, before anything else of its
// transaction.
func (h *handler) openHeld() {
	if h.held == nil {
		return
	}
	text := string(h.held)
	h.held, h.between = nil, false
	h.internal(text, func(a *answer) {
		if a.failed {
			h.fatal(h.commandSeq()+1, wire.NewError(wire.ErrNumServerShutdown, "freshet: the transaction cannot be opened on the upstream connection"))
		}
	})
}

// justEnds: COMMIT or ROLLBACK, which runs no code, and after which ROW_COUNT() is
// 0 for certain.
func (eff effects) justEnds() bool { return eff&(effEnds|effMany) == effEnds }

// disturb notes what a command makes of a transaction that has only read.
func (h *handler) disturb(e *expect) {
	switch e.cmd {
	case wire.ComQuery, wire.ComStmtExecute:
		e.calm = h.readsAlone() && e.safe() && (e.keepable || h.stage.bare) && e.effects&effMany == 0
		h.calm = e.calm
	case wire.ComPing, wire.ComStmtPrepare, wire.ComStatistics, wire.ComSetOption, wire.ComFieldList:
	default:
		h.calm = false
	}
}

// maxTransact bounds the texts that are looked at as a BEGIN or an end.
const maxTransact = 64

// beginsPlainly: BEGIN [WORK], START TRANSACTION.
func beginsPlainly(words []string) bool {
	switch len(words) {
	case 1:
		return words[0] == "begin"
	case 2:
		return words[0] == "begin" && words[1] == "work" || words[0] == "start" && words[1] == "transaction"
	}
	return false
}

// endsPlainly: COMMIT [WORK], ROLLBACK [WORK].
func endsPlainly(words []string) bool {
	return (len(words) == 1 || len(words) == 2 && words[1] == "work") && (words[0] == "commit" || words[0] == "rollback")
}
