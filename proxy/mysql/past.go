package mysql

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"

	wire "freshet/protocol/mysql"
)

// past is what later statements may ask of earlier ones (FOUND_ROWS(),
// ROW_COUNT(), SHOW WARNINGS), which on one connection the server keeps. Here
// the last statement may have been a hit, or have run on a link that was given
// back; another link is then brought into the same state by a read of as many
// rows, whose reply is thrown away.
type past struct {
	// elsewhere: the last statement did not run on the attached link;
	// foundElsewhere: the last one that counts for FOUND_ROWS() did not.
	elsewhere, foundElsewhere bool
	// found is FOUND_ROWS().
	found uint64
	// affected is ROW_COUNT() after the last statement if that was no read.
	wrote    bool
	affected uint64
	// yielded: the last statement's warnings went with its link.
	yielded bool
	// calculated: found is only the number of rows, but SQL_CALC_FOUND_ROWS was
	// asked for.
	calculated bool
	// lostFound: FOUND_ROWS() went with a link that was lost.
	lostFound bool
}

// away notes that the link, if any, is not the one of before.
func (p *past) away() { p.elsewhere, p.foundElsewhere = true, true }

// sent notes that the attached link has the diagnostics of the last statement.
func (p *past) sent() { p.elsewhere, p.yielded = false, false }

// read notes a read of n rows that was not answered by the link.
func (p *past) read(n uint64) {
	p.away()
	p.found, p.wrote, p.yielded, p.calculated, p.lostFound = n, false, false, false, false
}

// none notes a command that leaves ROW_COUNT() at 0 and was not sent.
func (p *past) none() {
	p.elsewhere, p.wrote, p.affected = true, true, 0
}

// counted notes FOUND_ROWS() on the attached link.
func (p *past) counted(n uint64) {
	p.foundElsewhere, p.found, p.calculated, p.lostFound = false, n, false, false
}

// Answers are kept with the status flags after them and the number of their rows
// behind.
const trailer = 2 + 8

// answerKept writes a kept answer to the client.
func (h *handler) answerKept(v []byte) {
	packets, status := v[:len(v)-trailer], v[len(v)-trailer:]
	h.s.Write(packets)
	h.past.read(binary.LittleEndian.Uint64(status[2:]))
	if h.inTransaction() {
		h.status, h.calm = wire.Status(binary.LittleEndian.Uint16(status)), true
		if h.held == nil && h.between && h.status.Has(wire.StatusInTrans) {
			h.held = implicitBegin
		}
	}
}

// settlePast notes what a forwarded statement left to be asked for.
func (h *handler) settlePast(e *expect, r *reply) {
	t, p := &r.tracker, &h.past
	if t.Failed || t.Warned {
		p.sent() // of a command that else leaves what was there before
	}
	switch e.cmd {
	case wire.ComQuery, wire.ComStmtExecute:
	case wire.ComStatistics:
		return
	case wire.ComStmtPrepare:
		p.wrote = p.wrote && !t.Failed
		p.yielded = p.yielded && h.mariadb() // MySQL forgets the warnings of before
		return
	default:
		p.wrote, p.affected = !t.Failed && !t.Last.EOF, 0
		return
	}
	p.wrote, p.affected = t.Columns == 0 && !t.Failed, r.affected
	if p.wrote && e.effects&effQuiet == 0 && !e.effects.justEnds() && !h.up.crowded(h.s.Loop) {
		h.hold |= holdCount
	}
	switch {
	case t.Failed || e.effects&(effRead|effWarnings) == effWarnings: // SHOW WARNINGS counts nothing
	case t.Columns > 0:
		p.counted(t.Rows)
		p.calculated = e.effects&effCalcFound != 0
		h.owed.found = e.effects&effOffset != 0
	case !h.mariadb() && bytes.HasPrefix(r.info, []byte("Rows matched: ")):
		// An UPDATE counts too, on MySQL.
		digits, _, _ := bytes.Cut(r.info[len("Rows matched: "):], []byte(" "))
		if n, err := strconv.ParseUint(string(digits), 10, 64); err == nil {
			p.counted(n)
		}
	}
}

// lost says whether ROW_COUNT() is that of a write on a link long given back,
// which nothing can bring back: a read brings back -1, a ping 0.
func (p *past) lost() bool { return p.elsewhere && p.wrote && p.affected != 0 }

// maxCounted bounds the FOUND_ROWS() that is brought back by a read of as many
// rows; above it the count is that of the bound.
const maxCounted = 1000

// ofRows is a text whose result has n rows. On MariaDB it names a table, because
// the warnings of before outlive a statement that uses none; on MySQL it does
// not, because without autocommit that would begin a transaction.
func (h *handler) ofRows(n uint64) string {
	from := "DUAL"
	if h.mariadb() {
		from = "information_schema.CHARACTER_SETS"
	}
	return "SELECT 1 FROM " + from + " WHERE 1 = 0" + strings.Repeat(" UNION ALL SELECT 1", int(n))
}

// asks says whether a statement asks for what the attached link does not know.
func (p *past) asks(eff effects) bool {
	return eff&(effWarnings|effRowCount) != 0 && p.elsewhere || eff&effFound != 0 && p.foundElsewhere
}

// prime brings the link's diagnostics to the session's past before a statement
// that asks for them; false means that the command waits, or was answered.
func (h *handler) prime(eff effects) bool {
	if eff&changesLastID != 0 && !h.owed.lastID {
		// Also before an INSERT: one with a value for the column leaves
		// LAST_INSERT_ID() as it was.
		h.bringLastID()
	}
	p := &h.past
	if p.lostFound && eff&effFound != 0 && p.foundElsewhere {
		h.forgotten()
		return false
	}
	if h.stage.primed || !p.asks(eff) {
		return true
	}
	// ROW_COUNT() is the link's as long as nothing else runs there, which
	// FOUND_ROWS() of a read that ran elsewhere would need.
	both := eff&effRowCount != 0 && p.wrote && p.affected != 0
	rows := p.found
	if rows > maxCounted && eff&effFound == 0 {
		rows, p.foundElsewhere = 0, true
	}
	if both || rows > maxCounted || p.yielded && eff&effWarnings != 0 {
		h.forgotten()
		return false
	}
	h.stage.primed = true
	h.internal(h.ofRows(rows), nil)
	if p.wrote {
		h.ask1([]byte{byte(wire.ComPing)}, expect{}) // it leaves FOUND_ROWS() as it is
	}
	return true
}

// forgotten answers a statement that asks for what is no longer known.
func (h *handler) forgotten() {
	h.fail(wire.NewError(wire.ErrNumUnknown, "freshet: the diagnostics of the statement before are no longer known; run both in one transaction"))
	h.stage.answered, h.concluding = true, true
	h.conclude()
}

// changesLastID are the effects that may make LAST_INSERT_ID() another.
const changesLastID = effLastID | effInsert | effUnproven

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
func (h *handler) rowCount(text []byte, binary bool) bool {
	h.stage.answered = true
	fields := strings.Fields(strings.TrimRight(string(text), "; \t\r\n"))
	if len(fields) != 2 && len(fields) != 4 || !strings.EqualFold(fields[0], "SELECT") || !strings.EqualFold(fields[1], "ROW_COUNT()") ||
		len(fields) == 4 && !strings.EqualFold(fields[2], "AS") {
		h.fail(wire.NewError(wire.ErrNumUnknown, "freshet: ROW_COUNT() of the statement before is only known to a bare SELECT ROW_COUNT(); run both in one transaction"))
		return false
	}
	name, value := fields[len(fields)-1], strconv.FormatUint(h.past.affected, 10)
	h.past.read(1)
	column := wire.Column{Name: strings.Trim(name, "`"), Collation: wire.CollationBinary, Length: 21, Type: wire.TypeLongLong, Flags: wire.FlagNotNull | wire.FlagBinary}
	res := wire.Result{Columns: []wire.Column{column}, Rows: [][]*string{{&value}}, Status: h.status}
	h.scratch, _ = res.Append(h.scratch[:0], h.commandSeq()+1, h.caps, binary)
	h.s.Write(h.scratch)
	return false
}
