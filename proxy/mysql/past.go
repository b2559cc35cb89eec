package mysql

import (
	"strconv"
	"strings"

	"freshet/planner"
	wire "freshet/protocol/mysql"
)

// past is what later statements may ask of earlier ones (FOUND_ROWS(),
// ROW_COUNT(), SHOW WARNINGS), which on one connection the server keeps. Here
// the last statement may have been a hit, or have run on a link that was given
// back; the link is then brought into the same state by running the last read
// again, its reply thrown away.
type past struct {
	// elsewhere: the last statement did not run on the attached link.
	elsewhere bool
	payload   []byte // the last read, nil when too large or none
	stmt      *statement
	types     []byte
	// affected is ROW_COUNT() after the last statement if that was no read.
	wrote    bool
	affected uint64
}

// maxPast bounds the read that is remembered.
const maxPast = 64 << 10

// read notes a read that was answered by other means than the link.
func (p *past) read(payload []byte, stmt *statement) {
	p.elsewhere, p.wrote = true, false
	p.keep(payload, stmt)
}

// reading notes a read that is about to be forwarded.
func (p *past) reading(s stage, payload []byte, stmt *statement) {
	if s.planned && s.class == planner.ClassRead && s.effects&(effPast|effRowCount|effLastID) == 0 {
		p.keep(payload, stmt)
	}
}

func (p *past) keep(payload []byte, stmt *statement) {
	p.payload, p.stmt = append(p.payload[:0], payload[:min(len(payload), maxPast+1)]...), stmt
	if len(payload) > maxPast {
		p.payload = p.payload[:0]
	}
	if stmt != nil {
		p.types = append(p.types[:0], stmt.types...)
	}
}

// lost says whether ROW_COUNT() is that of a write on a link long given back,
// which no statement can bring back.
func (p *past) lost() bool { return p.elsewhere && p.wrote }

// prime brings the link's diagnostics to the session's past before a statement
// that asks for them; false means that the command waits.
func (h *handler) prime(eff effects) bool {
	if eff&(effLastID|effUnproven) != 0 {
		h.bringLastID()
	}
	if eff&(effPast|effRowCount) == 0 || h.stage.primed || !h.past.elsewhere {
		return true
	}
	payload := h.past.payload
	switch {
	case len(payload) == 0:
		payload = wire.AppendQuery(nil, h.link().caps, "SELECT 1 LIMIT 0")
	case h.past.stmt != nil:
		pr, ready := h.ensurePrepared(h.past.stmt, false)
		if !ready {
			return false
		}
		payload = h.rebind(payload, h.past.stmt, h.past.types, pr)
	}
	h.stage.primed = true
	h.ask1(payload, expect{swallow: true})
	return true
}

// bringLastID makes LAST_INSERT_ID() on the link the session's.
func (h *handler) bringLastID() {
	ls := h.link()
	if ls.lastID == h.lastID {
		return
	}
	ls.lastID = h.lastID
	h.internal("SET last_insert_id = "+strconv.FormatUint(h.lastID, 10), nil)
}

// heardLastID takes in a value of LAST_INSERT_ID() on the attached link.
func (h *handler) heardLastID(text string) {
	if v, err := strconv.ParseUint(text, 10, 64); err == nil {
		h.lastID = v
		h.link().lastID = v
	}
}

// rowCount answers SELECT ROW_COUNT() after a write whose link was given back.
// It always returns false: the command is answered.
func (h *handler) rowCount(text []byte) bool {
	h.stage.answered = true
	fields := strings.Fields(strings.TrimRight(string(text), "; \t\r\n"))
	if len(fields) != 2 && len(fields) != 4 || !strings.EqualFold(fields[0], "SELECT") || !strings.EqualFold(fields[1], "ROW_COUNT()") ||
		len(fields) == 4 && !strings.EqualFold(fields[2], "AS") {
		h.fail(wire.NewError(wire.ErrNumUnknown, "freshet: ROW_COUNT() of the statement before is only known to a bare SELECT ROW_COUNT(); run both in one transaction"))
		return false
	}
	name, value := fields[len(fields)-1], strconv.FormatUint(h.past.affected, 10)
	h.past.wrote = false
	h.writeResult(&wire.Result{Columns: []wire.Column{wire.IntColumn(strings.Trim(name, "`"))}, Rows: [][]*string{{&value}}, Status: h.status})
	return false
}

// writeResult answers the current command with a made-up result set.
func (h *handler) writeResult(r *wire.Result) {
	h.scratch, _ = r.Append(h.scratch[:0], h.commandSeq()+1, h.caps, false)
	h.s.Write(h.scratch)
}
