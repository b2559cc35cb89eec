package mysql

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

var compressions = []Compression{Zlib, Zstd}

// somePlain is n bytes that are partly alike.
func somePlain(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		if b[i] = byte(i / 7); r.IntN(4) == 0 {
			b[i] = byte(r.Uint32())
		}
	}
	return b
}

// unpackAll unpacks frames that come in pieces, and returns what is left.
func unpackAll(t *testing.T, c *Compressor, in []byte) (plain, rest []byte) {
	t.Helper()
	for {
		out, used, err := c.Unpack(plain, in)
		if err != nil {
			t.Fatal(err)
		}
		if used == 0 {
			return plain, in
		}
		plain, in = out, in[used:]
	}
}

// What is packed comes out as it was, whatever its length, numbered from where
// the other side left off.
func TestCompressorPacksAndUnpacks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, algorithm := range compressions {
		for _, n := range []int{0, 1, leastPacked - 1, leastPacked, 1000, maxFrame, maxFrame + 1, 3*maxFrame + 17} {
			server, client := NewCompressor(algorithm, 3), NewCompressor(algorithm, 0)
			plain := somePlain(r, n)
			got, rest := unpackAll(t, server, client.Pack(nil, plain))
			if !bytes.Equal(got, plain) || len(rest) > 0 {
				t.Errorf("%d bytes came out as %d, %d left", n, len(got), len(rest))
			}
			frames := (n + maxFrame - 1) / maxFrame
			answer := server.Pack(nil, []byte("answer"))
			if int(answer[3]) != frames {
				t.Errorf("after %d frames the answer has number %d", frames, answer[3])
			}
		}
		long := NewCompressor(algorithm, 3).Pack(nil, make([]byte, 100000))
		if len(long) > 1000 {
			t.Errorf("zeros are packed to %d bytes", len(long))
		}
		noise := make([]byte, 1000)
		for i := range noise {
			noise[i] = byte(r.Uint32())
		}
		if packed := NewCompressor(algorithm, 3).Pack(nil, noise); len(packed) != frameHead+len(noise) || uint24(packed[4:]) != 0 {
			t.Errorf("noise is packed to %d bytes", len(packed))
		}
	}
}

// Every strict prefix of a frame is not whole yet; contents that are not what
// the head says are an error.
func TestCompressorRefusesLies(t *testing.T) {
	plain := somePlain(rand.New(rand.NewPCG(3, 4)), 300)
	for _, algorithm := range compressions {
		c := NewCompressor(algorithm, 3)
		frame := c.Pack(nil, plain)
		for n := range frame {
			if out, used, err := c.Unpack(nil, frame[:n]); used != 0 || err != nil || len(out) != 0 {
				t.Fatalf("a prefix of %d bytes gave %d bytes, %d used, %v", n, len(out), used, err)
			}
		}
		for name, change := range map[string]func(b []byte) []byte{
			"longer than said":  func(b []byte) []byte { putUint24(b[4:], 299); return b },
			"shorter than said": func(b []byte) []byte { putUint24(b[4:], 301); return b },
			"much shorter":      func(b []byte) []byte { putUint24(b[4:], 1<<24-1); return b },
			"cut":               func(b []byte) []byte { putUint24(b, len(b)-frameHead-1); return b[:len(b)-1] },
			"nothing":           func(b []byte) []byte { putUint24(b, 0); return b[:frameHead] },
			"damaged":           func(b []byte) []byte { b[frameHead+3] ^= 0xff; return b },
		} {
			if _, _, err := c.Unpack(nil, change(bytes.Clone(frame))); !errors.Is(err, ErrMalformed) {
				t.Errorf("%d, %s: %v", algorithm, name, err)
			}
		}
	}
}

// FuzzCompressor: whatever comes, no more is made of a frame than it may hold.
func FuzzCompressor(f *testing.F) {
	for _, algorithm := range compressions {
		f.Add(uint8(algorithm), NewCompressor(algorithm, 1).Pack(nil, bytes.Repeat([]byte("abc"), 100)))
	}
	f.Add(uint8(Zlib), []byte{1, 0, 0, 0, 0, 0, 0, 9})
	f.Fuzz(func(t *testing.T, algorithm uint8, in []byte) {
		c := NewCompressor(Compression(algorithm%2), 0)
		for len(in) > 0 {
			plain, used, err := c.Unpack(nil, in)
			if len(plain) >= 1<<24 {
				t.Fatalf("%d bytes of a frame", len(plain))
			}
			if used == 0 || err != nil {
				return
			}
			in = in[used:]
		}
	})
}
