package mysql

import (
	"bytes"
	"encoding/binary"
)

// First bytes that set a length-encoded integer apart ("Length-Encoded Integer").
const (
	lenencNull = 0xfb
	lenenc16   = 0xfc
	lenenc24   = 0xfd
	lenenc64   = 0xfe
)

// AppendLenenc appends a length-encoded integer in its shortest form.
func AppendLenenc(dst []byte, v uint64) []byte {
	switch {
	case v < lenencNull:
		return append(dst, byte(v))
	case v < 1<<16:
		return append(dst, lenenc16, byte(v), byte(v>>8))
	case v < 1<<24:
		return append(dst, lenenc24, byte(v), byte(v>>8), byte(v>>16))
	}
	return binary.LittleEndian.AppendUint64(append(dst, lenenc64), v)
}

// AppendLenencString appends a string after its length.
func AppendLenencString[T ~string | ~[]byte](dst []byte, s T) []byte {
	return append(AppendLenenc(dst, uint64(len(s))), s...)
}

// AppendNulString appends a string that ends in a zero byte; s holds none.
func AppendNulString[T ~string | ~[]byte](dst []byte, s T) []byte {
	return append(append(dst, s...), 0)
}

// DecodeLenenc reads a length-encoded integer; n is 0 when b does not start
// with a whole one (NULL, 0xfb, included).
func DecodeLenenc(b []byte) (v uint64, n int) {
	if len(b) == 0 {
		return 0, 0
	}
	switch c := b[0]; {
	case c < lenencNull:
		return uint64(c), 1
	case c == lenenc16 && len(b) >= 3:
		return uint64(binary.LittleEndian.Uint16(b[1:])), 3
	case c == lenenc24 && len(b) >= 4:
		return uint64(uint24(b[1:])), 4
	case c == lenenc64 && len(b) >= 9:
		return binary.LittleEndian.Uint64(b[1:]), 9
	}
	return 0, 0
}

// reader walks over one payload. Once a read does not fit it is bad for good,
// every further read gives zero, and the decoder asks once, at the end.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) u8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) lenenc() uint64 {
	if r.bad {
		return 0
	}
	v, n := DecodeLenenc(r.b)
	if n == 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) lenencString() []byte { return r.take(r.lenenc()) }

func (r *reader) nulString() []byte {
	if r.bad {
		return nil
	}
	i := bytes.IndexByte(r.b, 0)
	if i < 0 {
		r.bad = true
		return nil
	}
	out := r.b[:i:i]
	r.b = r.b[i+1:]
	return out
}

func (r *reader) rest() []byte {
	if r.bad {
		return nil
	}
	out := r.b
	r.b = nil
	return out
}

// check reports whether everything read was there.
func (r *reader) check(what string) error {
	if r.bad {
		return malformed(what)
	}
	return nil
}

// end is check, and that nothing is left over.
func (r *reader) end(what string) error {
	if r.bad || len(r.b) != 0 {
		return malformed(what)
	}
	return nil
}
