package postgres

import (
	"bytes"

	pg "freshet/protocol/postgres"
)

const (
	// streamAbove is the size from which a row is passed on while it comes in.
	streamAbove = 64 << 10
	// maxReply bounds the messages that are looked at as a whole.
	maxReply = 64 << 20
)

// LinkData takes the server's messages. Those for the client are forwarded in
// runs as long as possible.
func (h *handler) LinkData(in []byte) int {
	n, run := 0, 0 // in[run:n] is to be forwarded
	for n < len(in) && h.stage != stageClosed {
		if h.streaming > 0 {
			k := min(h.streaming, len(in)-n)
			h.streaming -= k
			n += k
			continue
		}
		kind, body, size, err := pg.Next(in[n:], pg.MaxMessageLen)
		if err != nil {
			h.forward(in[run:n])
			h.brokenLink(err)
			return len(in)
		}
		if size == 0 {
			if !h.startStream(kind, in[n:]) {
				break
			}
			continue
		}
		r, err := h.replies.Step(kind)
		if err != nil {
			h.forward(in[run:n])
			h.brokenLink(err)
			return len(in)
		}
		frame := in[n : n+size]
		if !h.reply(r, kind, body, frame) {
			h.forward(in[run:n])
			run = n + size
			h.insteadOf(r, kind, frame)
		}
		n += size
	}
	h.forward(in[run:n])
	if n == len(in) {
		h.answered()
	}
	return n
}

func (h *handler) forward(b []byte) {
	if len(b) > 0 {
		h.s.Write(b)
	}
}

// startStream lets a large row or piece of COPY pass before it is all there.
// It tells false if the rest has to be waited for.
func (h *handler) startStream(kind byte, in []byte) bool {
	_, n, ok, err := pg.Header(in, pg.MaxMessageLen)
	if err != nil || !ok || n < streamAbove {
		return false
	}
	head, some := h.replies.Head()
	if (kind != pg.TypeDataRow && kind != pg.TypeCopyData) || !some || head.Action != pg.ActionForward {
		if n > maxReply {
			h.brokenLink(&pg.MalformedError{Type: kind, Reason: "message too large"})
		}
		return false
	}
	if _, err := h.replies.Step(kind); err != nil {
		h.brokenLink(err)
		return false
	}
	if head.Ref.capture != nil {
		head.Ref.capture.spoil()
	}
	h.streaming = pg.HeaderLen + n
	return true
}

// reply looks at one message from the server and tells whether it goes to the
// client as it is.
func (h *handler) reply(r pg.Reply[*op], kind byte, body, frame []byte) bool {
	if kind == pg.TypeNotificationResponse {
		// It tells of a commit, which the feed may not have brought yet: what the
		// client reads upon it is not to be older.
		h.s.Wrote()
	}
	if !r.Owned {
		h.settingChanged(kind)
		if kind == pg.TypeErrorResponse {
			h.farewell = true
		}
		return true
	}
	o := r.Ref
	if r.Async {
		return h.async(r, kind)
	}
	if o.seen != nil {
		o.seen(kind, body)
	}
	switch kind {
	case pg.TypeErrorResponse:
		h.failed(o)
		if h.fatalError(body) {
			h.farewell = true
			return true
		}
		return (r.Action == pg.ActionForward || r.Action == pg.ActionSwallow) && o.alias == o.name
	case pg.TypeReadyForQuery:
		h.readyAgain(r, body)
	default:
		if o.capture != nil {
			o.capture.message(kind, frame)
		}
	}
	if r.Last {
		o.finish()
	}
	return r.Action == pg.ActionForward
}

// insteadOf tells the client something else than what came.
func (h *handler) insteadOf(r pg.Reply[*op], kind byte, frame []byte) {
	if kind != pg.TypeErrorResponse || r.Async || r.Ref == nil {
		return
	}
	switch r.Action {
	case pg.ActionReplace:
		h.s.Write(r.Ref.made)
	case pg.ActionForward, pg.ActionSwallow:
		h.s.Write(renamed(frame, r.Ref.alias, r.Ref.name))
	}
}

// async: a notice, a setting or a notification in the middle of an answer.
func (h *handler) async(r pg.Reply[*op], kind byte) bool {
	if kind == pg.TypeNotificationResponse {
		return true
	}
	if r.Ref.capture != nil {
		r.Ref.capture.spoil()
	}
	if r.Action == pg.ActionForward {
		h.settingChanged(kind)
	}
	return r.Action == pg.ActionForward
}

// settingChanged: whatever the statement's class, a setting that the server
// says has changed has.
func (h *handler) settingChanged(kind byte) {
	if kind == pg.TypeParameterStatus && h.s.Link != nil && h.stage == stageReady {
		h.dirty, h.link().hidden = true, true
	}
}

// failed takes back what was assumed of a message that was answered by an
// error.
func (h *handler) failed(o *op) {
	if o.undo != nil {
		o.undo()
		o.undo = nil
	}
	if o.capture != nil {
		o.capture.end(false)
	}
}

// readyAgain: the server has said in what transaction state it is.
func (h *handler) readyAgain(r pg.Reply[*op], body []byte) {
	var m pg.ReadyForQuery
	if m.Decode(body) != nil {
		return
	}
	if h.held != nil {
		return // of our own: the link knows nothing of the client's transaction yet
	}
	h.tx = m.Status
	h.calm = h.calm && m.Status == pg.TxOpen
	if m.Status == pg.TxIdle {
		h.ghost = nil
		h.s.EndTransaction()
	}
	if h.recodes && m.Status == pg.TxIdle {
		h.recodes = false
		h.s.Upstream.Planner.HiddenChanged()
	}
	if m.Status == pg.TxIdle && !h.batch {
		clear(h.portals)
	}
	if r.Ref.capture != nil {
		r.Ref.capture.end(m.Status == pg.TxIdle || h.calm)
	}
	if r.Action == pg.ActionForward {
		h.s.Completed()
	}
}

// fatalError tells whether the server ends the connection with this error.
func (h *handler) fatalError(body []byte) bool {
	var m pg.ErrorResponse
	if m.Decode(body) != nil {
		return false
	}
	switch string(m.Get(pg.FieldSeverityRaw)) {
	case "FATAL", "PANIC":
		return true
	}
	return false
}

// renamed gives an error that quotes a statement's name on the link the
// client's name instead.
func renamed(frame []byte, alias, name string) []byte {
	var m pg.ErrorResponse
	if m.Decode(frame[pg.HeaderLen:]) != nil {
		return frame
	}
	for i := range m.Fields {
		if f := &m.Fields[i]; f.Code == pg.FieldMessage {
			f.Value = bytes.ReplaceAll(f.Value, []byte(`"`+alias+`"`), []byte(`"`+name+`"`))
		}
	}
	return m.Append(nil)
}

// answered is called when all that came was dealt with.
func (h *handler) answered() {
	if h.stage != stageReady {
		return
	}
	if h.awaiting && (h.replies.Len() == 0 || h.replies.Skipping() || h.replies.Copying()) {
		h.awaiting, h.resume = false, true
	}
	if h.closing && h.replies.Idle() {
		h.closing, h.resume = false, true
	}
	h.settle()
	if h.resume && !h.asking {
		h.resume = false
		h.unhold()
		h.tidy()
	}
}
