package binlog

import "freshet/cache/feed/cursor"

// Query is a statement that the log keeps as text.
type Query struct {
	Schema string // the default database, "" for none
	Text   []byte
	Error  uint16 // the statement's own error number; 0 when it ended well
	// SQLMode is the session's sql_mode bits; known is false when the event
	// does not say.
	SQLMode      uint64
	SQLModeKnown bool
}

// Codes of the status variables that ParseQuery looks at (Query_log_event).
const (
	statusFlags2  = 0 // 4 bytes
	statusSQLMode = 1 // 8 bytes
)

// ParseQuery decodes a query event. MariaDB's compressed ones are
// decompressed, up to limitBytes of text.
func ParseQuery(t Type, body []byte, limitBytes int) (Query, error) {
	c := cursor.Cursor{Data: body}
	c.Take(4) // thread
	c.Take(4) // seconds it ran
	schemaLen := int(c.U8())
	q := Query{Error: c.Little16()}
	status := c.Take(int(c.Little16()))
	q.Schema = string(c.Take(schemaLen))
	c.Take(1)
	q.Text = c.Rest()
	if c.Err != nil {
		return Query{}, c.Err
	}
	q.SQLMode, q.SQLModeKnown = statusMode(status)
	if t == MariaQueryCompressedEvent {
		text, err := inflateMaria(q.Text, limitBytes)
		if err != nil {
			return Query{}, err
		}
		q.Text = text
	}
	return q, nil
}

// statusMode finds sql_mode among the status variables. They have no lengths,
// but the servers write flags2 and sql_mode first.
func statusMode(status []byte) (uint64, bool) {
	c := cursor.Cursor{Data: status}
	for c.Err == nil && len(c.Data) > 0 {
		switch c.U8() {
		case statusFlags2:
			c.Take(4)
		case statusSQLMode:
			mode := c.Little64()
			return mode, c.Err == nil
		default:
			return 0, false
		}
	}
	return 0, false
}
