package postgres

import (
	"encoding/binary"
	"sync"

	"freshet/planner"
	pg "freshet/protocol/postgres"
)

// descriptions remembers what the server said of statements, so that a client
// that parses and describes before each run does not need the upstream for it.
// One holds while the planner's plan does: the planner drops a plan when the
// definition of a table it names changes.
type descriptions struct {
	mu   sync.RWMutex
	m    map[string]*described
	size int // of the keys and their descriptions, in bytes
}

type described struct {
	st    *planner.Statement
	plan  *planner.Plan
	bytes []byte // ParameterDescription, then RowDescription or NoData
}

// Bounds in bytes: of all descriptions of an upstream, with descriptionOverhead
// for each, and of one.
const (
	maxDescriptions     = 32 << 20
	descriptionOverhead = 200
	maxDescription      = 64 << 10
)

func (d *descriptions) get(key []byte) *described {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.m[string(key)]
}

func (d *descriptions) put(key string, v *described) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old := d.m[key]; old != nil {
		d.size -= len(key) + len(old.bytes) + descriptionOverhead
	}
	size := len(key) + len(v.bytes) + descriptionOverhead
	if d.m == nil || d.size+size > maxDescriptions {
		d.m, d.size = map[string]*described{}, 0
	}
	d.m[key] = v
	d.size += size
}

// descriptionKey says what a description depends on besides the tables.
func (h *handler) descriptionKey(text []byte, oids []uint32) []byte {
	k := binary.LittleEndian.AppendUint64(h.out[:0], h.context)
	k = binary.LittleEndian.AppendUint32(k, uint32(len(oids)))
	for _, oid := range oids {
		k = binary.LittleEndian.AppendUint32(k, oid)
	}
	h.out = append(k, text...)
	return h.out
}

// remember keeps what the server has said of a statement. s.plan was taken
// before the statement was sent: if it is still the planner's, no definition
// has changed, as far as the feed has brought it, since before the server
// looked.
func (h *handler) remember(s *statement, description []byte) {
	if s.own != 0 || !s.current() || !s.plan.Cacheable || len(description) > maxDescription {
		return
	}
	h.shared.described.put(string(h.descriptionKey(s.text, s.oids)), &described{s.st, s.plan, description})
}

// recall finds a description that still holds.
func (h *handler) recall(text []byte, oids []uint32) *described {
	if !h.cacheable() || h.s.CacheOff || !h.s.CaughtUp() {
		return nil
	}
	d := h.shared.described.get(h.descriptionKey(text, oids))
	if d == nil || d.st.Plan() != d.plan {
		return nil
	}
	return d
}

// look answers a look at a statement from memory.
func (h *handler) look(u *found) (int, verdict) {
	s := h.statements.get(u.name)
	if u.hasParse {
		if len(u.name) > 0 && (s != nil || h.native) {
			return 0, unitForward // the name is in use, or the link's
		}
		if kind := consoleKind(u.parse.Text); kind != notConsole && h.quiet() {
			return h.consoleLook(u, kind)
		}
		return h.lookAtText(u)
	}
	if s == nil || s.description == nil || !s.current() || !h.cacheable() || !h.s.CaughtUp() {
		return 0, unitForward
	}
	h.answerLook(u, s.description)
	return u.size, unitDone
}

func (h *handler) lookAtText(u *found) (int, verdict) {
	d := h.recall(u.parse.Text, u.parse.OIDs)
	if d == nil {
		return 0, unitForward
	}
	s := h.newStatement(&u.parse, d.st)
	s.plan = d.plan
	s.describe(d.bytes)
	h.statements.set(s.name, s)
	h.answerLook(u, d.bytes)
	return u.size, unitDone
}

func (h *handler) answerLook(u *found, description []byte) {
	if u.hasParse {
		h.s.Write(parsedOnly)
	}
	if u.describe {
		h.s.Write(description)
	}
	if !u.flush {
		h.s.Write(h.ready())
	}
}

// describedAs is told what the server said of a statement of the session.
func (h *handler) describedAs(s *statement) func(kind byte, body []byte) {
	return collect(func(description []byte) {
		s.describe(description)
		h.remember(s, description)
	})
}

// noRows is the description of a statement without parameters and columns.
var noRows = pg.NoData.Append((&pg.ParameterDescription{}).Append(nil))
