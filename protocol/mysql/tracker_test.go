package mysql

import (
	"errors"
	"testing"
)

type followed struct {
	event   Event
	payload []byte
}

// follow feeds a stream of framed packets to a tracker, showing it no more of
// each than it asks for.
func follow(t *testing.T, cmd Command, caps Capability, seq uint8, stream []byte) ([]followed, *Tracker) {
	t.Helper()
	var tr Tracker
	tr.Begin(cmd, caps, seq)
	var out []followed
	for len(stream) > 0 {
		h, err := DecodeHeader(stream)
		if err != nil {
			t.Fatal(err)
		}
		body := stream[HeaderLen : HeaderLen+h.Length]
		head := body
		if len(body) > 0 {
			head = body[:tr.Want(h, body[0])]
		}
		e, err := tr.Packet(h, head)
		if err != nil {
			t.Fatalf("packet %d (% x): %v", len(out), body[:min(20, len(body))], err)
		}
		out = append(out, followed{e, body})
		stream = stream[HeaderLen+h.Length:]
	}
	return out, &tr
}

func packets(seq uint8, payloads ...[]byte) []byte {
	var out []byte
	for _, p := range payloads {
		out, seq = AppendPacket(out, seq, p)
	}
	return out
}

func TestTracker(t *testing.T) {
	ok := func(s Status, caps Capability) []byte { o := OK{Status: s}; return o.Append(nil, caps) }
	end := func(s Status, caps Capability) []byte { return AppendResultEnd(nil, caps, s, 0) }
	eof := func(s Status) []byte { e := EOF{Status: s}; return e.Append(nil) }
	def := func() []byte { c := TextColumn("a"); return c.Append(nil, 0) }
	failure := func() []byte { e := NewError(ErrNumParse, "no"); return e.Append(nil, ClientProtocol41) }
	prepared := func(params, columns uint16) []byte {
		p := PrepareOK{StatementID: 9, Params: params, Columns: columns}
		return p.Append(nil, 0)
	}
	const dep = ClientDeprecateEOF
	row := []byte{1, 'x'}
	cases := []struct {
		name   string
		cmd    Command
		caps   Capability
		in     [][]byte
		events []Event
	}{
		{"ok", ComQuery, 0, [][]byte{ok(0, 0)}, []Event{EventOK}},
		{"error", ComQuery, 0, [][]byte{failure()}, []Event{EventError}},
		{"rows", ComQuery, 0, [][]byte{{1}, def(), eof(0), row, row, eof(0)},
			[]Event{EventColumnCount, EventColumn, EventMetadataEOF, EventRow, EventRow, EventEnd}},
		{"rows, EOF deprecated", ComQuery, dep, [][]byte{{1}, def(), row, {0xfb}, end(0, dep)},
			[]Event{EventColumnCount, EventColumn, EventRow, EventRow, EventEnd}},
		{"error between rows", ComStmtExecute, dep, [][]byte{{1}, def(), {0, 0, 1}, failure()},
			[]Event{EventColumnCount, EventColumn, EventRow, EventError}},
		{"error instead of rows", ComQuery, 0, [][]byte{{1}, def(), eof(0), failure()},
			[]Event{EventColumnCount, EventColumn, EventMetadataEOF, EventError}},
		{"error instead of a definition", ComQuery, 0, [][]byte{{2}, def(), failure()},
			[]Event{EventColumnCount, EventColumn, EventError}},
		{"many results", ComQuery, dep, [][]byte{ok(StatusMoreResults, dep), {1}, def(), end(StatusMoreResults, dep), ok(0, dep)},
			[]Event{EventOK, EventColumnCount, EventColumn, EventEnd, EventOK}},
		{"many results, the second fails", ComQuery, 0, [][]byte{{1}, def(), eof(0), eof(StatusMoreResults), failure()},
			[]Event{EventColumnCount, EventColumn, EventMetadataEOF, EventEnd, EventError}},
		{"cursor", ComStmtExecute, 0, [][]byte{{1}, def(), eof(StatusCursorExists)},
			[]Event{EventColumnCount, EventColumn, EventEnd}},
		{"cursor, EOF deprecated", ComStmtExecute, dep, [][]byte{{1}, def(), end(StatusCursorExists, dep)},
			[]Event{EventColumnCount, EventColumn, EventEnd}},
		{"OUT parameters", ComStmtExecute, 0, [][]byte{{1}, def(), eof(StatusMoreResults | StatusPSOutParams), {0, 0, 7}, eof(0), ok(0, 0)},
			[]Event{EventColumnCount, EventColumn, EventMetadataEOF, EventRow, EventEnd, EventOK}},
		{"fetch", ComStmtFetch, 0, [][]byte{{0, 0, 1}, eof(StatusLastRowSent)}, []Event{EventRow, EventEnd}},
		{"prepare nothing", ComStmtPrepare, 0, [][]byte{prepared(0, 0)}, []Event{EventPrepareOK}},
		{"prepare both", ComStmtPrepare, 0, [][]byte{prepared(2, 1), def(), def(), eof(0), def(), eof(0)},
			[]Event{EventPrepareOK, EventParam, EventParam, EventMetadataEOF, EventColumn, EventMetadataEOF}},
		{"prepare columns", ComStmtPrepare, 0, [][]byte{prepared(0, 1), def(), eof(0)}, []Event{EventPrepareOK, EventColumn, EventMetadataEOF}},
		{"prepare both, EOF deprecated", ComStmtPrepare, dep, [][]byte{prepared(1, 1), def(), def()}, []Event{EventPrepareOK, EventParam, EventColumn}},
		{"prepare params, EOF deprecated", ComStmtPrepare, dep, [][]byte{prepared(1, 0), def()}, []Event{EventPrepareOK, EventParam}},
		{"prepare fails", ComStmtPrepare, 0, [][]byte{failure()}, []Event{EventError}},
		{"field list", ComFieldList, 0, [][]byte{def(), def(), eof(0)}, []Event{EventColumn, EventColumn, EventEnd}},
		{"field list fails", ComFieldList, 0, [][]byte{failure()}, []Event{EventError}},
		{"statistics", ComStatistics, 0, [][]byte{[]byte("Uptime: 1")}, []Event{EventText}},
		{"ping", ComPing, 0, [][]byte{ok(0, 0)}, []Event{EventOK}},
		{"set option", ComSetOption, 0, [][]byte{eof(0)}, []Event{EventEnd}},
		{"set option, EOF deprecated", ComSetOption, dep, [][]byte{end(0, dep)}, []Event{EventEnd}},
		{"a status that speaks of more after ping", ComPing, 0, [][]byte{ok(StatusMoreResults, 0)}, []Event{EventOK}},
		{"local infile", ComQuery, 0, [][]byte{append([]byte{0xfb}, "f"...), ok(0, 0)}, []Event{EventLocalInfile, EventOK}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, tr := follow(t, c.cmd, c.caps, 1, packets(1, c.in...))
			for i, e := range got {
				if e.event != c.events[i] {
					t.Fatalf("packet %d: event %d, want %d", i, e.event, c.events[i])
				}
			}
			if len(got) != len(c.events) || !tr.Done() {
				t.Fatalf("%d events, done %t", len(got), tr.Done())
			}
			if _, err := tr.Packet(Header{Length: 1, Seq: uint8(len(c.in) + 1)}, []byte{0}); !errors.Is(err, ErrMalformed) {
				t.Errorf("a packet after the end: %v", err)
			}
			for n := range len(c.in) - 1 {
				if _, tr := follow(t, c.cmd, c.caps, 1, packets(1, c.in[:n+1]...)); tr.Done() {
					t.Errorf("done after %d of %d packets", n+1, len(c.in))
				}
			}
		})
	}
}

// A row of more than 16 MiB begins with 0xfe like an EOF, and goes on in
// packets that may begin with anything.
func TestTrackerHugeRow(t *testing.T) {
	for _, caps := range []Capability{0, ClientDeprecateEOF} {
		cell := make([]byte, MaxPayload+100)
		for i := range cell {
			cell[i] = headerERR
		}
		var stream []byte
		col := TextColumn("a")
		stream, seq := AppendColumns(stream, 1, caps, []Column{col}, 0)
		stream, seq = AppendPacket(stream, seq, AppendLenencString(nil, cell))
		stream, _ = AppendPacket(stream, seq, AppendResultEnd(nil, caps, 0, 0))
		got, tr := follow(t, ComQuery, caps, 1, stream)
		n := len(got)
		if !tr.Done() || tr.Rows != 1 || got[n-3].event != EventRow || got[n-2].event != EventContinued || got[n-1].event != EventEnd {
			t.Errorf("capabilities %x: %d rows, done %t", caps, tr.Rows, tr.Done())
		}
	}
}

func TestTrackerLocalInfileSequence(t *testing.T) {
	var tr Tracker
	tr.Begin(ComQuery, 0, 1)
	if e, err := tr.Packet(Header{Length: 2, Seq: 1}, []byte{0xfb, 'f'}); err != nil || e != EventLocalInfile {
		t.Fatal(e, err)
	}
	tr.FileSent(4) // 2 and 3 were data, 4 the empty packet
	o := OK{}
	p := o.Append(nil, 0)
	if e, err := tr.Packet(Header{Length: len(p), Seq: 5}, p); err != nil || e != EventOK || !tr.Done() {
		t.Fatal(e, err)
	}
	tr.Begin(ComQuery, 0, 1)
	if _, err := tr.Packet(Header{Length: len(p), Seq: 2}, p); !errors.Is(err, ErrSequence) {
		t.Fatal(err)
	}
}

// A progress report looks like an error to those who did not ask for it.
func TestTrackerProgress(t *testing.T) {
	report := []byte{0xff, 0xff, 0xff, 1, 1, 2, 0x10, 0x27, 0, 4, 'c', 'o', 'p', 'y'}
	ok := (&OK{Status: StatusAutocommit}).Append(nil, 0)
	var tr Tracker
	tr.Begin(ComQuery, ClientProtocol41|MariaDBProgress, 1)
	for i, p := range [][]byte{report, report, ok} {
		event, err := tr.Packet(Header{Length: len(p), Seq: uint8(1 + i)}, p)
		want := EventProgress
		if i == 2 {
			want = EventOK
		}
		if err != nil || event != want || tr.Done() != (i == 2) || tr.Failed {
			t.Fatalf("packet %d: event %d, %v", i, event, err)
		}
	}
	tr.Begin(ComQuery, ClientProtocol41, 1)
	if event, err := tr.Packet(Header{Length: len(report), Seq: 1}, report); err != nil || event != EventError || !tr.Done() {
		t.Fatalf("not asked for: event %d, %v", event, err)
	}
}
