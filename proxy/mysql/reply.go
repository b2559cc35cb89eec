package mysql

import (
	"bytes"
	"errors"

	wire "freshet/protocol/mysql"
)

// reply follows the packets of the reply that comes first in the queue.
type reply struct {
	tracker wire.Tracker
	active  bool
	// rest is how much of the packet judged last is still to come; mute, that
	// the client is not to see it.
	rest int
	mute bool
	// started: the client has seen a part of it.
	started bool
	// dirty: it told of changed state, so it is not to be kept.
	dirty     bool
	affected  uint64
	insertID  uint64 // not 0 when some OK had one
	info      []byte // of the last OK
	cell      string
	collation uint16
	packet    []byte
}

// action is what becomes of one packet.
type action uint8

const (
	actPass action = iota
	actDrop
	actReplace // by reply.packet
)

// LinkData implements proxy.Handler.
func (h *handler) LinkData(in []byte) int {
	used := h.follow(in)
	if h.s.Link != nil && len(h.queue) == 0 && used < len(in) {
		// Nobody asked for this: a farewell before the server closes.
		h.s.DropLink()
		h.LinkLost(errors.New("the upstream ended the connection"))
		return len(in)
	}
	h.proceed()
	return used
}

// proceed goes on with the session when all that was awaited has come.
func (h *handler) proceed() {
	if h.phase == phaseFile && h.s.Blocked {
		h.s.Unblock() // the client's turn, in the middle of a reply
		return
	}
	if len(h.queue) > 0 {
		return
	}
	if h.concluding && !h.conclude() {
		return // something more is asked on the link first
	}
	h.concluding = false
	if h.s.Blocked && h.phase == phaseCommand {
		h.s.Unblock()
	}
}

// follow passes packets on. Runs of packets that go unchanged are written in
// one piece; a large packet passes as it comes.
func (h *handler) follow(in []byte) int {
	used, run := 0, 0
	r := &h.reply
	for {
		if r.rest > 0 {
			n := min(r.rest, len(in)-used)
			used, r.rest = used+n, r.rest-n
			if r.mute {
				run = used
			}
			if r.rest > 0 {
				break
			}
		}
		if r.active && r.tracker.Done() {
			h.pass(in[run:used])
			run = used
			h.over()
			continue
		}
		act, length, ok := h.next(in[used:])
		if !ok {
			break
		}
		if act == actPass {
			used, r.rest, r.mute = used+wire.HeaderLen, length, false
			continue
		}
		h.pass(in[run:used])
		used, r.rest, r.mute = used+wire.HeaderLen, length, true
		if act == actReplace {
			h.pass(r.packet)
		}
		run = used
	}
	h.pass(in[run:used])
	return used
}

// next judges the packet at the start of in; not ok when too little of it is
// there, or when the link was dropped for what it sent.
func (h *handler) next(in []byte) (act action, length int, ok bool) {
	r := &h.reply
	if len(h.queue) == 0 {
		return 0, 0, false
	}
	e := &h.queue[0]
	hd, err := wire.DecodeHeader(in)
	if err != nil {
		return 0, 0, false
	}
	if !r.active {
		r.active = true
		r.tracker.Begin(e.cmd, h.link().caps, e.first)
	}
	body := in[wire.HeaderLen:]
	if hd.Length > 0 {
		if len(body) == 0 {
			return 0, 0, false
		}
		want := r.tracker.Want(hd, body[0])
		if e.rows && want > 0 {
			want = hd.Length
		}
		if len(body) < want {
			return 0, 0, false
		}
		body = body[:want]
	}
	event, err := r.tracker.Packet(hd, body)
	if err != nil {
		h.s.Log().Warn("the upstream broke the protocol", "cause", err)
		h.s.DropLink()
		h.LinkLost(err)
		return 0, 0, false
	}
	return h.event(event, hd, body), hd.Length, true
}

// pass gives bytes of the first reply to the client and to its fill.
func (h *handler) pass(b []byte) {
	if len(b) == 0 || len(h.queue) == 0 {
		return
	}
	e := &h.queue[0]
	if e.swallow {
		return
	}
	h.reply.started = true
	h.s.Write(b)
	if e.fill != nil && !e.fill.Append(b) {
		e.fill = nil
	}
}

// event looks at one packet of the first reply.
func (h *handler) event(event wire.Event, hd wire.Header, body []byte) action {
	e := &h.queue[0]
	switch event {
	case wire.EventOK, wire.EventEnd:
		return h.resultOver(e, event, hd)
	case wire.EventMetadataEOF:
		if eof, err := wire.DecodeEOF(body); err == nil && eof.Status.Has(wire.StatusStateChanged) {
			return h.unmark(e, eof, hd)
		}
	case wire.EventProgress:
		h.reply.dirty = true // speaks of this one run
	case wire.EventPrepareOK:
		return h.prepared(e, hd)
	case wire.EventLocalInfile:
		if e.swallow {
			return actDrop
		}
		h.phase = phaseFile
	case wire.EventColumn:
		if e.rows {
			if c, err := wire.DecodeColumn(body, h.link().caps); err == nil {
				h.reply.collation = c.Collation
			}
		}
	case wire.EventRow:
		if e.rows {
			cells, err := wire.DecodeTextRow(nil, body, int(h.reply.tracker.Columns))
			if err == nil && len(cells) > 0 {
				// Names and numbers, whatever character_set_results makes of them.
				h.reply.cell = string(bytes.ReplaceAll(cells[0], []byte{0}, nil))
			}
		}
	}
	if e.swallow {
		return actDrop
	}
	return actPass
}

// resultOver takes in the packet that ends one result, and rewrites it where
// the client must not see what only our tracking made the server tell.
func (h *handler) resultOver(e *expect, event wire.Event, hd wire.Header) action {
	ok := h.reply.tracker.Last
	h.serverStatus(ok.Status)
	h.reply.affected = ok.AffectedRows
	h.reply.info = append(h.reply.info[:0], ok.Info...)
	h.reply.insertID |= ok.LastInsertID
	if ok.Status.Has(wire.StatusMetadataChanged) {
		h.reply.dirty = true // speaks of this one statement's prepare
	}
	marked := ok.Status.Has(wire.StatusStateChanged)
	legacyEOF := event == wire.EventEnd && !h.link().caps.Has(wire.ClientDeprecateEOF)
	if !marked && len(ok.State) == 0 && (len(h.withheld) == 0 || legacyEOF || e.swallow) {
		if e.swallow {
			return actDrop
		}
		return actPass
	}
	if legacyEOF {
		h.reply.dirty = true
		return h.markedEnd(e, ok, hd)
	}
	seen := ok
	seen.State = h.takeChanges(ok.State, e)
	if e.swallow {
		h.withheld = append(h.withheld, seen.State...)
		return actDrop
	}
	if len(h.withheld) > 0 {
		seen.State = append(h.withheld, seen.State...)
		h.withheld = nil
	}
	packet, mark := wire.BeginPacket(h.reply.packet[:0])
	h.reply.packet, _ = wire.EndPacket(seen.Append(packet, h.caps), mark, hd.Seq)
	return actReplace
}

// markedEnd takes an EOF that says that state changed and cannot say which; only
// MariaDB sends it. A proven read gets it when its statement is prepared again,
// which says nothing. A text gets it, as a rule, for what only our tracking
// looks at: the client is not shown it.
func (h *handler) markedEnd(e *expect, ok wire.OK, hd wire.Header) action {
	h.owed.changes = h.owed.changes || !e.safe() && e.effects&effStatement == 0
	h.owed.unknown = h.owed.unknown || e.effects&(effRead|effUnproven) != 0
	return h.unmark(e, wire.EOF{Warnings: ok.Warnings, Status: ok.Status}, hd)
}

// unmark takes the mark off an EOF of a text.
func (h *handler) unmark(e *expect, eof wire.EOF, hd wire.Header) action {
	switch {
	case e.swallow:
		return actDrop
	case e.cmd != wire.ComQuery:
		return actPass
	}
	eof.Status &^= wire.StatusStateChanged
	packet, mark := wire.BeginPacket(h.reply.packet[:0])
	h.reply.packet, _ = wire.EndPacket(eof.Append(packet), mark, hd.Seq)
	return actReplace
}

// over ends the first reply of the queue.
func (h *handler) over() {
	e := h.queue[0]
	copy(h.queue, h.queue[1:])
	h.queue[len(h.queue)-1] = expect{}
	h.queue = h.queue[:len(h.queue)-1]
	r := h.reply
	h.reply = reply{packet: r.packet[:0], info: r.info[:0]}
	if !e.swallow {
		h.settle(&e, &r)
		h.concluding = true
		return
	}
	if e.then != nil {
		e.then(&answer{failed: r.tracker.Failed, err: r.tracker.Error, prepared: r.tracker.Prepared, cell: r.cell, collation: r.collation})
	}
}

// abandonReplies forgets what was awaited.
func (h *handler) abandonReplies() {
	for i := range h.queue {
		if f := h.queue[i].fill; f != nil {
			f.Abandon()
		}
		h.queue[i] = expect{}
	}
	h.queue = h.queue[:0]
	if h.uncounted != nil {
		h.uncounted.Abandon()
		h.uncounted = nil
	}
	h.reply = reply{packet: h.reply.packet[:0]}
	h.concluding = false
}
