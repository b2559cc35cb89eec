package load

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"freshet/bench/wire"
)

func postgresBytes(messages ...string) []byte {
	var b []byte
	for _, m := range messages {
		b = append(b, m[0])
		b = binary.BigEndian.AppendUint32(b, uint32(len(m)+3))
		b = append(b, m[1:]...)
	}
	return b
}

func mysqlBytes(packets ...string) []byte {
	var b []byte
	for i, p := range packets {
		b = wire.AppendPacket(b, byte(i+1), []byte(p))
	}
	return b
}

// TestFramersInPieces: however the bytes are cut, the same replies are found.
func TestFramersInPieces(t *testing.T) {
	mysqlSet := []string{"\x02", "\xffdef-looks-like-an-error", "\x03def", "\x00row", "\x05row", "\xfe\x00\x00\x02\x00\x00\x00"}
	for name, c := range map[string]struct {
		framer       func() framer
		reply        []byte
		done, failed int
	}{
		"PostgreSQL row":         {func() framer { return &postgresFramer{} }, postgresBytes("2", "T...", "D"+string(bytes.Repeat([]byte("x"), 900)), "CSELECT 1\x00", "ZI"), 1, 0},
		"PostgreSQL error":       {func() framer { return &postgresFramer{} }, postgresBytes("ESERROR\x00\x00", "ZI"), 1, 1},
		"PostgreSQL empty":       {func() framer { return &postgresFramer{} }, postgresBytes("2", "n", "I", "ZT", "ZI"), 2, 0},
		"MySQL OK":               {func() framer { return &mysqlFramer{} }, mysqlBytes("\x00\x00\x00\x02\x00\x00\x00"), 1, 0},
		"MySQL error":            {func() framer { return &mysqlFramer{} }, mysqlBytes("\xff\x48\x04#HY000no"), 1, 1},
		"MySQL set":              {func() framer { return &mysqlFramer{deprecateEOF: true} }, mysqlBytes(mysqlSet...), 1, 0},
		"MySQL set, old EOF":     {func() framer { return &mysqlFramer{} }, mysqlBytes("\x01", "\x03def", "\xfe\x00\x00\x02\x00", "\x03row", "\xfe\x00\x00\x02\x00"), 1, 0},
		"MySQL error among rows": {func() framer { return &mysqlFramer{deprecateEOF: true} }, mysqlBytes("\x01", "\x03def", "\x00row", "\xff\x48\x04#HY000no"), 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			r := rand.New(rand.NewPCG(seed, 1))
			f := c.framer()
			for range 50 {
				done, failed := 0, 0
				for rest := c.reply; len(rest) > 0; {
					n := 1 + r.IntN(len(rest))
					d, bad, err := f.feed(rest[:n])
					if err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					done, failed, rest = done+d, failed+bad, rest[n:]
					if len(rest) > 0 && done == c.done {
						t.Fatalf("seed %d: complete with %d bytes to come", seed, len(rest))
					}
				}
				if done != c.done || failed != c.failed {
					t.Fatalf("seed %d: %d replies, %d failed; want %d and %d", seed, done, failed, c.done, c.failed)
				}
			}
		})
	}
}

func FuzzFramers(f *testing.F) {
	f.Add(postgresBytes("T..", "ZI"), uint8(3))
	f.Add(mysqlBytes("\x01", "\x03def", "\x00row", "\xfe\x00\x00\x02\x00\x00\x00"), uint8(5))
	f.Fuzz(func(t *testing.T, b []byte, cut uint8) {
		n := min(int(cut), len(b))
		for _, make := range []func() framer{
			func() framer { return &postgresFramer{} },
			func() framer { return &mysqlFramer{} },
			func() framer { return &mysqlFramer{deprecateEOF: true} },
		} {
			whole, pieces := make(), make()
			d, e, err := whole.feed(b)
			d1, e1, err1 := pieces.feed(b[:n])
			if err1 == nil {
				var d2, e2 int
				d2, e2, err1 = pieces.feed(b[n:])
				d1, e1 = d1+d2, e1+e2
			}
			if d != d1 || e != e1 || (err == nil) != (err1 == nil) {
				t.Fatalf("%T: whole %d %d %v, in pieces %d %d %v", whole, d, e, err, d1, e1, err1)
			}
		}
	})
}
