package postgres

import "encoding/binary"

// begin appends a message's type byte and room for its length; finish, given
// the length dst had before, fills the length in.
func begin(dst []byte, kind byte) []byte { return append(dst, kind, 0, 0, 0, 0) }

func finish(dst []byte, start int) []byte {
	binary.BigEndian.PutUint32(dst[start+1:], uint32(len(dst)-start-1))
	return dst
}

func appendUint16(dst []byte, v uint16) []byte { return binary.BigEndian.AppendUint16(dst, v) }
func appendUint32(dst []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(dst, v) }

func appendCString(dst, s []byte) []byte { return append(append(dst, s...), 0) }

// appendValue appends a value with its length; nil is NULL.
func appendValue(dst, v []byte) []byte {
	if v == nil {
		return appendUint32(dst, 0xFFFFFFFF)
	}
	return append(appendUint32(dst, uint32(len(v))), v...)
}

func appendUint16s(dst []byte, vs []uint16) []byte {
	dst = appendUint16(dst, uint16(len(vs)))
	for _, v := range vs {
		dst = appendUint16(dst, v)
	}
	return dst
}
