package planner

import (
	"encoding/binary"
	"strings"

	"freshet/cache/canon"
)

// maxElements bounds the elements of an array that are looked at: with more
// there would be too many keys.
const maxElements = maxKeys

// elements appends the canonical values of an array parameter's elements. NULL
// elements equal nothing. false when one's equality is not proven.
func (b *binding) elements(s *scratch, c *column, from *source, params []Param) bool {
	slot := b.slots[from.slot]
	if slot < 0 || int(slot) >= len(params) || params[slot].Null {
		return false
	}
	p := params[slot]
	declared := p.Type
	if int(slot) < len(b.declared) && b.declared[slot] != 0 {
		declared = b.declared[slot]
	}
	oid := elementOID(declared)
	if declared != 0 && declared != canon.OIDUnknown && oid == 0 {
		return false
	}
	var r arrayReader
	if p.Binary {
		r = binaryArray(p.Data)
		if oid != 0 && oid != r.oid || r.oid == 0 {
			return false
		}
		oid = r.oid
	} else {
		r = textArray(p.Data)
	}
	for count := 0; ; {
		element, null, more := r.next()
		switch {
		case !more:
			return !r.bad
		case null:
			continue
		}
		if count++; count > maxElements {
			return false
		}
		p.Data = element
		var ok bool
		if s.bytes, ok = b.postgresParam(s.bytes, c, from, &p, oid); !ok {
			return false
		}
		s.ends = append(s.ends, len(s.bytes))
	}
}

// elementOID is the type of the elements of an array type (pg_type.dat), 0 for
// those whose comparison is not known.
func elementOID(array uint32) uint32 {
	switch array {
	case 1005:
		return canon.OIDInt2
	case 1007:
		return canon.OIDInt4
	case 1016:
		return canon.OIDInt8
	case 1231:
		return canon.OIDNumeric
	case 1009:
		return canon.OIDText
	case 1014:
		return canon.OIDBpchar
	case 1015:
		return canon.OIDVarchar
	case 2951:
		return canon.OIDUUID
	case 1000:
		return canon.OIDBool
	case 1182:
		return canon.OIDDate
	case 1001:
		return canon.OIDBytea
	case 1115:
		return canon.OIDTimestamp
	case 1185:
		return canon.OIDTimestamptz
	}
	return 0
}

// arrayReader reads the elements of an array of one dimension; what else an
// array may be makes it bad.
type arrayReader struct {
	data   []byte
	binary bool
	bad    bool
	oid    uint32 // of the elements, binary only
	left   int    // elements to come, binary only
	first  bool   // text only
	buffer [128]byte
}

// binaryArray reads array_send's form: dimensions, whether there are NULLs, the
// elements' type, then of each dimension length and lower bound, then the
// elements with their lengths (src/backend/utils/adt/arrayfuncs.c).
func binaryArray(data []byte) arrayReader {
	r := arrayReader{binary: true, bad: true}
	if len(data) < 12 {
		return r
	}
	dimensions := binary.BigEndian.Uint32(data)
	r.oid = binary.BigEndian.Uint32(data[8:])
	switch {
	case dimensions == 0 && len(data) == 12:
		r.bad = false
	case dimensions == 1 && len(data) >= 20:
		r.bad = false
		r.left = int(int32(binary.BigEndian.Uint32(data[12:])))
		r.data = data[20:]
	}
	return r
}

// textArray reads the text form without blanks around elements and without
// bounds (manual, 8.15.6).
func textArray(data []byte) arrayReader {
	if len(data) < 2 || data[0] != '{' || data[len(data)-1] != '}' {
		return arrayReader{bad: true}
	}
	return arrayReader{data: data[1 : len(data)-1], first: true}
}

// next returns the next element, valid until the one after it is asked for.
func (r *arrayReader) next() (element []byte, null, more bool) {
	switch {
	case r.bad:
		return nil, false, false
	case r.binary:
		return r.nextBinary()
	}
	return r.nextText()
}

func (r *arrayReader) nextBinary() (element []byte, null, more bool) {
	if r.left <= 0 {
		r.bad = r.left < 0 || len(r.data) > 0
		return nil, false, false
	}
	if len(r.data) < 4 {
		r.bad = true
		return nil, false, false
	}
	size := int64(int32(binary.BigEndian.Uint32(r.data)))
	r.data = r.data[4:]
	r.left--
	if size == -1 {
		return nil, true, true
	}
	if size < 0 || size > int64(len(r.data)) {
		r.bad = true
		return nil, false, false
	}
	element, r.data = r.data[:size], r.data[size:]
	return element, false, true
}

func (r *arrayReader) nextText() (element []byte, null, more bool) {
	if len(r.data) == 0 {
		return nil, false, false
	}
	if !r.first {
		if r.data[0] != ',' || len(r.data) == 1 {
			r.bad = true
			return nil, false, false
		}
		r.data = r.data[1:]
	}
	r.first = false
	if r.data[0] == '"' {
		element, more = r.quoted()
		return element, false, more
	}
	end := 0
	for end < len(r.data) && r.data[end] != ',' {
		switch r.data[end] {
		case '"', '\\', '{', '}', ' ', '\t', '\n', '\r', '\v', '\f':
			r.bad = true
			return nil, false, false
		}
		end++
	}
	element, r.data = r.data[:end], r.data[end:]
	r.bad = end == 0
	return element, strings.EqualFold(string(element), "null"), !r.bad
}

// quoted reads an element in quotes; one with escapes must fit the buffer.
func (r *arrayReader) quoted() (element []byte, more bool) {
	out := r.buffer[:0]
	for i := 1; i < len(r.data); i++ {
		c := r.data[i]
		switch {
		case c == '"':
			r.data = r.data[i+1:]
			return out, true
		case c == '\\' && i+1 < len(r.data):
			i++
			c = r.data[i]
		}
		if len(out) == cap(out) {
			break
		}
		out = append(out, c)
	}
	r.bad = true
	return nil, false
}
