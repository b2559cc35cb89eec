package mysql

import (
	"crypto/sha512"
	"testing"
)

func sha512Of(s string) [64]byte { return sha512.Sum512([]byte(s)) }

// FuzzDecoders gives every decoder the same hostile bytes: none may panic.
func FuzzDecoders(f *testing.F) {
	f.Add([]byte{0x17, 1, 0, 0, 0, 8, 1, 0, 0, 0, 2, 0, 1, 3, 0, 0, 254, 0, 1, 'x', 1, 0, 0, 0, 1, 'y'}, uint64(ClientQueryAttributes), 2)
	f.Add([]byte{3, 1, 1, 0, 1, 3, 0, 0, 1, 0, 0, 0, 'S'}, uint64(ClientQueryAttributes), 0)
	f.Add([]byte{0, 0, 0, 2, 0x40, 0, 0, 0, 5, 1, 3, 2, 'd', 'b'}, uint64(ClientSessionTrack), 0)
	f.Add([]byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, uint64(0), 1)
	f.Fuzz(func(t *testing.T, p []byte, c uint64, n int) {
		caps := Capability(c)
		n &= 0xffff
		for _, m := range messages() {
			if _, err := m.decode(p, caps); err != nil {
				continue
			}
		}
		if e, err := DecodeExecute(p, caps, n); err == nil {
			types := e.AppendTypes(nil)
			if !e.NewTypes {
				types = make([]byte, 2*e.Count)
			}
			if params, err := e.Params(nil, types); err == nil && len(params) != e.Count {
				t.Fatalf("%d parameters of %d", len(params), e.Count)
			}
		}
		if o, err := DecodeOK(p, caps); err == nil {
			if _, err := DecodeStateChanges(nil, o.State); err != nil {
				return
			}
		}
		decodeTheRest(p, caps, n)
	})
}

// decodeTheRest is only there not to panic; errors are as good as values.
func decodeTheRest(p []byte, caps Capability, n int) []error {
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	h, err := DecodeHandshakeResponse(p)
	note(err)
	_, err = DecodeAttrs(h.Attrs)
	note(err)
	_, err = DecodeQuery(p, caps)
	note(err)
	_, err = DecodeLongData(p)
	note(err)
	_, err = DecodeTextRow(nil, p, n&0xff)
	note(err)
	_, _, err = DecodeFieldList(p)
	note(err)
	_, err = DecodeProcessKill(p)
	note(err)
	_, err = DecodeSetOption(p)
	note(err)
	a := ClientAuth{Password: "x"}
	_, _, err = a.Start(PluginCachingSHA2, p)
	note(err)
	_, _, _, err = a.Step(p, caps)
	note(err)
	return errs
}

// FuzzTracker shows a tracker a hostile stream: it may refuse, never panic,
// and never ask for more than a packet holds.
func FuzzTracker(f *testing.F) {
	res := Result{Columns: []Column{TextColumn("a")}, Rows: [][]*string{{nil}}}
	for _, caps := range []Capability{0, ClientDeprecateEOF, ClientOptionalResultsetMetadata, MariaDBExtendedMetadata | MariaDBProgress} {
		stream, _ := res.Append(nil, 1, caps, false)
		f.Add(byte(ComQuery), uint64(caps), stream)
		f.Add(byte(ComStmtPrepare), uint64(caps), packets(1, []byte{0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0}))
	}
	f.Fuzz(func(t *testing.T, cmd byte, caps uint64, stream []byte) {
		var tr Tracker
		tr.Begin(Command(cmd), Capability(caps), 1)
		for len(stream) >= HeaderLen {
			h, err := DecodeHeader(stream)
			if err != nil || len(stream) < HeaderLen+h.Length {
				return
			}
			head := stream[HeaderLen : HeaderLen+h.Length]
			if len(head) > 0 {
				want := tr.Want(h, head[0])
				if want > h.Length {
					t.Fatalf("wants %d of %d", want, h.Length)
				}
				head = head[:want]
			}
			if _, err := tr.Packet(h, head); err != nil {
				return
			}
			stream = stream[HeaderLen+h.Length:]
		}
	})
}

// FuzzNextMessage: framing never reads past its bytes, and what it takes it
// also accounts for.
func FuzzNextMessage(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 3, 9}, 100)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		var join []byte
		m, n, err := NextMessage(b, limit, &join)
		if err == nil && (n > len(b) || len(m.Payload) != n-HeaderLen) {
			t.Fatalf("%d bytes taken of %d, payload %d", n, len(b), len(m.Payload))
		}
	})
}
