package postgres

import (
	"strings"

	pg "freshet/protocol/postgres"
	"freshet/proxy"
)

// A console command is one of Freshet's own, such as SHOW CACHES. Which texts
// are commands is the core's to say; here their first words are only looked at
// so that nothing else is offered to it.
type consoleWord uint8

const (
	notConsole  consoleWord = iota
	consoleRows             // answers rows
	consoleTag              // answers a command tag
)

var consoleStarts = []struct {
	words string
	kind  consoleWord
}{
	{"show caches", consoleRows},
	{"show proxied", consoleRows},
	{"show freshet", consoleRows},
	{"explain create cache", consoleRows},
	{"explain last statement", consoleRows},
	{"create cache", consoleTag},
	{"alter cache", consoleTag},
	{"drop cache", consoleTag},
	{"drop all caches", consoleTag},
	{"flush cache", consoleTag},
	{"flush all caches", consoleTag},
	{"set freshet", consoleTag},
	{"set session freshet", consoleTag},
	{"set local freshet", consoleTag},
	{"reset freshet", consoleTag},
}

// consoleKind looks at a text's first words.
func consoleKind(text []byte) consoleWord {
	var buf [64]byte
	start := buf[:0]
	words(text, func(w []byte, before byte) bool {
		if before != 0 && before != 'w' || len(start)+len(w) >= len(buf) {
			return false
		}
		if len(start) > 0 {
			start = append(start, ' ')
		}
		start = append(start, w...)
		return true
	})
	if len(start) == 0 {
		return notConsole
	}
	for _, c := range consoleStarts {
		if len(start) >= len(c.words) && string(start[:len(c.words)]) == c.words &&
			(len(start) == len(c.words) || start[len(c.words)] == ' ') {
			return c.kind
		}
	}
	return notConsole
}

// offerConsole offers a text to the core's console. done is called later, with the
// session's client held until then.
func (h *handler) offerConsole(text []byte, done func(*proxy.Result)) bool {
	h.waiting = true
	ok := h.s.Console(text, h.state.scope(h.s.User, h.database), func(r *proxy.Result) {
		h.waiting = false
		if h.tx == pg.TxIdle {
			h.s.EndTransaction() // SET LOCAL outside one changes nothing
		}
		if h.stage == stageReady {
			done(r)
		}
	})
	if !ok {
		h.waiting = false
	}
	return ok
}

// consoleQuery answers a command sent as a simple query.
func (h *handler) consoleQuery(text []byte) bool {
	return h.offerConsole(text, func(r *proxy.Result) {
		out := appendDescription(nil, r)
		h.s.Write((&pg.ReadyForQuery{Status: h.tx}).Append(appendResult(out, r)))
	})
}

// consoleRun answers a command run by the extended protocol.
func (h *handler) consoleRun(u *found, text []byte) bool {
	out := clone(boundOnly)
	if u.hasParse {
		out = clone(parsedAnd)
	}
	describe := u.describe
	var s *statement
	if u.hasParse {
		s = h.newStatement(&u.parse, nil)
	}
	return h.offerConsole(text, func(r *proxy.Result) {
		if s != nil {
			h.statements.set(s.name, s)
		}
		if describe {
			if r.Err == nil && r.Columns == nil {
				out = pg.NoData.Append(out)
			}
			out = appendDescription(out, r)
		}
		h.s.Write(append(appendResult(out, r), h.ready()...))
	})
}

// commandRun is consoleRun for a session with temporary tables, which has nothing
// else answered here.
func (h *handler) commandRun(u *found, s *statement) bool {
	text := u.parse.Text
	switch {
	case !u.hasParse && s == nil, u.hasParse && len(u.name) > 0 && s != nil:
		return false // the server's error
	case !u.hasParse:
		text = s.text
	}
	return consoleKind(text) != notConsole && h.consoleRun(u, text)
}

// consoleLook answers a Parse and Describe of a command. Its columns are only
// known by running it, which is done for those that change nothing.
func (h *handler) consoleLook(u *found, kind consoleWord) (int, verdict) {
	s := h.newStatement(&u.parse, nil)
	describe, flush := u.describe, u.flush
	tell := func(r *proxy.Result) {
		s.describe(noRows)
		if r != nil && r.Columns != nil {
			s.describe(appendDescription((&pg.ParameterDescription{}).Append(nil), r))
		}
		h.statements.set(s.name, s)
		h.answerLook(&found{hasParse: true, describe: describe, flush: flush}, s.description)
	}
	if kind != consoleRows || !u.describe {
		tell(nil)
		return u.size, unitDone
	}
	last := h.s.Last
	if !h.offerConsole(u.parse.Text, func(r *proxy.Result) {
		h.s.Last = last
		tell(r)
	}) {
		return 0, unitForward
	}
	return u.size, unitDone
}

// oidText is the type of every column: the same bytes in either format.
const oidText = 25

// appendDescription describes a result's columns; nothing if it has none.
func appendDescription(dst []byte, r *proxy.Result) []byte {
	if r.Err != nil || r.Columns == nil {
		return dst
	}
	var m pg.RowDescription
	for _, c := range r.Columns {
		f := pg.Field{Name: []byte(c.Name), Type: oidText, Size: -1, Modifier: -1}
		m.Fields = append(m.Fields, f)
	}
	return m.Append(dst)
}

// appendResult appends a result's rows and tag, or its error.
func appendResult(dst []byte, r *proxy.Result) []byte {
	if r.Err != nil {
		var extra []pg.ErrorField
		if r.Err.Position > 0 {
			extra = append(extra, pg.ErrorField{Code: pg.FieldPosition, Value: []byte(itoa(r.Err.Position))})
		}
		return pg.AppendError(dst, pg.SeverityError, consoleState(r.Err.Code), r.Err.Message, extra...)
	}
	var row pg.DataRow
	for _, cells := range r.Rows {
		row.Values = row.Values[:0]
		for _, c := range cells {
			row.Values = append(row.Values, []byte(c))
		}
		dst = row.Append(dst)
	}
	tag := r.Tag
	if tag == "" {
		tag = "SELECT " + itoa(len(r.Rows))
	}
	return (&pg.CommandComplete{Tag: []byte(strings.ToUpper(tag))}).Append(dst)
}

// consoleState is the SQLSTATE of a console error.
func consoleState(code proxy.ErrorCode) string {
	switch code {
	case proxy.ErrSyntax:
		return "42601"
	case proxy.ErrDenied:
		return "42501"
	case proxy.ErrUnknown:
		return "42704"
	case proxy.ErrExists:
		return "42710"
	case proxy.ErrUnsupported:
		return "0A000"
	}
	return "XX000"
}
