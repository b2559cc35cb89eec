package cursor

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestNumbers reads the same bytes in every width and order.
func TestNumbers(t *testing.T) {
	data := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	for name, test := range map[string]struct {
		read func(*Cursor) uint64
		want uint64
		size int
	}{
		"U8":       {func(c *Cursor) uint64 { return uint64(c.U8()) }, 1, 1},
		"Little16": {func(c *Cursor) uint64 { return uint64(c.Little16()) }, 0x0201, 2},
		"Little32": {func(c *Cursor) uint64 { return uint64(c.Little32()) }, 0x04030201, 4},
		"Little64": {(*Cursor).Little64, 0x0807060504030201, 8},
		"Little 0": {func(c *Cursor) uint64 { return c.Little(0) }, 0, 0},
		"Little 3": {func(c *Cursor) uint64 { return c.Little(3) }, 0x030201, 3},
		"Little 8": {func(c *Cursor) uint64 { return c.Little(8) }, 0x0807060504030201, 8},
		"Big16":    {func(c *Cursor) uint64 { return uint64(c.Big16()) }, 0x0102, 2},
		"Big32":    {func(c *Cursor) uint64 { return uint64(c.Big32()) }, 0x01020304, 4},
		"Big64":    {(*Cursor).Big64, 0x0102030405060708, 8},
	} {
		c := Cursor{Data: data}
		if got := test.read(&c); got != test.want || c.Err != nil || len(c.Data) != 8-test.size {
			t.Errorf("%s: %#x, %v, %d bytes left", name, got, c.Err, len(c.Data))
		}
		for size := range test.size {
			c := Cursor{Data: data[:size]}
			if got := test.read(&c); got != 0 || c.Err != ErrShort {
				t.Errorf("%s of %d bytes: %#x, %v", name, size, got, c.Err)
			}
		}
	}
}

// TestParts takes strings of every kind, and their ends away.
func TestParts(t *testing.T) {
	c := Cursor{Data: []byte("abc\x00\x00defg")}
	if text, empty := c.Text(), c.Text(); text != "abc" || empty != "" || c.Err != nil {
		t.Errorf("texts %q and %q, %v", text, empty, c.Err)
	}
	part := c.Take(2)
	if string(part) != "de" || cap(part) != 2 {
		t.Errorf("took %q with room for %d", part, cap(part))
	}
	if long, rest := c.Long(1), c.Rest(); string(long) != "f" || string(rest) != "g" || len(c.Rest()) != 0 || c.Err != nil {
		t.Errorf("then %q and %q, %v", long, rest, c.Err)
	}
	for name, read := range map[string]func(*Cursor){
		"Take":          func(c *Cursor) { c.Take(4) },
		"Take negative": func(c *Cursor) { c.Take(-1) },
		"Long":          func(c *Cursor) { c.Long(4) },
		"Long of all":   func(c *Cursor) { c.Long(1<<64 - 1) },
		"Text":          func(c *Cursor) { c.Text() },
		"Fail":          (*Cursor).Fail,
	} {
		c := Cursor{Data: []byte("abc")}
		if read(&c); c.Err != ErrShort || c.U8() != 0 || c.Text() != "" || c.Rest() != nil || c.Long(0) != nil {
			t.Errorf("%s: reads go on, %v", name, c.Err)
		}
	}
}

// FuzzCursor makes reads that the data chooses: whatever they are, they return
// the data's own bytes, in order, and a failure stays.
func FuzzCursor(f *testing.F) {
	seed := rand.Uint64()
	f.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 20 {
		data := make([]byte, rng.IntN(40))
		for i := range data {
			data[i] = byte(rng.IntN(12))
		}
		f.Add(data, data)
	}
	f.Fuzz(func(t *testing.T, script, data []byte) {
		c := Cursor{Data: data}
		for _, op := range script {
			before, failed := c.Data, c.Err != nil
			var part []byte
			switch op % 8 {
			case 0:
				part = c.Take(int(op) / 8)
			case 1:
				part = c.Long(uint64(op) << (op / 8))
			case 2:
				part = []byte(c.Text())
			case 3:
				part = []byte{c.U8()}
			case 4:
				c.Little(int(op) % 9)
			case 5:
				c.Big32()
			case 6:
				c.Little64()
			case 7:
				part = c.Rest()
			}
			switch {
			case failed && c.Err == nil:
				t.Fatal("a failure did not stay")
			case c.Err == nil && !bytes.HasPrefix(before, part):
				t.Fatalf("%q is not the beginning of %q", part, before)
			case c.Err == nil && !bytes.HasSuffix(before, c.Data):
				t.Fatalf("%q is not the end of %q", c.Data, before)
			}
		}
	})
}
