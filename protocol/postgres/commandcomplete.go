package postgres

import (
	"bytes"
	"strconv"
)

// CommandComplete ends one statement.
type CommandComplete struct{ Tag []byte }

// Decode reads the body.
func (m *CommandComplete) Decode(body []byte) error {
	r := reader{rest: body}
	m.Tag = r.cstring()
	return r.end(TypeCommandComplete)
}

// Append appends the whole message.
func (m *CommandComplete) Append(dst []byte) []byte {
	start := len(dst)
	return finish(appendCString(begin(dst, TypeCommandComplete), m.Tag), start)
}

// Rows is the number of rows that the tag ends with, or 0.
func (m *CommandComplete) Rows() uint64 {
	n, err := strconv.ParseUint(string(m.Tag[bytes.LastIndexByte(m.Tag, ' ')+1:]), 10, 64)
	if err != nil {
		return 0 // a tag without a count, such as "BEGIN"
	}
	return n
}
