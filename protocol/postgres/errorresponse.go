package postgres

// The fields of an error or a notice that are read or written here (manual:
// "Error and Notice Message Fields").
const (
	FieldSeverity         byte = 'S' // may be translated
	FieldSeverityRaw      byte = 'V' // never translated
	FieldSQLState         byte = 'C'
	FieldMessage          byte = 'M'
	FieldDetail           byte = 'D'
	FieldHint             byte = 'H'
	FieldPosition         byte = 'P' // in characters, from 1
	FieldInternalPosition byte = 'p'
	FieldInternalQuery    byte = 'q'
	FieldWhere            byte = 'W'
	FieldSchema           byte = 's'
	FieldTable            byte = 't'
	FieldColumn           byte = 'c'
	FieldDataType         byte = 'd'
	FieldConstraint       byte = 'n'
	FieldFile             byte = 'F'
	FieldLine             byte = 'L'
	FieldRoutine          byte = 'R'
)

// ErrorField is one field as it came, known or not.
type ErrorField struct {
	Code  byte
	Value []byte
}

// ErrorResponse is an error or, with the other type, a notice.
type ErrorResponse struct{ Fields []ErrorField }

// Decode reads the body of an ErrorResponse or a NoticeResponse.
func (m *ErrorResponse) Decode(body []byte) error {
	r := reader{rest: body}
	m.Fields = m.Fields[:0]
	for {
		code := r.byte()
		if code == 0 {
			break
		}
		m.Fields = append(m.Fields, ErrorField{code, r.cstring()})
	}
	return r.end(TypeErrorResponse)
}

// Get returns a field's value, nil if it is not there.
func (m *ErrorResponse) Get(code byte) []byte {
	for i := range m.Fields {
		if m.Fields[i].Code == code {
			return m.Fields[i].Value
		}
	}
	return nil
}

// Append appends the whole message as an error.
func (m *ErrorResponse) Append(dst []byte) []byte { return m.append(dst, TypeErrorResponse) }

// AppendNotice appends the whole message as a notice.
func (m *ErrorResponse) AppendNotice(dst []byte) []byte { return m.append(dst, TypeNoticeResponse) }

func (m *ErrorResponse) append(dst []byte, kind byte) []byte {
	start := len(dst)
	dst = begin(dst, kind)
	for _, f := range m.Fields {
		dst = appendCString(append(dst, f.Code), f.Value)
	}
	return finish(append(dst, 0), start)
}

// Severities of errors and notices made here.
const (
	SeverityError   = "ERROR"
	SeverityFatal   = "FATAL" // the connection ends
	SeverityWarning = "WARNING"
	SeverityNotice  = "NOTICE"
)

// AppendError appends an ErrorResponse of the three fields that every client
// reads. extra adds fields after them.
func AppendError(dst []byte, severity, sqlState, message string, extra ...ErrorField) []byte {
	m := ErrorResponse{Fields: append([]ErrorField{
		{FieldSeverity, []byte(severity)},
		{FieldSeverityRaw, []byte(severity)},
		{FieldSQLState, []byte(sqlState)},
		{FieldMessage, []byte(message)},
	}, extra...)}
	return m.Append(dst)
}
