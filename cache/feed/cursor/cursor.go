// Package cursor reads numbers and strings from a peer's bytes, whatever their
// order. It serves both of the change streams: the binary log writes its
// numbers little-endian, logical replication big-endian.
package cursor

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// ErrShort says that what is read ends before its contents do, or that a
// length in it points past its end.
var ErrShort = errors.New("a message of the stream ends before its contents do")

// Cursor reads Data from front to back; Data is what is left. The first read
// past the end makes it fail for good: every read from then on gives zero, so
// callers look at Err once, at the end or before they act on a length. What
// Take, Long and Rest return are parts of the data, not copies.
type Cursor struct {
	Data []byte
	Err  error
}

// Fail makes the cursor fail, as a read past the end does.
func (c *Cursor) Fail() { c.Data, c.Err = nil, ErrShort }

// Take returns the next n bytes, nil once the cursor has failed.
func (c *Cursor) Take(n int) []byte {
	if c.Err != nil || n < 0 || n > len(c.Data) {
		c.Fail()
		return nil
	}
	p := c.Data[:n:n]
	c.Data = c.Data[n:]
	return p
}

// Long is Take for a length that the data gave.
func (c *Cursor) Long(n uint64) []byte {
	if n > uint64(len(c.Data)) {
		c.Fail()
		return nil
	}
	return c.Take(int(n))
}

// Rest returns everything that is left.
func (c *Cursor) Rest() []byte { return c.Take(len(c.Data)) }

// U8 reads one byte.
func (c *Cursor) U8() byte {
	if p := c.Take(1); p != nil {
		return p[0]
	}
	return 0
}

// Little16 reads a little-endian number of two bytes.
func (c *Cursor) Little16() uint16 {
	if p := c.Take(2); p != nil {
		return binary.LittleEndian.Uint16(p)
	}
	return 0
}

// Little32 reads a little-endian number of four bytes.
func (c *Cursor) Little32() uint32 {
	if p := c.Take(4); p != nil {
		return binary.LittleEndian.Uint32(p)
	}
	return 0
}

// Little64 reads a little-endian number of eight bytes.
func (c *Cursor) Little64() uint64 {
	if p := c.Take(8); p != nil {
		return binary.LittleEndian.Uint64(p)
	}
	return 0
}

// Little reads a little-endian number of n bytes, n at most 8.
func (c *Cursor) Little(n int) uint64 {
	var v uint64
	for i, b := range c.Take(n) {
		v |= uint64(b) << (8 * i)
	}
	return v
}

// Big16 reads a big-endian number of two bytes.
func (c *Cursor) Big16() uint16 {
	if p := c.Take(2); p != nil {
		return binary.BigEndian.Uint16(p)
	}
	return 0
}

// Big32 reads a big-endian number of four bytes.
func (c *Cursor) Big32() uint32 {
	if p := c.Take(4); p != nil {
		return binary.BigEndian.Uint32(p)
	}
	return 0
}

// Big64 reads a big-endian number of eight bytes.
func (c *Cursor) Big64() uint64 {
	if p := c.Take(8); p != nil {
		return binary.BigEndian.Uint64(p)
	}
	return 0
}

// Text reads a string that ends with a zero byte, which is left out.
func (c *Cursor) Text() string {
	end := bytes.IndexByte(c.Data, 0)
	if end < 0 {
		c.Fail()
		return ""
	}
	p := c.Take(end + 1)
	return string(p[:len(p)-1])
}
