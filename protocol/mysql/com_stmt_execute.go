package mysql

import "encoding/binary"

// Flags of COM_STMT_EXECUTE ("enum_cursor_type").
const (
	CursorReadOnly          uint8 = 1
	CursorForUpdate         uint8 = 2
	CursorScrollable        uint8 = 4
	ParameterCountAvailable uint8 = 8
	cursorMask                    = CursorReadOnly | CursorForUpdate | CursorScrollable
)

// Execute is COM_STMT_EXECUTE, located in place.
type Execute struct {
	StatementID uint32
	Flags       uint8
	Iterations  uint32
	// Count is how many values came: the statement's parameters, and query
	// attributes after them.
	Count int
	Nulls []byte // bitmap, one bit a value
	// NewTypes says that types came along; otherwise those of the last
	// execution hold.
	NewTypes bool
	types    []byte // raw: 2 bytes each, with names when named
	named    bool
	Values   []byte // raw, one after the other; see Params
}

// Cursor says whether the client asked for a cursor.
func (e *Execute) Cursor() bool { return e.Flags&cursorMask != 0 }

// DecodeExecute reads COM_STMT_EXECUTE of a statement with numParams
// parameters. Everything aliases p. Values are not looked at before Params.
func DecodeExecute(p []byte, caps Capability, numParams int) (Execute, error) {
	const what = "COM_STMT_EXECUTE"
	r := reader{b: p}
	if Command(r.u8()) != ComStmtExecute {
		return Execute{}, malformed(what)
	}
	e := Execute{StatementID: r.u32(), Flags: r.u8(), Iterations: r.u32(), Count: numParams}
	// Without the flag too a MySQL server reads the count of a statement that
	// has parameters (checked on 9.7).
	e.named = caps.Has(ClientQueryAttributes) && (numParams > 0 || e.Flags&ParameterCountAvailable != 0)
	if e.named {
		n := r.lenenc()
		if n > maxAttributes {
			return Execute{}, malformed(what)
		}
		// A server takes no parameters at all for a count of zero.
		e.Count = int(n)
	}
	if e.Count > 0 {
		e.Nulls = r.take(uint64(e.Count+7) / 8)
		switch r.u8() {
		case 0:
		case 1:
			e.NewTypes = true
			e.skipTypes(&r)
		default:
			r.bad = true
		}
	}
	e.Values = r.rest()
	return e, r.check(what)
}

func (e *Execute) skipTypes(r *reader) {
	if !e.named {
		e.types = r.take(2 * uint64(e.Count))
		return
	}
	all := r.b
	for i := 0; i < e.Count && !r.bad; i++ {
		r.u16()
		r.lenencString()
	}
	if !r.bad {
		e.types = all[:len(all)-len(r.b)]
	}
}

// AppendTypes appends the types that came along, 2 bytes each, without the
// names. This is the form that Params takes.
func (e *Execute) AppendTypes(dst []byte) []byte {
	if !e.named {
		return append(dst, e.types...)
	}
	r := reader{b: e.types}
	for range e.Count {
		dst = binary.LittleEndian.AppendUint16(dst, r.u16())
		r.lenencString()
	}
	return dst
}

// Param is one value of COM_STMT_EXECUTE, in place.
type Param struct {
	Null bool
	// Type is the field type, with ParamUnsigned set for unsigned integers.
	Type uint16
	// Data is the value's bytes without its own length: little-endian
	// numbers, strings, and dates and times of 0 to 12 bytes.
	Data []byte
}

// ParamUnsigned is set in Param.Type for unsigned integers.
const ParamUnsigned uint16 = 0x8000

// Params appends the values, by types as AppendTypes gives them. Values that
// do not fit their types exactly are malformed; so is a parameter whose value
// went ahead in COM_STMT_SEND_LONG_DATA, which the packet does not tell.
func (e *Execute) Params(dst []Param, types []byte) ([]Param, error) {
	const what = "parameters of COM_STMT_EXECUTE"
	if len(types) < 2*e.Count {
		return dst, malformed(what)
	}
	r := reader{b: e.Values}
	for i := range e.Count {
		p := Param{Type: binary.LittleEndian.Uint16(types[2*i:])}
		if e.Nulls[i/8]&(1<<(i%8)) != 0 {
			p.Null = true
		} else {
			p.Data = binaryValue(&r, FieldType(p.Type))
			p.Null = FieldType(p.Type) == TypeNull
		}
		if r.bad {
			return dst, malformed(what)
		}
		dst = append(dst, p)
	}
	return dst, r.end(what)
}

// binaryValue takes one value ("Binary Protocol Value") and returns it without
// its own length.
func binaryValue(r *reader, t FieldType) []byte {
	switch t {
	case TypeNull:
		return nil
	case TypeTiny, TypeBool:
		return r.take(1)
	case TypeShort, TypeYear:
		return r.take(2)
	case TypeLong, TypeInt24, TypeFloat:
		return r.take(4)
	case TypeLongLong, TypeDouble:
		return r.take(8)
	case TypeDate, TypeNewDate, TypeDatetime, TypeTimestamp, TypeTimestamp2, TypeDatetime2, TypeTime, TypeTime2:
		return r.take(uint64(r.u8()))
	}
	return r.lenencString()
}

// AppendRawTypes appends types, 2 bytes each, as they stand in a packet like
// this one: each with an empty name where names are sent.
func (e *Execute) AppendRawTypes(dst, types []byte) []byte {
	if !e.named {
		return append(dst, types[:2*e.Count]...)
	}
	for i := range e.Count {
		dst = append(dst, types[2*i], types[2*i+1], 0)
	}
	return dst
}
