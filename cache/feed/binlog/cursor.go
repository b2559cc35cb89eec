package binlog

import (
	"encoding/binary"
	"errors"
)

// ErrShort says that an event ends before its contents do, or that a length in
// it points past its end.
var ErrShort = errors.New("binlog: event too short")

// cursor reads an event's body from front to back. The first read past the end
// makes it fail for good; callers check err once, at the end or before they
// use a length.
type cursor struct {
	data []byte
	err  error
}

// take returns the next n bytes, nil once the cursor has failed.
func (c *cursor) take(n int) []byte {
	if c.err != nil || n < 0 || n > len(c.data) {
		c.err = ErrShort
		return nil
	}
	p := c.data[:n:n]
	c.data = c.data[n:]
	return p
}

func (c *cursor) u8() byte {
	if p := c.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if p := c.take(2); p != nil {
		return binary.LittleEndian.Uint16(p)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if p := c.take(4); p != nil {
		return binary.LittleEndian.Uint32(p)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if p := c.take(8); p != nil {
		return binary.LittleEndian.Uint64(p)
	}
	return 0
}

// little reads an n-byte little-endian number, n at most 8.
func (c *cursor) little(n int) uint64 {
	var v uint64
	for i, b := range c.take(n) {
		v |= uint64(b) << (8 * i)
	}
	return v
}

// packed reads a length-encoded integer (MySQL manual, "Protocol::LengthEncodedInteger").
func (c *cursor) packed() uint64 {
	switch b := c.u8(); b {
	case 0xfc:
		return uint64(c.u16())
	case 0xfd:
		return c.little(3)
	case 0xfe:
		return c.u64()
	case 0xfb, 0xff:
		c.err = ErrShort
		return 0
	default:
		return uint64(b)
	}
}

// rest returns everything that is left.
func (c *cursor) rest() []byte { return c.take(len(c.data)) }
