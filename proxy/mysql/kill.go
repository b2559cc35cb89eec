package mysql

import (
	"strconv"
	"strings"
	"time"

	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// killWait bounds the wait for another loop's word on a session.
const killWait = 2 * time.Second

// killText takes a KILL statement that names one of our sessions, by the id
// that its client was given; true: it names none, and is the upstream's.
func (h *handler) killText(text []byte) bool {
	fields := strings.Fields(strings.TrimRight(strings.ToUpper(string(text)), "; \t\r\n"))
	id, err := strconv.ParseUint(fields[len(fields)-1], 10, 32)
	if err != nil || id&idBit == 0 {
		return true
	}
	query := false
	for _, f := range fields[1 : len(fields)-1] {
		query = query || f == "QUERY"
	}
	h.kill(id, query, nil)
	return false
}

// processKill takes COM_PROCESS_KILL.
func (h *handler) processKill(p []byte) bool {
	if h.stage.answered {
		return true
	}
	if h.stage.instead != nil {
		return h.forward(h.stage.instead, expect{cmd: wire.ComQuery, first: 1})
	}
	id, err := wire.DecodeProcessKill(p)
	if err != nil {
		return h.malformed()
	}
	if id&idBit == 0 {
		return h.relay(p)
	}
	h.kill(uint64(id), false, p)
	return h.stage.answered
}

// kill ends a session of ours, or the statement it is waiting for. byCommand is
// COM_PROCESS_KILL if it came by that.
func (h *handler) kill(id uint64, query bool, byCommand []byte) {
	target := h.s.Loop.Server().FindSession(id &^ idBit)
	switch {
	case (target == nil || target.Upstream != h.s.Upstream) && byCommand != nil:
		h.stage.answered = h.relay(byCommand) // the server says so, or that it has no such command
	case target == nil || target.Upstream != h.s.Upstream:
		h.stage.answered = true
		h.fail(wire.NewError(wire.ErrNumNoSuchThread, "Unknown thread id: %d", id))
	case target.Owner() != h.s.User && !h.s.IsAdmin():
		h.stage.answered = true
		h.fail(wire.NewError(wire.ErrNumKillDenied, "You are not owner of thread %d", id))
	case target == h.s:
		h.stage.answered = true
		e := wire.NewError(wire.ErrNumQueryInterrupted, "Query execution was interrupted")
		h.fail(e)
		if !query {
			h.close()
		}
	case !query:
		target.Post(target.Close)
		h.stage.answered = true
		h.ok()
	default:
		h.interrupt(target)
	}
}

// interrupt finds out, on the other session's loop, which upstream thread
// works for it, and has that thread's statement killed. The session may be
// gone before it can tell: then there is nothing to kill.
func (h *handler) interrupt(target *proxy.Session) {
	h.s.Blocked = true
	told := false
	tell := func(thread uint32) {
		h.s.Post(func() {
			if told {
				return
			}
			told = true
			if thread == 0 {
				h.stage.answered = true
				h.send(1, (&wire.OK{Status: h.status}).Append(nil, h.caps))
			} else {
				h.stage.instead = wire.AppendQuery(nil, capsForLink(h.caps), "KILL QUERY "+strconv.FormatUint(uint64(thread), 10))
			}
			h.s.Unblock()
		})
	}
	target.Post(func() {
		other, ok := target.Handler.(*handler)
		if !ok || target.Link == nil || len(other.queue) == 0 {
			tell(0)
			return
		}
		tell(other.link().threadID)
	})
	time.AfterFunc(killWait, func() { tell(0) })
}
