package postgres

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"freshet/planner"
	pg "freshet/protocol/postgres"
)

// statement is a prepared statement as the client knows it. It lives in the
// session; on links it exists only where it was needed.
type statement struct {
	name string // the client's
	text []byte
	oids []uint32
	st   *planner.Statement // nil while nothing but hits needed it
	// plan is what was planned when the client parsed the statement. Once the
	// planner has another, the tables' definitions may have changed since, and
	// what the server would say of this statement is the server's to say.
	plan *planner.Plan
	// description is ParameterDescription and RowDescription or NoData, as the
	// server sent them when the client parsed it; nil if it was not asked.
	description []byte
	params      []uint32 // the parameters' types, from description
	// own tells it apart from another session's of the same text, when the
	// session's state could give the names in it another meaning.
	own uint64
	// context is the session's when the client parsed the statement: a server
	// reads its literals then ('02/01/2024' by DateStyle), whatever is set later.
	// 0: it has none.
	context uint64
	// outdated: under its own name on the link (native) it was parsed when its
	// columns were no more what the client's Parse found.
	outdated bool
}

// presence says how sure it is that a link has what was sent there: until the
// server has answered, only for the batch that sent it.
type presence struct {
	what  *statement
	sure  bool
	batch uint64
}

// linkStatement is a statement as one link has it.
type linkStatement struct {
	presence
	name        string
	description []byte // nil until the server has answered
	private     bool   // belongs to the session that has the link
	// plan is the planner's when it was parsed for the first of its clients: a
	// server keeps what names meant then, even when another schema has a table of
	// that name since.
	plan *planner.Plan
	used uint64
}

// maxPrepared bounds the statements kept on one link.
const maxPrepared = 512

// linkKey is what a statement must have in common with one that a link has.
func (h *handler) linkKey(s *statement) string {
	k := binary.LittleEndian.AppendUint32(nil, uint32(h.scope))
	k = binary.LittleEndian.AppendUint64(k, s.own)
	k = binary.LittleEndian.AppendUint64(k, s.context)
	k = binary.LittleEndian.AppendUint32(k, uint32(len(s.oids)))
	for _, oid := range s.oids {
		k = binary.LittleEndian.AppendUint32(k, oid)
	}
	return string(append(k, s.text...))
}

// newStatement makes what a Parse asks for.
func (h *handler) newStatement(m *pg.Parse, st *planner.Statement) *statement {
	s := &statement{name: string(m.Name), text: clone(m.Text), oids: append([]uint32(nil), m.OIDs...), st: st}
	if hasLiteral(m.Text) {
		s.context = h.context
	}
	if st != nil {
		s.plan = st.Plan()
	}
	if h.dirty || h.state.pinnedBy() != "" {
		s.own = h.s.ID
	}
	return s
}

// planNow is the planner's present plan, nil if it has none.
func (s *statement) planNow() *planner.Plan {
	if s.st == nil {
		return nil
	}
	return s.st.Plan()
}

// otherSettings tells whether a statement with a literal was parsed under other
// settings than now.
func (h *handler) otherSettings(s *statement) bool { return s.context != 0 && s.context != h.context }

// mixesSettings tells whether there is such a statement. The link on which it
// was parsed is then kept.
func (h *handler) mixesSettings() (mixed bool) {
	h.statements.all(func(s *statement) { mixed = mixed || h.otherSettings(s) })
	return mixed
}

// hasLiteral tells whether a text may hold a string: a quote, or a dollar that
// begins no parameter.
func hasLiteral(text []byte) bool {
	for i, c := range text {
		if c == '\'' || c == '$' && (i+1 == len(text) || text[i+1] < '0' || text[i+1] > '9') {
			return true
		}
	}
	return false
}

func (s *statement) same(text []byte, oids []uint32) bool {
	if len(oids) != len(s.oids) || !bytes.Equal(text, s.text) {
		return false
	}
	for i := range oids {
		if oids[i] != s.oids[i] {
			return false
		}
	}
	return true
}

// describe keeps what the server says of the statement.
func (s *statement) describe(description []byte) {
	s.description = description
	var m pg.ParameterDescription
	if kind, body, size, err := pg.Next(description, pg.MaxMessageLen); err == nil && size > 0 && kind == pg.TypeParameterDescription && m.Decode(body) == nil {
		s.params = m.OIDs
	}
}

// sameParameters compares the types of two descriptions.
func sameParameters(a, b []byte) bool {
	_, _, n, err := pg.Next(a, pg.MaxMessageLen)
	return err == nil && n > 0 && n <= len(b) && bytes.Equal(a[:n], b[:n])
}

// sameColumns compares two descriptions' columns as the server does when it
// revalidates a statement: names and types, but not which table they are from.
func sameColumns(a, b []byte) bool {
	columns := func(d []byte) (m pg.RowDescription, rows, ok bool) {
		_, _, n, err := pg.Next(d, pg.MaxMessageLen)
		if err != nil || n == 0 {
			return m, false, false
		}
		kind, body, _, err := pg.Next(d[n:], pg.MaxMessageLen)
		if err != nil || kind == pg.TypeNoData {
			return m, false, err == nil
		}
		return m, true, m.Decode(body) == nil
	}
	x, xRows, xOK := columns(a)
	y, yRows, yOK := columns(b)
	if !xOK || !yOK || xRows != yRows || len(x.Fields) != len(y.Fields) {
		return false
	}
	for i := range x.Fields {
		f, g := &x.Fields[i], &y.Fields[i]
		if !bytes.Equal(f.Name, g.Name) || f.Type != g.Type || f.Size != g.Size || f.Modifier != g.Modifier {
			return false
		}
	}
	return true
}

// place says where the link has a statement.
type place uint8

const (
	placeHere    place = iota
	placeWaiting       // it was sent; the session is held until the server has answered
	placeChanged       // the server would refuse it: its columns are others now
)

// onLink makes sure that the attached link has a statement and gives its name
// there. A statement whose description the client may rely on is only used
// once the link has described it alike: a server fails a statement whose
// columns have changed since it was parsed, and so must we, though the link
// parsed it later.
func (h *handler) onLink(s *statement) (name string, at place) {
	ls := h.link()
	switch {
	case s.name == "":
		return "", h.unnamedOnLink(ls, s)
	case h.native && s.outdated:
		return s.name, placeChanged
	case h.native:
		return s.name, placeHere
	}
	key := h.linkKey(s)
	found := ls.prepared[key]
	if found == nil && h.otherSettings(s) {
		// It can only be parsed under what is set now: for nobody else.
		key += string(binary.LittleEndian.AppendUint64([]byte{0}, h.context))
		found = ls.prepared[key]
	}
	if found != nil && found.plan != s.plan && s.current() && found.sure {
		h.sendClose(ls, key) // the client parsed it when its names meant what they mean now
		found = nil
	}
	if found != nil && !h.present(&found.presence) {
		return found.name, placeWaiting
	}
	if found == nil {
		found = h.prepare(ls, key, s)
		if s.description != nil {
			h.awaitAnswers()
			return found.name, placeWaiting
		}
	}
	ls.useCounter++
	found.used = ls.useCounter
	if s.description == nil || found.description == nil {
		return found.name, placeHere
	}
	if !sameParameters(s.description, found.description) {
		// Inferred otherwise now; a server keeps the types it inferred first.
		h.sendClose(ls, key)
		return h.onLink(s)
	}
	if !sameColumns(s.description, found.description) {
		if now := s.planNow(); found.plan != now {
			// Parsed here while the columns were others; they may be back.
			h.sendClose(ls, key)
			found = h.prepare(ls, key, s)
			found.plan = now
			h.awaitAnswers()
			return found.name, placeWaiting
		}
		return found.name, placeChanged
	}
	return found.name, placeHere
}

// unnamedOnLink does the same for the unnamed statement.
func (h *handler) unnamedOnLink(ls *linkState, s *statement) place {
	if ls.unnamed.what == s {
		if !h.present(&ls.unnamed) {
			return placeWaiting
		}
		return placeHere
	}
	if h.changed == s {
		h.changed = nil
		return placeChanged
	}
	h.unnamedSent(ls, s)
	h.sendOwnParse("", s, pg.ActionSwallow, &op{undo: ls.loseUnnamed, done: func() { ls.haveUnnamed(s) }})
	if s.description == nil {
		return placeHere
	}
	h.sendDescribe("", func(description []byte) {
		if !sameColumns(description, s.description) {
			ls.loseUnnamed()
			h.changed = s
		}
	})
	h.awaitAnswers()
	return placeWaiting
}

// present tells whether what was sent to the link is there for a message sent
// now; if that hangs on answers still to come, the client is held.
func (h *handler) present(p *presence) bool {
	if p.sure || p.batch == h.statements.batch {
		return true
	}
	h.awaitAnswers()
	return false
}

func (p *presence) arrived() { p.sure = true }

func (h *handler) unnamedSent(ls *linkState, s *statement) {
	ls.unnamed = presence{what: s, batch: h.statements.batch}
}

func (ls *linkState) haveUnnamed(s *statement) {
	if ls.unnamed.what == s {
		ls.unnamed.sure = true
	}
}

func (ls *linkState) loseUnnamed() { ls.unnamed = presence{} }

// prepare sends a statement that the link does not have, and asks for its
// description. Errors are the client's to see: its own message rests on it.
func (h *handler) prepare(ls *linkState, key string, s *statement) *linkStatement {
	h.evict(ls)
	p := h.addPrepared(ls, key, s)
	h.sendOwnParse(p.name, s, pg.ActionSwallow, &op{undo: func() { forgetPrepared(ls, key, p) }, done: p.arrived})
	h.sendDescribe(p.name, func(description []byte) {
		p.description = description
		if s.description == nil {
			s.describe(description)
		}
	})
	return p
}

func (h *handler) addPrepared(ls *linkState, key string, s *statement) *linkStatement {
	ls.nextName++
	p := &linkStatement{name: h.shared.prefix + strconv.FormatUint(ls.nextName, 36), private: s.own != 0, plan: s.plan,
		presence: presence{what: s, batch: h.statements.batch}}
	ls.useCounter++
	p.used = ls.useCounter
	ls.prepared[key] = p
	return p
}

func forgetPrepared(ls *linkState, key string, p *linkStatement) {
	if ls.prepared[key] == p {
		delete(ls.prepared, key)
	}
}

// evict closes the statement that was not used for longest when there are too
// many.
func (h *handler) evict(ls *linkState) {
	if len(ls.prepared) < maxPrepared {
		return
	}
	var oldest string
	for key, p := range ls.prepared {
		if oldest == "" || p.used < ls.prepared[oldest].used {
			oldest = key
		}
	}
	h.sendClose(ls, oldest)
}

// sendClose closes one of ours on the link.
func (h *handler) sendClose(ls *linkState, key string) {
	p := ls.prepared[key]
	delete(ls.prepared, key)
	h.push(pg.ReplyClose, pg.ActionSwallow, &op{undo: func() {
		if ls.prepared[key] == nil {
			ls.prepared[key] = p
		}
	}})
	h.s.Link.Write((&pg.Close{Target: pg.TargetStatement, Name: []byte(p.name)}).Append(nil))
}

// sendParse sends the client's Parse under another name.
func (h *handler) sendParse(name string, s *statement, o *op) {
	o.alias, o.name, o.st = name, s.name, s.st
	h.writeParse(name, s, pg.ActionForward, o)
}

// sendOwnParse sends a Parse for the proxy itself.
func (h *handler) sendOwnParse(name string, s *statement, action pg.Action, o *op) {
	o.alias, o.name = name, s.name
	h.writeParse(name, s, action, o)
}

func (h *handler) writeParse(name string, s *statement, action pg.Action, o *op) {
	oids := s.oids
	if s.params != nil {
		oids = s.params
	}
	h.push(pg.ReplyParse, action, o)
	h.out = (&pg.Parse{Name: []byte(name), Text: s.text, OIDs: oids}).Append(h.out[:0])
	h.s.Link.Write(h.out)
}

// sendDescribe asks for a statement's description, for the proxy itself.
func (h *handler) sendDescribe(name string, done func(description []byte)) {
	h.push(pg.ReplyDescribe, pg.ActionSwallow, &op{seen: collect(done)})
	h.s.Link.Write((&pg.Describe{Target: pg.TargetStatement, Name: []byte(name)}).Append(nil))
}

// collect gathers the two messages of a statement's description.
func collect(done func(description []byte)) func(kind byte, body []byte) {
	var d []byte
	return func(kind byte, body []byte) {
		switch kind {
		case pg.TypeParameterDescription, pg.TypeRowDescription, pg.TypeNoData:
			d = appendFrame(d, kind, body)
		}
		if kind == pg.TypeRowDescription || kind == pg.TypeNoData {
			done(d)
		}
	}
}

func appendFrame(dst []byte, kind byte, body []byte) []byte {
	dst = append(dst, kind)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(body)+4))
	return append(dst, body...)
}

// awaitAnswers holds the client back until what was just sent is answered.
func (h *handler) awaitAnswers() {
	h.s.Link.Write(pg.Flush.Append(nil))
	h.awaiting = true
	h.hold()
}

// closePrivate closes what the link must not keep and tells whether there was
// anything.
func (h *handler) closePrivate(ls *linkState) bool {
	var keys []string
	for key, p := range ls.prepared {
		if p.private {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return false
	}
	for _, key := range keys {
		h.sendClose(ls, key)
	}
	h.pushSync(pg.ActionHide, &op{})
	h.s.Link.Write(pg.Sync.Append(nil))
	return true
}

// fail sends a message upstream that cannot but fail, so that the server is
// where the client believes it to be, and tells the client the given error.
func (h *handler) failUpstream(message []byte) {
	h.push(pg.ReplyBind, pg.ActionReplace, &op{made: message})
	h.s.Link.Write((&pg.Bind{Statement: []byte(h.shared.prefix + "none")}).Append(nil))
}

// changedColumns is the server's error for a statement whose columns are not
// what they were when it was parsed.
func changedColumns() []byte {
	return pg.AppendError(nil, pg.SeverityError, "0A000", "cached plan must not change result type",
		pg.ErrorField{Code: pg.FieldRoutine, Value: []byte("RevalidateCachedQuery")})
}
