package postgres

import (
	"bytes"
	"encoding/binary"
)

// reader takes a body apart from the front. The first thing that does not fit
// sticks; every later read then returns zero, so a decoder checks once, at its
// end. Slices it returns point into the body.
type reader struct {
	rest   []byte
	reason string
}

func (r *reader) fail(reason string) {
	if r.reason == "" {
		r.reason = reason
	}
	r.rest = nil
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.fail(reasonShort)
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint16() uint16 {
	if b := r.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// cstring takes a string and its ending zero, which is not part of the result.
func (r *reader) cstring() []byte {
	i := bytes.IndexByte(r.rest, 0)
	if i < 0 {
		r.fail(reasonString)
		return nil
	}
	s := r.rest[:i:i]
	r.rest = r.rest[i+1:]
	return s
}

// value takes a length and that many bytes; a length of -1 is NULL, a nil slice.
func (r *reader) value() []byte {
	n := int32(r.uint32())
	if n == -1 || r.reason != "" {
		return nil
	}
	return r.take(int(n))
}

// count takes a 16-bit count of things that are at least width bytes each, and
// refuses one that cannot fit in what is left, before anything is reserved.
// The server reads these counts as unsigned.
func (r *reader) count(width int) int {
	n := int(r.uint16())
	if n*width > len(r.rest) {
		r.fail(reasonShort)
		return 0
	}
	return n
}

// end is called last: the body must be used up.
func (r *reader) end(kind byte) error {
	if r.reason == "" && len(r.rest) != 0 {
		r.reason = reasonTrailing
	}
	if r.reason != "" {
		return &MalformedError{Type: kind, Reason: r.reason}
	}
	return nil
}
