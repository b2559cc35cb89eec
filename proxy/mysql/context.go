package mysql

import (
	"strings"

	"freshet/planner"
	wire "freshet/protocol/mysql"
)

func (h *handler) linkKey() linkKey {
	return linkKey{user: h.s.OtherUser(), caps: capsForLink(h.caps), collation: h.collation, database: h.db, settings: h.settings}
}

// rekey recomputes what depends on the session's state: the pool's key, the
// store's context, the planner's scope.
func (h *handler) rekey() {
	k := h.linkKey()
	h.key = k.String()
	if h.base == nil {
		return
	}
	h.context = h.s.Upstream.Context(h.canonicalContext(k))
	h.dirtyReads, h.readCommitted = h.isolated(readUncommitted), h.isolated(readCommitted)
	h.scope = planner.Scope{Database: h.db, User: h.s.User, SQLMode: h.value("sql_mode"), Charset: h.value("character_set_client"),
		Zone: zoneOf(h.value("time_zone"))}
	h.scopeID = h.s.Upstream.Planner.Scope(h.scope)
	h.rezone()
}

// rezone gives prepared statements plans for the session's time zone as it is
// now; everything else of their scope is as it was when they were prepared.
func (h *handler) rezone() {
	for _, s := range h.statements {
		if s.plan == nil || s.plan.Scope.Zone == h.scope.Zone {
			continue
		}
		scope := s.plan.Scope
		scope.Zone = h.scope.Zone
		p := h.s.Upstream.Planner
		s.plan = p.Statement(p.Scope(scope), []byte(s.text), nil)
	}
}

// isolated says whether the session's isolation level is the one.
func (h *handler) isolated(level string) bool {
	return strings.EqualFold(h.value("transaction_isolation"), level) || strings.EqualFold(h.value("tx_isolation"), level)
}

// readCommitted is the isolation level under which transactions that only read
// are answered from memory.
const readCommitted = "READ-COMMITTED"

// readUncommitted is the isolation level whose answers may show what is never
// committed: they are not kept.
const readUncommitted = "READ-UNCOMMITTED"

// canonicalContext is everything besides text and parameters that can change
// the bytes of an answer. Each part's length is written, so parts cannot run
// into each other. The client's own flags are in it beside the link's: they
// decide what is cut from an OK packet.
func (h *handler) canonicalContext(k linkKey) []byte {
	b := wire.AppendLenencString(nil, k.String())
	b = wire.AppendLenenc(b, uint64(h.caps))
	b = wire.AppendLenencString(b, h.s.User)
	return wire.AppendLenenc(b, h.base.printID)
}

// value is a session variable's value now.
func (h *handler) value(name string) string {
	if v, ok := h.settings.get(name); ok {
		return v
	}
	return h.base.initial[name]
}

// variable takes in that a session variable now has a value.
func (h *handler) variable(name, value string) {
	switch {
	case passing[name]:
		if name == "last_insert_id" {
			h.heardLastID(value)
		}
		return
	case oneShot[name]:
		h.hold |= holdSetting
		return
	case strings.HasPrefix(name, "character_set_"):
		// SET NAMES changes more than the server tells: see heardCollation.
		h.owed.collation = true
	}
	h.set(name, value)
}

// set keeps a setting, if it differs from a fresh connection's.
func (h *handler) set(name, value string) {
	old := h.settings
	if initial, ok := h.base.initial[name]; ok && initial == value {
		h.settings = h.settings.without(name)
	} else {
		h.settings = h.settings.with(name, value)
		if !(setting{name, value}).canReplay() {
			h.hold |= holdSetting
		}
	}
	if len(old) != len(h.settings) || len(old) > 0 && &old[0] != &h.settings[0] {
		h.rekey()
	}
}

// useDatabase takes in that the default database is now another.
func (h *handler) useDatabase(name string) {
	if h.db != name {
		h.db = name
		h.rekey()
	}
}

// zoneOf is a time zone as planner.Scope has it.
func zoneOf(name string) string {
	switch {
	case name == "":
		return "SYSTEM"
	case name[0] == '+' || name[0] == '-':
		return ""
	}
	return name
}
