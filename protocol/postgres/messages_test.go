package postgres

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/jackc/pgproto3/v2"
)

type message interface {
	Decode([]byte) error
	Append([]byte) []byte
}

// cases are one of each message with something in every field, a fresh value
// to decode into, and what pgproto3 decodes it as (nil: it has no such message
// or the direction is told by the context).
var cases = []struct {
	full, blank message
	oracle      interface {
		Decode([]byte) error
		Encode([]byte) ([]byte, error)
	}
	open bool // any body is well-formed, so prefixes are too
}{
	{full: &Query{Text: []byte("select 1")}, blank: &Query{}, oracle: &pgproto3.Query{}},
	{full: &Parse{Name: []byte("s"), Text: []byte("select $1"), OIDs: []uint32{23, 0}}, blank: &Parse{}, oracle: &pgproto3.Parse{}},
	{full: &Describe{Target: 'S', Name: []byte("s")}, blank: &Describe{}, oracle: &pgproto3.Describe{}},
	{full: &Close{Target: 'P', Name: []byte("p")}, blank: &Close{}, oracle: &pgproto3.Close{}},
	{full: &Execute{Portal: []byte("p"), MaxRows: 9}, blank: &Execute{}, oracle: &pgproto3.Execute{}},
	{full: &CopyData{Data: []byte("1\t2\n")}, blank: &CopyData{}, oracle: &pgproto3.CopyData{}, open: true},
	{full: &CopyFail{Reason: []byte("no")}, blank: &CopyFail{}, oracle: &pgproto3.CopyFail{}},
	{full: &PasswordMessage{Password: []byte("pw")}, blank: &PasswordMessage{}, oracle: &pgproto3.PasswordMessage{}},
	{full: &SASLInitialResponse{Mechanism: []byte("M"), Data: []byte("n,,")}, blank: &SASLInitialResponse{}, oracle: &pgproto3.SASLInitialResponse{}},
	{full: &SASLResponse{Data: []byte("c=")}, blank: &SASLResponse{}, oracle: &pgproto3.SASLResponse{}, open: true},
	{full: &FunctionCall{Function: 7, ArgFormats: []uint16{1}, Args: [][]byte{[]byte("x"), []byte("yz")}, ResultFormat: 1}, blank: &FunctionCall{}, oracle: &pgproto3.FunctionCall{}},
	// With a NULL, of which pgproto3 panics.
	{full: &FunctionCall{Function: 7, ArgFormats: []uint16{1}, Args: [][]byte{[]byte("x"), nil}, ResultFormat: 1}, blank: &FunctionCall{}},
	{full: &FunctionCallResponse{Result: []byte("r")}, blank: &FunctionCallResponse{}, oracle: &pgproto3.FunctionCallResponse{}},
	{full: &ParameterStatus{Name: []byte("a"), Value: []byte("b")}, blank: &ParameterStatus{}, oracle: &pgproto3.ParameterStatus{}},
	{full: &ReadyForQuery{Status: TxOpen}, blank: &ReadyForQuery{}, oracle: &pgproto3.ReadyForQuery{}},
	{full: &RowDescription{Fields: []Field{{Name: []byte("a"), Table: 1, Column: 2, Type: 3, Size: -1, Modifier: -1, Format: 1}}}, blank: &RowDescription{}, oracle: &pgproto3.RowDescription{}},
	{full: &DataRow{Values: [][]byte{[]byte("a"), nil, {}}}, blank: &DataRow{}, oracle: &pgproto3.DataRow{}},
	{full: &CommandComplete{Tag: []byte("SELECT 3")}, blank: &CommandComplete{}, oracle: &pgproto3.CommandComplete{}},
	{full: &ErrorResponse{Fields: []ErrorField{{'S', []byte("ERROR")}, {'C', []byte("42601")}, {'M', []byte("m")}}}, blank: &ErrorResponse{}},
	{full: &ParameterDescription{OIDs: []uint32{23, 25}}, blank: &ParameterDescription{}, oracle: &pgproto3.ParameterDescription{}},
	{full: &NotificationResponse{ProcessID: 4, Channel: []byte("c"), Payload: []byte("p")}, blank: &NotificationResponse{}, oracle: &pgproto3.NotificationResponse{}},
	{full: &NegotiateProtocolVersion{Newest: ProtocolVersion30, Unknown: [][]byte{[]byte("_pq_.x")}}, blank: &NegotiateProtocolVersion{}},
	{full: &CopyResponse{Type: 'G', Format: 1, Columns: []uint16{1, 1}}, blank: &CopyResponse{Type: 'G'}, oracle: &pgproto3.CopyInResponse{}},
	{full: &CopyResponse{Type: 'H', Columns: []uint16{0}}, blank: &CopyResponse{Type: 'H'}, oracle: &pgproto3.CopyOutResponse{}},
	{full: &Authentication{Kind: AuthMD5, Data: []byte("salt")}, blank: &Authentication{}},
}

// bindFull is apart: Decode also sets Tail, which Append does not read.
var bindFull = Bind{
	Portal: []byte("p"), Statement: []byte("s"), ParamFormats: []uint16{0, 1, 0},
	Params: [][]byte{[]byte("x"), nil, {}}, ResultFormats: []uint16{1},
}

func TestRoundTrip(t *testing.T) {
	for _, tc := range cases {
		wire := tc.full.Append([]byte("left alone"))[len("left alone"):]
		kind, body, size, err := Next(wire, MaxMessageLen)
		if err != nil || size != len(wire) || kind != wire[0] {
			t.Fatalf("%T: framed as %q, %d of %d bytes, %v", tc.full, kind, size, len(wire), err)
		}
		if err := tc.blank.Decode(body); err != nil {
			t.Fatalf("%T: %v", tc.full, err)
		}
		if !reflect.DeepEqual(tc.blank, tc.full) {
			t.Errorf("%T: got %+v, want %+v", tc.full, tc.blank, tc.full)
		}
		if tc.oracle == nil {
			continue
		}
		if err := tc.oracle.Decode(body); err != nil {
			t.Errorf("%T: pgproto3: %v", tc.full, err)
			continue
		}
		if again, err := tc.oracle.Encode(nil); err != nil || !bytes.Equal(again, wire) {
			t.Errorf("%T: pgproto3 encodes %q (%v), we %q", tc.full, again, err, wire)
		}
	}
}

func TestBindRoundTrip(t *testing.T) {
	wire := bindFull.Append(nil)
	var m Bind
	if err := m.Decode(wire[HeaderLen:]); err != nil {
		t.Fatal(err)
	}
	portal, statement, tail, ok := BindNames(wire[HeaderLen:])
	if !ok || string(portal) != "p" || string(statement) != "s" || !bytes.Equal(tail, m.Tail) {
		t.Errorf("names %q %q, tail %q, %v", portal, statement, tail, ok)
	}
	renamed := m
	renamed.Statement = []byte("fs_1")
	if got, want := AppendBindAs(nil, portal, []byte("fs_1"), tail), renamed.Append(nil); !bytes.Equal(got, want) {
		t.Errorf("renamed %q, want %q", got, want)
	}
	if again := m.Append(nil); !bytes.Equal(again, wire) {
		t.Errorf("again %q, want %q", again, wire)
	}
	var oracle pgproto3.Bind
	if err := oracle.Decode(wire[HeaderLen:]); err != nil {
		t.Fatal(err)
	}
	if again, err := oracle.Encode(nil); err != nil || !bytes.Equal(again, wire) {
		t.Errorf("pgproto3 encodes %q (%v), we %q", again, err, wire)
	}
	if m.Params[1] != nil || m.Params[2] == nil {
		t.Errorf("NULL and the empty value are mixed up: %q", m.Params)
	}
	for i, want := range []uint16{0, 1, 0} {
		if got, ok := m.ParamFormat(i); !ok || got != want {
			t.Errorf("format of parameter %d: %d, %v", i, got, ok)
		}
	}
	m.ParamFormats = m.ParamFormats[:2]
	if _, ok := m.ParamFormat(0); ok {
		t.Error("two formats for three parameters were accepted")
	}
}

func TestEveryStrictPrefixFails(t *testing.T) {
	all := []message{&Bind{}}
	wires := [][]byte{bindFull.Append(nil)}
	for _, tc := range cases {
		if !tc.open {
			all, wires = append(all, tc.blank), append(wires, tc.full.Append(nil))
		}
	}
	for i, m := range all {
		body := wires[i][HeaderLen:]
		for n := range body {
			if err := m.Decode(body[:n:n]); err == nil {
				t.Errorf("%T: the first %d of %d bytes decode as %+v", m, n, len(body), m)
			}
		}
		if err := m.Decode(append(bytes.Clone(body), 'x')); err == nil {
			t.Errorf("%T: a byte too many was accepted", m)
		}
	}
}

func TestFraming(t *testing.T) {
	wire := (&Query{Text: []byte("select 1")}).Append(nil)
	for n := range wire {
		if _, _, size, err := Next(wire[:n], MaxMessageLen); size != 0 || err != nil {
			t.Errorf("%d bytes: size %d, %v; want incomplete", n, size, err)
		}
	}
	for _, bad := range []string{"Q\x00\x00\x00\x03", "Q\x00\x00\x00\x00", "Q\xff\xff\xff\xff", "Q\x80\x00\x00\x00", "Q\x40\x00\x00\x00"} {
		if _, _, _, err := Next([]byte(bad), MaxMessageLen); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
	if _, _, _, err := Next(wire, 8); err == nil {
		t.Error("a length above the limit was accepted")
	}
	for _, bad := range []string{"\x00\x00\x00\x07", "\xff\xff\xff\xff", "\x00\x00\x27\x11"} {
		if _, _, err := NextStartup([]byte(bad)); err == nil {
			t.Errorf("startup %q: no error", bad)
		}
	}
}

func TestStartup(t *testing.T) {
	want := StartupMessage{Version: 3<<16 | 9, Options: []Option{{"user", "a"}, {"_pq_.x", "1"}, {"database", ""}, {"user", "b"}}}
	wire := want.Append(nil)
	for n := range wire {
		if _, size, err := NextStartup(wire[:n]); size != 0 || err != nil {
			t.Errorf("%d bytes: size %d, %v", n, size, err)
		}
	}
	body, size, err := NextStartup(append(bytes.Clone(wire), "next"...))
	if err != nil || size != len(wire) {
		t.Fatalf("size %d of %d, %v", size, len(wire), err)
	}
	var got StartupMessage
	if err := got.Decode(body); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if user, _ := got.Get("user"); user != "b" {
		t.Errorf("user %q: the last one counts", user)
	}
	reply, needed := got.Negotiate(ProtocolVersion32)
	if !needed || reply.Newest != ProtocolVersion32 || len(reply.Unknown) != 1 {
		t.Errorf("negotiated %+v, %v", reply, needed)
	}
	for n := 4; n < len(body); n++ {
		if err := new(StartupMessage).Decode(body[:n:n]); err == nil {
			t.Errorf("the first %d bytes were accepted", n)
		}
	}
	plain := StartupMessage{Version: ProtocolVersion30, Options: []Option{{"user", "a"}}}
	if reply, needed := plain.Negotiate(ProtocolVersion32); needed || reply.Newest != ProtocolVersion30 {
		t.Errorf("3.0 negotiated %+v, %v", reply, needed)
	}
}

func TestStartupRequests(t *testing.T) {
	key := BackendKeyData{ProcessID: 7, Secret: bytes.Repeat([]byte{1}, 32)}
	cancel := CancelRequest(key)
	for _, tc := range []struct {
		wire []byte
		want StartupKind
	}{
		{AppendSSLRequest(nil), StartupSSL},
		{AppendGSSENCRequest(nil), StartupGSSENC},
		{cancel.Append(nil), StartupCancel},
		{(&StartupMessage{Version: 2 << 16}).Append(nil), StartupUnsupported},
		{(&StartupMessage{Version: ProtocolVersion32}).Append(nil), StartupSession},
	} {
		body, size, err := NextStartup(tc.wire)
		if err != nil || size != len(tc.wire) {
			t.Fatalf("%q: size %d, %v", tc.wire, size, err)
		}
		if got, err := KindOfStartup(body); err != nil || got != tc.want {
			t.Errorf("%q: kind %d, %v; want %d", tc.wire, got, err, tc.want)
		}
	}
	var back CancelRequest
	if err := back.Decode(cancel.Append(nil)[4:]); err != nil || !back.Matches(&key) {
		t.Errorf("cancel %+v, %v", back, err)
	}
	back.Secret = back.Secret[:4]
	if back.Matches(&key) {
		t.Error("a shorter key matches")
	}
	for _, n := range []int{0, 3, 257} {
		if err := new(BackendKeyData).Decode(make([]byte, 4+n)); err == nil {
			t.Errorf("a key of %d bytes was accepted", n)
		}
		if err := new(CancelRequest).Decode(make([]byte, 8+n)); err == nil {
			t.Errorf("a cancel key of %d bytes was accepted", n)
		}
	}
}

func TestRandomRowsRoundTrip(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		var row DataRow
		for range rng.IntN(20) {
			var v []byte
			if rng.IntN(4) > 0 {
				v = make([]byte, rng.IntN(300))
			}
			row.Values = append(row.Values, v)
		}
		wire := row.Append(nil)
		var got DataRow
		if err := got.Decode(wire[HeaderLen:]); err != nil || !bytes.Equal(got.Append(nil), wire) {
			t.Fatalf("row %q: got %q, %v", row.Values, got.Values, err)
		}
	}
}

func TestErrorText(t *testing.T) {
	wire := AppendError(nil, SeverityFatal, "28P01", `password authentication failed for user "x"`)
	var oracle pgproto3.ErrorResponse
	if err := oracle.Decode(wire[HeaderLen:]); err != nil {
		t.Fatal(err)
	}
	if oracle.Severity != "FATAL" || oracle.Code != "28P01" || oracle.SeverityUnlocalized != "FATAL" {
		t.Errorf("%+v", oracle)
	}
	var m ErrorResponse
	if err := m.Decode(wire[HeaderLen:]); err != nil || string(m.Get(FieldSQLState)) != "28P01" || m.Get(FieldHint) != nil {
		t.Errorf("%q, %v", m.Fields, err)
	}
	if got := m.AppendNotice(nil); got[0] != TypeNoticeResponse || !bytes.Equal(got[1:], wire[1:]) {
		t.Errorf("notice %q", got)
	}
}

func TestCommandTagRows(t *testing.T) {
	for tag, want := range map[string]uint64{"SELECT 3": 3, "INSERT 0 12": 12, "BEGIN": 0, "": 0, "CREATE TABLE": 0} {
		if got := (&CommandComplete{Tag: []byte(tag)}).Rows(); got != want {
			t.Errorf("%q: %d rows, want %d", tag, got, want)
		}
	}
}

func TestBodyless(t *testing.T) {
	for _, m := range []Bodyless{Flush, Sync, Terminate, CopyDone, ParseComplete, BindComplete, CloseComplete, NoData, PortalSuspended, EmptyQueryResponse} {
		wire := m.Append(nil)
		if _, body, size, err := Next(wire, MaxMessageLen); err != nil || size != 5 || m.Decode(body) != nil {
			t.Errorf("%q: %d, %v", wire, size, err)
		}
		if m.Decode([]byte{0}) == nil {
			t.Errorf("%q with a body was accepted", byte(m))
		}
	}
}

// FuzzDecode feeds any bytes to every decoder: no panic, and what decodes
// encodes to the same bytes.
func FuzzDecode(f *testing.F) {
	f.Add(byte(0), bindFull.Append(nil)[HeaderLen:])
	for i, tc := range cases {
		f.Add(byte(i+1), tc.full.Append(nil)[HeaderLen:])
	}
	f.Fuzz(func(t *testing.T, which byte, body []byte) {
		var m message = &Bind{}
		if i := int(which) % (len(cases) + 1); i > 0 {
			m = reflect.New(reflect.TypeOf(cases[i-1].blank).Elem()).Interface().(message)
			if c, ok := m.(*CopyResponse); ok {
				c.Type = 'G'
			}
		}
		if m.Decode(body) != nil {
			return
		}
		if got := m.Append(nil)[HeaderLen:]; !bytes.Equal(got, body) {
			t.Errorf("%T: %q encodes as %q", m, body, got)
		}
	})
}

func FuzzStartup(f *testing.F) {
	f.Add((&StartupMessage{Version: ProtocolVersion30, Options: []Option{{"user", "a"}}}).Append(nil))
	f.Add((&CancelRequest{ProcessID: 1, Secret: make([]byte, 4)}).Append(nil))
	f.Fuzz(func(t *testing.T, wire []byte) {
		body, size, err := NextStartup(wire)
		if err != nil || size == 0 {
			return
		}
		if size > len(wire) || len(body) != size-4 {
			t.Fatalf("size %d, body %d, of %d", size, len(body), len(wire))
		}
		if _, err := KindOfStartup(body); err != nil {
			t.Fatal(err)
		}
		var m StartupMessage
		if m.Decode(body) == nil && !bytes.Equal(m.Append(nil), wire[:size]) {
			t.Errorf("%q encodes as %q", wire[:size], m.Append(nil))
		}
		var c CancelRequest
		if c.Decode(body) == nil {
			c.Append(nil)
		}
	})
}
