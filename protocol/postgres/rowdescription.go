package postgres

// Field describes one column of an answer.
type Field struct {
	Name     []byte
	Table    uint32 // OID, 0 if it is no plain column of a table
	Column   uint16 // attribute number, 0 likewise
	Type     uint32 // OID
	Size     int16  // negative: of varying width
	Modifier int32
	Format   uint16 // 0 when a statement, not a portal, is described
}

// RowDescription describes an answer's columns.
type RowDescription struct{ Fields []Field }

// fieldMinLen is a field with an empty name.
const fieldMinLen = 1 + 4 + 2 + 4 + 2 + 4 + 2

// Decode reads the body.
func (m *RowDescription) Decode(body []byte) error {
	r := reader{rest: body}
	m.Fields = m.Fields[:0]
	for range r.count(fieldMinLen) {
		m.Fields = append(m.Fields, Field{
			Name:     r.cstring(),
			Table:    r.uint32(),
			Column:   r.uint16(),
			Type:     r.uint32(),
			Size:     int16(r.uint16()),
			Modifier: int32(r.uint32()),
			Format:   r.uint16(),
		})
	}
	return r.end(TypeRowDescription)
}

// Append appends the whole message.
func (m *RowDescription) Append(dst []byte) []byte {
	start := len(dst)
	dst = appendUint16(begin(dst, TypeRowDescription), uint16(len(m.Fields)))
	for i := range m.Fields {
		f := &m.Fields[i]
		dst = appendCString(dst, f.Name)
		dst = appendUint16(appendUint32(dst, f.Table), f.Column)
		dst = appendUint16(appendUint32(dst, f.Type), uint16(f.Size))
		dst = appendUint16(appendUint32(dst, uint32(f.Modifier)), f.Format)
	}
	return finish(dst, start)
}
