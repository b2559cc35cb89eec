// Package pgoutput decodes the messages of PostgreSQL's logical replication
// (manual, "Logical Replication Message Formats", protocol versions 1 and 2
// without streaming) and the two replication messages that carry them. It has
// no sockets and no state; every length is checked, and what is decoded stays
// a slice of the message.
package pgoutput

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"freshet/cache/feed/row"
)

// ErrShort says that a message ends before its contents do.
var ErrShort = errors.New("pgoutput: message too short")

type cursor struct {
	data []byte
	err  error
}

func (c *cursor) take(n int) []byte {
	if c.err != nil || n < 0 || n > len(c.data) {
		c.err = ErrShort
		return nil
	}
	p := c.data[:n:n]
	c.data = c.data[n:]
	return p
}

func (c *cursor) u8() byte {
	if p := c.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (c *cursor) u16() int {
	if p := c.take(2); p != nil {
		return int(binary.BigEndian.Uint16(p))
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if p := c.take(4); p != nil {
		return binary.BigEndian.Uint32(p)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if p := c.take(8); p != nil {
		return binary.BigEndian.Uint64(p)
	}
	return 0
}

func (c *cursor) text() string {
	end := bytes.IndexByte(c.data, 0)
	if c.err != nil || end < 0 {
		c.err = ErrShort
		return ""
	}
	return string(c.take(end + 1)[:end])
}

// done fails on bytes that nothing explains.
func (c *cursor) done() error {
	if c.err == nil && len(c.data) > 0 {
		return fmt.Errorf("pgoutput: %d bytes too many", len(c.data))
	}
	return c.err
}

// Kinds of message inside CopyData (manual, "Streaming Replication Protocol").
const (
	KeepaliveID = 'k'
	DataID      = 'w'
)

// Keepalive says how far the server has sent, and whether it wants an answer.
type Keepalive struct {
	End   uint64
	Reply bool
}

// ParseKeepalive decodes a primary keepalive after its first byte.
func ParseKeepalive(data []byte) (Keepalive, error) {
	c := cursor{data: data}
	k := Keepalive{End: c.u64()}
	c.u64() // the server's clock
	k.Reply = c.u8() != 0
	return k, c.done()
}

// ParseData returns the logical message inside XLogData, after its first byte.
func ParseData(data []byte) ([]byte, error) {
	c := cursor{data: data}
	c.take(24) // start, end and clock: of no use in logical replication
	if c.err == nil && len(c.data) == 0 {
		return nil, ErrShort
	}
	return c.data, c.err
}

// Begin opens a transaction.
type Begin struct {
	Final uint64 // where its commit record starts
	XID   uint32
}

// ParseBegin decodes message 'B' after its first byte.
func ParseBegin(data []byte) (Begin, error) {
	c := cursor{data: data}
	b := Begin{Final: c.u64()}
	c.u64() // commit time
	b.XID = c.u32()
	return b, c.done()
}

// ParseCommit decodes message 'C' after its first byte: where the commit
// record ends.
func ParseCommit(data []byte) (end uint64, err error) {
	c := cursor{data: data}
	c.u8()
	c.u64()
	end = c.u64()
	c.u64()
	return end, c.done()
}

// Column is one column of a relation message.
type Column struct {
	Key  bool // part of the replica identity
	Name string
	Type uint32
}

// Relation describes a table as the messages after it lay out its rows.
type Relation struct {
	OID          uint32
	Schema, Name string
	Identity     byte // pg_class.relreplident
	Columns      []Column
}

// ParseRelation decodes message 'R' after its first byte.
func ParseRelation(data []byte) (*Relation, error) {
	c := cursor{data: data}
	r := &Relation{OID: c.u32(), Schema: c.text(), Name: c.text(), Identity: c.u8()}
	for range c.u16() {
		col := Column{Key: c.u8()&1 != 0, Name: c.text(), Type: c.u32()}
		c.u32() // type modifier
		if c.err != nil {
			return nil, c.err
		}
		r.Columns = append(r.Columns, col)
	}
	return r, c.done()
}

// ParseTruncate decodes message 'T' after its first byte.
func ParseTruncate(data []byte) ([]uint32, error) {
	c := cursor{data: data}
	count := c.u32()
	c.u8() // CASCADE, RESTART IDENTITY
	if c.err != nil || uint64(count)*4 != uint64(len(c.data)) {
		return nil, ErrShort
	}
	oids := make([]uint32, count)
	for i := range oids {
		oids[i] = c.u32()
	}
	return oids, c.done()
}

// Change is message 'I', 'U' or 'D' before its rows are read.
type Change struct {
	Kind row.Kind
	OID  uint32
	rest []byte
}

// ParseChange decodes the head of a change; id is the message's first byte.
func ParseChange(id byte, data []byte) (Change, error) {
	c := cursor{data: data}
	ch := Change{OID: c.u32()}
	ch.rest = c.data
	switch id {
	case 'I':
		ch.Kind = row.Insert
	case 'U':
		ch.Kind = row.Update
	case 'D':
		ch.Kind = row.Delete
	default:
		return ch, fmt.Errorf("pgoutput: message %q is not a change", id)
	}
	return ch, c.err
}

// Read fills the images, in the relation's column order. An old image that was
// sent as key holds only the columns of the replica identity; one that was not
// sent at all means that those columns did not change, and they are copied
// from the new image.
func (ch Change) Read(r *Relation, images *row.Images) error {
	images.Size(len(r.Columns))
	c := cursor{data: ch.rest}
	part := c.u8()
	old := part == 'O' || part == 'K'
	if old {
		if ch.Kind == row.Insert {
			return fmt.Errorf("pgoutput: insert with an old row")
		}
		readTuple(&c, r, images.Old, part == 'K')
		if ch.Kind == row.Delete {
			return c.done()
		}
		part = c.u8()
	}
	if c.err == nil && (part != 'N' || ch.Kind == row.Delete) {
		return fmt.Errorf("pgoutput: unexpected row %q", part)
	}
	readTuple(&c, r, images.New, false)
	if err := c.done(); err != nil {
		return err
	}
	if ch.Kind == row.Update {
		complete(r, images, old)
	}
	return nil
}

// complete uses what the rules of replica identity say about values that an
// update leaves out.
func complete(r *Relation, images *row.Images, old bool) {
	for i, col := range r.Columns {
		switch {
		case images.New[i].State == row.Unchanged && images.Old[i].State == row.Present:
			images.New[i] = images.Old[i]
		case !old && col.Key && r.Identity != 'f' && images.New[i].State != row.Unchanged:
			images.Old[i] = images.New[i]
		}
	}
}

func readTuple(c *cursor, r *Relation, out []row.Value, keyOnly bool) {
	if n := c.u16(); n != len(out) {
		c.err = ErrShort
		return
	}
	for i := range out {
		switch kind := c.u8(); kind {
		case 'n':
			out[i] = row.Value{State: row.Null}
		case 'u':
			out[i] = row.Value{State: row.Unchanged}
		case 't', 'b':
			n := c.u32()
			raw := c.take(int(min(uint64(n), uint64(len(c.data)+1))))
			out[i] = row.Value{State: row.Present, Raw: raw}
			if kind == 'b' { // not asked for: nothing here reads binary values
				out[i] = row.Value{State: row.Altered}
			}
		default:
			c.err = ErrShort
		}
		if keyOnly && !r.Columns[i].Key {
			out[i] = row.Value{}
		}
		if c.err != nil {
			return
		}
	}
}
