package mysql

import (
	"bytes"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"testing"
	"time"
)

// seeded gives the test's random source and prints the seed; FRESHET_SEED
// repeats a run.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("FRESHET_SEED"); s != "" {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = v
	}
	t.Logf("FRESHET_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// text is a random string without zero bytes.
func text(r *rand.Rand, limit int) string {
	b := make([]byte, r.IntN(limit))
	for i := range b {
		b[i] = byte(1 + r.IntN(255))
	}
	return string(b)
}

func blob(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.IntN(256))
	}
	return b
}

// message is one kind of packet for the round trip: random makes one and its
// payload, and decode reads it back.
type message struct {
	name   string
	random func(*rand.Rand, Capability) (any, []byte)
	decode func([]byte, Capability) (any, error)
	// forgiving: strict prefixes may be proper payloads too (trailing text).
	forgiving bool
}

// onWire leaves what can be sent: MariaDB's flags only without ClientLongPassword.
func onWire(c Capability) Capability {
	if c.Has(ClientLongPassword) {
		return Capability(c.basic())
	}
	return c
}

func messages() []message {
	return []message{
		{"handshake", func(r *rand.Rand, c Capability) (any, []byte) {
			h := Handshake{ServerVersion: text(r, 20), ConnectionID: r.Uint32(), Nonce: blob(r, NonceLen),
				Capabilities: onWire(c) | ClientProtocol41 | ClientSecureConnection | ClientPluginAuth, Collation: uint8(r.Uint32()), Status: Status(r.Uint32()), Plugin: text(r, 30)}
			return h, h.Append(nil)
		}, func(p []byte, _ Capability) (any, error) { return DecodeHandshake(p) }, false},
		{"auth switch", func(r *rand.Rand, c Capability) (any, []byte) {
			a := AuthSwitch{Plugin: text(r, 20), Data: []byte(text(r, 30) + "x")}
			return a, a.Append(nil)
		}, func(p []byte, _ Capability) (any, error) { return DecodeAuthSwitch(p) }, true},
		{"ok", func(r *rand.Rand, c Capability) (any, []byte) {
			o := OK{AffectedRows: r.Uint64() >> r.IntN(64), LastInsertID: r.Uint64() >> r.IntN(64), Status: Status(r.Uint32()) &^ StatusStateChanged,
				Warnings: uint16(r.Uint32()), Info: []byte(text(r, 300) + "i"), EOF: r.IntN(2) == 0}
			if c.Has(ClientSessionTrack) && r.IntN(2) == 0 {
				o.Status |= StatusStateChanged
				o.State = AppendStateChange(nil, StateChange{Kind: TrackSchema, Value: []byte(text(r, 300))})
			}
			return o, o.Append(nil, c)
		}, func(p []byte, c Capability) (any, error) { return DecodeOK(p, c) }, true},
		{"error", func(r *rand.Rand, c Capability) (any, []byte) {
			e := ServerError{Number: uint16(r.Uint32()), State: "HY000", Message: text(r, 100)}
			return e, e.Append(nil, c|ClientProtocol41)
		}, func(p []byte, c Capability) (any, error) { return DecodeError(p, c) }, true},
		{"eof", func(r *rand.Rand, c Capability) (any, []byte) {
			e := EOF{Warnings: uint16(r.Uint32()), Status: Status(r.Uint32())}
			return e, e.Append(nil)
		}, func(p []byte, _ Capability) (any, error) { return DecodeEOF(p) }, false},
		{"column", func(r *rand.Rand, c Capability) (any, []byte) {
			col := Column{Schema: text(r, 300), Table: text(r, 20), OrgTable: text(r, 20), Name: text(r, 20), OrgName: text(r, 20),
				Collation: uint16(r.Uint32()), Length: r.Uint32(), Type: FieldType(r.Uint32()), Flags: uint16(r.Uint32()), Decimals: uint8(r.Uint32())}
			if c.Has(MariaDBExtendedMetadata) {
				col.Extended = text(r, 20)
			}
			return col, col.Append(nil, c)
		}, func(p []byte, c Capability) (any, error) { return DecodeColumn(p, c) }, false},
		{"prepare ok", func(r *rand.Rand, c Capability) (any, []byte) {
			o := PrepareOK{StatementID: r.Uint32(), Columns: uint16(r.Uint32()), Params: uint16(r.Uint32()), Warnings: uint16(r.Uint32())}
			o.NoMetadata = c.Has(ClientOptionalResultsetMetadata) && r.IntN(2) == 0
			return o, o.Append(nil, c)
		}, func(p []byte, c Capability) (any, error) { return DecodePrepareOK(p, c) }, false},
		{"change user", func(r *rand.Rand, c Capability) (any, []byte) {
			c |= ClientSecureConnection | ClientPluginAuth | ClientConnectAttrs
			u := ChangeUser{User: []byte(text(r, 20) + "u"), Auth: blob(r, r.IntN(255)+1), Database: []byte(text(r, 20) + "d"),
				Collation: uint16(r.Uint32()), Plugin: []byte(text(r, 20) + "p"), Attrs: blob(r, r.IntN(300)+1)}
			return u, u.Append(nil, c)
		}, func(p []byte, c Capability) (any, error) {
			return DecodeChangeUser(p, c|ClientSecureConnection|ClientPluginAuth|ClientConnectAttrs)
		}, true},
		{"bulk execute", func(r *rand.Rand, c Capability) (any, []byte) {
			b := BulkExecute{StatementID: r.Uint32(), Flags: BulkTypes, Types: blob(r, 6), Rows: blob(r, r.IntN(300)+1)}
			return b, b.Append(nil)
		}, func(p []byte, _ Capability) (any, error) { return DecodeBulkExecute(p, 3) }, true},
		{"fetch", func(r *rand.Rand, c Capability) (any, []byte) {
			f := Fetch{StatementID: r.Uint32(), Rows: r.Uint32()}
			p := AppendStatementCommand(nil, ComStmtFetch, f.StatementID)
			return f, append(p, byte(f.Rows), byte(f.Rows>>8), byte(f.Rows>>16), byte(f.Rows>>24))
		}, func(p []byte, _ Capability) (any, error) { return DecodeFetch(p) }, false},
	}
}

// onlyTerminatorCut: the servers too forgive the last string's missing end.
func onlyTerminatorCut(p []byte, n int) bool { return n == len(p)-1 && p[n] == 0 }

func TestRoundTripAndPrefixes(t *testing.T) {
	r := seeded(t)
	for _, m := range messages() {
		for range 300 {
			caps := Capability(r.Uint64())
			want, p := m.random(r, caps)
			got, err := m.decode(p, caps)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%s (capabilities %x):\n got %+v, %v\nwant %+v", m.name, caps, got, err, want)
			}
			for n := range p {
				got, err := m.decode(p[:n:n], caps)
				if err == nil && (!m.forgiving || reflect.DeepEqual(got, want)) && !onlyTerminatorCut(p, n) {
					t.Fatalf("%s: %d of %d bytes were taken for a whole", m.name, n, len(p))
				}
			}
		}
	}
}

func TestHandshakeResponseRoundTrip(t *testing.T) {
	r := seeded(t)
	for range 1000 {
		c := onWire(Capability(r.Uint64())) | ClientProtocol41
		h := HandshakeResponse{Capabilities: c, MaxPacket: r.Uint32(), Collation: uint16(r.Uint32()), User: []byte(text(r, 20) + "u"), Auth: []byte(text(r, 200) + "a")}
		if c.Has(ClientConnectWithDB) {
			h.Database = []byte(text(r, 20) + "d")
		}
		if c.Has(ClientPluginAuth) {
			h.Plugin = []byte(text(r, 20) + "p")
		}
		if c.Has(ClientConnectAttrs) {
			h.Attrs = AppendAttrs(nil, []Attr{{Name: []byte("_os"), Value: []byte(text(r, 300))}})
		}
		if c.Has(ClientZstdCompression) {
			h.ZstdLevel = 3
		}
		p := h.Append(nil)
		got, err := DecodeHandshakeResponse(p)
		if err != nil || !reflect.DeepEqual(got, h) {
			t.Fatalf("capabilities %x:\n got %+v, %v\nwant %+v", c, got, err, h)
		}
		for n := range p {
			if got, err := DecodeHandshakeResponse(p[:n:n]); err == nil && reflect.DeepEqual(got, h) && !onlyTerminatorCut(p, n) {
				t.Fatalf("capabilities %x: %d of %d bytes were taken for a whole", c, n, len(p))
			}
		}
	}
}

func TestSSLRequest(t *testing.T) {
	h := HandshakeResponse{Capabilities: ClientProtocol41 | ClientSSL, Collation: 255}
	p := h.AppendSSLRequest(nil)
	if c, ok := IsSSLRequest(p); !ok || c != h.Capabilities {
		t.Fatalf("not recognised: %x", p)
	}
	if _, ok := IsSSLRequest(h.Append(nil)); ok {
		t.Fatal("a full response was taken for the request")
	}
}

// The info text and the session state of an OK are written as the servers
// write them, for clients with and without CLIENT_SESSION_TRACK.
func TestOKForBothKindsOfClient(t *testing.T) {
	state := AppendStateChange(nil, StateChange{Kind: TrackSystemVariables, Name: []byte("autocommit"), Value: []byte("ON")})
	ok := OK{Status: StatusAutocommit | StatusStateChanged, State: state}
	if got, want := ok.Append(nil, 0), []byte{0, 0, 0, 2, 0, 0, 0}; !bytes.Equal(got, want) {
		t.Errorf("without tracking: % x, want % x", got, want)
	}
	want := append([]byte{0, 0, 0, 2, 0x40, 0, 0, 0, byte(len(state))}, state...)
	if got := ok.Append(nil, ClientSessionTrack); !bytes.Equal(got, want) {
		t.Errorf("with tracking: % x, want % x", got, want)
	}
	ok.State = nil
	if got, want := ok.Append(nil, ClientSessionTrack), []byte{0, 0, 0, 2, 0, 0, 0}; !bytes.Equal(got, want) {
		t.Errorf("with nothing to tell: % x, want % x", got, want)
	}
}

func TestStateChanges(t *testing.T) {
	want := []StateChange{
		{Kind: TrackSystemVariables, Name: []byte("time_zone"), Value: []byte("+01:00")},
		{Kind: TrackSchema, Value: []byte("db")},
		{Kind: TrackStateChange, Value: []byte("1")},
		{Kind: TrackGTIDs, Value: []byte("a:1-2")},
		{Kind: TrackTransactionState, Value: []byte("T_______")},
	}
	var data []byte
	for _, c := range want {
		data = AppendStateChange(data, c)
	}
	got, err := DecodeStateChanges(nil, data)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, g := range got {
		if g.Kind != want[i].Kind || !bytes.Equal(g.Name, want[i].Name) || !bytes.Equal(g.Value, want[i].Value) {
			t.Errorf("item %d: %+v, want %+v", i, g, want[i])
		}
	}
	for n := range data {
		if got, err := DecodeStateChanges(nil, data[:n]); err == nil && len(got) == len(want) {
			t.Errorf("%d of %d bytes were taken for a whole", n, len(data))
		}
	}
	// MariaDB puts several variables into one item.
	two := AppendLenencString(AppendLenencString(AppendLenencString(AppendLenencString(nil, "a"), "1"), "b"), "2")
	got, err = DecodeStateChanges(nil, AppendLenencString([]byte{0}, two))
	if err != nil || len(got) != 2 || string(got[1].Name) != "b" || string(got[1].Value) != "2" {
		t.Errorf("two variables in one item: %+v, %v", got, err)
	}
}

func TestResultRoundTrip(t *testing.T) {
	s := func(v string) *string { return &v }
	res := Result{Columns: []Column{TextColumn("a"), IntColumn("n"), DoubleColumn("d")}, Status: StatusAutocommit,
		Rows: [][]*string{{s("x"), s("-7"), s("1.5")}, {nil, nil, nil}, {s(""), s("18446744073709551615"), nil}}}
	for _, caps := range []Capability{0, ClientDeprecateEOF, ClientDeprecateEOF | ClientSessionTrack, ClientOptionalResultsetMetadata} {
		for _, binary := range []bool{false, true} {
			stream, _ := res.Append(nil, 1, caps, binary)
			cmd := ComQuery
			if binary {
				cmd = ComStmtExecute
			}
			events, tr := follow(t, cmd, caps, 1, stream)
			rows := 0
			for _, e := range events {
				if e.event == EventRow {
					if !binary {
						cells, err := DecodeTextRow(nil, e.payload, 3)
						if err != nil || (cells[0] == nil) != (res.Rows[rows][0] == nil) {
							t.Errorf("row %d: %q, %v", rows, cells, err)
						}
					}
					rows++
				}
			}
			if rows != 3 || !tr.Done() || tr.Last.Status != StatusAutocommit {
				t.Errorf("capabilities %x binary %t: %d rows, %+v", caps, binary, rows, tr)
			}
		}
	}
}
