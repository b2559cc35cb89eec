package mysql

import (
	"errors"

	wire "freshet/protocol/mysql"
)

// nextCommand takes one whole command, or nothing if it is not all there or
// has to wait.
func (h *handler) nextCommand(in []byte) int {
	m, n, err := wire.NextMessage(in, h.base.maxPacket, &h.join)
	switch {
	case errors.Is(err, wire.ErrIncomplete):
		return 0
	case errors.Is(err, wire.ErrTooLarge):
		h.fatal(m.LastSeq+1, wire.NewError(wire.ErrNumPacketTooLarge, "Got a packet bigger than 'max_allowed_packet' bytes"))
		return len(in)
	case err != nil || m.Seq != 0 || len(m.Payload) == 0:
		h.s.Malformed()
		h.fatal(m.LastSeq+1, wire.NewError(wire.ErrNumPacketsOutOfOrder, "Got packets out of order"))
		return len(in)
	}
	h.raw = in[:n]
	done := h.command(m.Payload)
	h.raw = nil
	if !done {
		return 0
	}
	h.stage = stage{}
	return n
}

// command sends a command to its family and tells whether it was consumed.
func (h *handler) command(p []byte) bool {
	switch wire.Command(p[0]) {
	case wire.ComQuery:
		return h.query(p)
	case wire.ComStmtExecute:
		return h.execute(p)
	case wire.ComStmtPrepare:
		return h.prepare(p)
	case wire.ComStmtClose:
		return h.closeStatement(p)
	case wire.ComStmtReset:
		return h.resetStatement(p)
	case wire.ComStmtSendLongData:
		return h.longData(p)
	case wire.ComStmtFetch:
		return h.fetch(p)
	case wire.ComInitDB, wire.ComSetOption, wire.ComFieldList, wire.ComStatistics, wire.ComProcessInfo, wire.ComDebug, wire.ComRefresh:
		return h.relay(p)
	case wire.ComPing:
		return h.ping()
	case wire.ComQuit:
		return h.quit()
	case wire.ComResetConnection:
		return h.resetConnection()
	case wire.ComChangeUser:
		return h.changeUser(p)
	case wire.ComProcessKill:
		return h.processKill(p)
	case wire.ComStmtBulkExecute:
		if h.caps.Has(wire.MariaDBBulkOperations) {
			return h.executeBulk(p)
		}
	case wire.ComClone:
		if !h.mariadb() {
			h.fail(wire.NewError(wire.ErrNumPluginIsNotLoaded, "Plugin 'clone' is not loaded"))
			return true
		}
	}
	if p[0] > lastCommand && p[0] < firstExtension {
		return h.relay(p) // the server says that it knows no such command
	}
	h.s.Forwarded(nil, "a command that is not passed on")
	h.fail(wire.NewError(wire.ErrNumUnknownCommand, "Unknown command"))
	return true
}

// Commands above lastCommand (COM_SUBSCRIBE_GROUP_REPLICATION_STREAM) and below
// MariaDB's extensions are none anywhere. The others that have no case turn the
// connection into something else (replication, cloning) and are refused.
const (
	lastCommand    = 0x21
	firstExtension = 0xf0
)

// malformed answers a command that cannot be read.
func (h *handler) malformed() bool {
	h.s.Malformed()
	message := "Malformed communication packet."
	if h.mariadb() {
		message = message[:len(message)-1]
	}
	h.fail(wire.NewError(wire.ErrNumMalformedPacket, "%s", message))
	return true
}
