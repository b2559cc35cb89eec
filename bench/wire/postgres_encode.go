package wire

import "encoding/binary"

// appendMessage adds one message whose body write makes.
func appendMessage(b []byte, kind byte, write func([]byte) []byte) []byte {
	b = append(b, kind, 0, 0, 0, 0)
	at := len(b) - 4
	b = write(b)
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at))
	return b
}

func cstring(b []byte, s string) []byte { return append(append(b, s...), 0) }

// AppendQuery adds Query ('Q').
func AppendQuery(b []byte, sql string) []byte {
	return appendMessage(b, 'Q', func(b []byte) []byte { return cstring(b, sql) })
}

// AppendParse adds Parse ('P'); oids are the declared parameter types.
func AppendParse(b []byte, name, sql string, oids []uint32) []byte {
	return appendMessage(b, 'P', func(b []byte) []byte {
		b = cstring(cstring(b, name), sql)
		b = binary.BigEndian.AppendUint16(b, uint16(len(oids)))
		for _, o := range oids {
			b = binary.BigEndian.AppendUint32(b, o)
		}
		return b
	})
}

// Value is one bound parameter; nil Bytes is NULL.
type Value struct {
	Bytes  []byte
	Binary bool
}

// AppendBind adds Bind ('B'); resultFormats as in the protocol: none for all
// text, one for all columns, or one each.
func AppendBind(b []byte, portal, statement string, values []Value, resultFormats []int16) []byte {
	return appendMessage(b, 'B', func(b []byte) []byte {
		b = cstring(cstring(b, portal), statement)
		b = binary.BigEndian.AppendUint16(b, uint16(len(values)))
		for _, v := range values {
			f := uint16(0)
			if v.Binary {
				f = 1
			}
			b = binary.BigEndian.AppendUint16(b, f)
		}
		b = binary.BigEndian.AppendUint16(b, uint16(len(values)))
		for _, v := range values {
			if v.Bytes == nil {
				b = binary.BigEndian.AppendUint32(b, 0xffffffff)
				continue
			}
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(v.Bytes))), v.Bytes...)
		}
		b = binary.BigEndian.AppendUint16(b, uint16(len(resultFormats)))
		for _, f := range resultFormats {
			b = binary.BigEndian.AppendUint16(b, uint16(f))
		}
		return b
	})
}

// AppendDescribe adds Describe ('D') of a statement ('S') or portal ('P').
func AppendDescribe(b []byte, what byte, name string) []byte {
	return appendMessage(b, 'D', func(b []byte) []byte { return cstring(append(b, what), name) })
}

// AppendClose adds Close ('C') of a statement ('S') or portal ('P').
func AppendClose(b []byte, what byte, name string) []byte {
	return appendMessage(b, 'C', func(b []byte) []byte { return cstring(append(b, what), name) })
}

// AppendExecute adds Execute ('E'); rows 0 is all of them.
func AppendExecute(b []byte, portal string, rows uint32) []byte {
	return appendMessage(b, 'E', func(b []byte) []byte {
		return binary.BigEndian.AppendUint32(cstring(b, portal), rows)
	})
}

// AppendSync adds Sync ('S').
func AppendSync(b []byte) []byte { return append(b, 'S', 0, 0, 0, 4) }

// AppendFlush adds Flush ('H').
func AppendFlush(b []byte) []byte { return append(b, 'H', 0, 0, 0, 4) }

// AppendCopy adds CopyData ('d') and CopyDone ('c').
func AppendCopy(b []byte, data []byte) []byte {
	b = appendMessage(b, 'd', func(b []byte) []byte { return append(b, data...) })
	return append(b, 'c', 0, 0, 0, 4)
}
