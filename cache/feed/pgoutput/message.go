// Package pgoutput decodes the messages of PostgreSQL's logical replication
// (manual, "Logical Replication Message Formats", protocol versions 1 and 2
// without streaming) and the two replication messages that carry them. It has
// no sockets and no state; every length is checked, and what is decoded stays
// a slice of the message.
package pgoutput

import (
	"fmt"

	"freshet/cache/feed/cursor"
	"freshet/cache/feed/row"
)

// done fails on bytes that nothing explains.
func done(c *cursor.Cursor) error {
	if c.Err == nil && len(c.Data) > 0 {
		return fmt.Errorf("pgoutput: %d bytes too many", len(c.Data))
	}
	return c.Err
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
	c := cursor.Cursor{Data: data}
	k := Keepalive{End: c.Big64()}
	c.Big64() // the server's clock
	k.Reply = c.U8() != 0
	return k, done(&c)
}

// ParseData returns the logical message inside XLogData, after its first byte.
func ParseData(data []byte) ([]byte, error) {
	c := cursor.Cursor{Data: data}
	c.Take(24) // start, end and clock: of no use in logical replication
	if c.Err == nil && len(c.Data) == 0 {
		return nil, cursor.ErrShort
	}
	return c.Data, c.Err
}

// Begin opens a transaction.
type Begin struct {
	Final uint64 // where its commit record starts
	XID   uint32
}

// ParseBegin decodes message 'B' after its first byte.
func ParseBegin(data []byte) (Begin, error) {
	c := cursor.Cursor{Data: data}
	b := Begin{Final: c.Big64()}
	c.Big64() // commit time
	b.XID = c.Big32()
	return b, done(&c)
}

// ParseCommit decodes message 'C' after its first byte: where the commit
// record ends.
func ParseCommit(data []byte) (end uint64, err error) {
	c := cursor.Cursor{Data: data}
	c.U8()
	c.Big64()
	end = c.Big64()
	c.Big64()
	return end, done(&c)
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
	c := cursor.Cursor{Data: data}
	r := &Relation{OID: c.Big32(), Schema: c.Text(), Name: c.Text(), Identity: c.U8()}
	for range c.Big16() {
		col := Column{Key: c.U8()&1 != 0, Name: c.Text(), Type: c.Big32()}
		c.Big32() // type modifier
		if c.Err != nil {
			return nil, c.Err
		}
		r.Columns = append(r.Columns, col)
	}
	return r, done(&c)
}

// ParseTruncate decodes message 'T' after its first byte.
func ParseTruncate(data []byte) ([]uint32, error) {
	c := cursor.Cursor{Data: data}
	count := c.Big32()
	c.U8() // CASCADE, RESTART IDENTITY
	if c.Err != nil || uint64(count)*4 != uint64(len(c.Data)) {
		return nil, cursor.ErrShort
	}
	oids := make([]uint32, count)
	for i := range oids {
		oids[i] = c.Big32()
	}
	return oids, done(&c)
}

// Change is message 'I', 'U' or 'D' before its rows are read.
type Change struct {
	Kind row.Kind
	OID  uint32
	rest []byte
}

// ParseChange decodes the head of a change; id is the message's first byte.
func ParseChange(id byte, data []byte) (Change, error) {
	c := cursor.Cursor{Data: data}
	ch := Change{OID: c.Big32()}
	ch.rest = c.Data
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
	return ch, c.Err
}

// Read fills the images, in the relation's column order. An old image that was
// sent as key holds only the columns of the replica identity; one that was not
// sent at all means that those columns did not change, and they are copied
// from the new image.
func (ch Change) Read(r *Relation, images *row.Images) error {
	images.Size(len(r.Columns))
	c := cursor.Cursor{Data: ch.rest}
	part := c.U8()
	old := part == 'O' || part == 'K'
	if old {
		if ch.Kind == row.Insert {
			return fmt.Errorf("pgoutput: insert with an old row")
		}
		readTuple(&c, r, images.Old, part == 'K')
		if ch.Kind == row.Delete {
			return done(&c)
		}
		part = c.U8()
	}
	if c.Err == nil && (part != 'N' || ch.Kind == row.Delete) {
		return fmt.Errorf("pgoutput: unexpected row %q", part)
	}
	readTuple(&c, r, images.New, false)
	if err := done(&c); err != nil {
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

func readTuple(c *cursor.Cursor, r *Relation, out []row.Value, keyOnly bool) {
	if n := int(c.Big16()); n != len(out) {
		c.Fail()
		return
	}
	for i := range out {
		switch kind := c.U8(); kind {
		case 'n':
			out[i] = row.Value{State: row.Null}
		case 'u':
			out[i] = row.Value{State: row.Unchanged}
		case 't', 'b':
			n := c.Big32()
			raw := c.Long(uint64(n))
			out[i] = row.Value{State: row.Present, Raw: raw}
			if kind == 'b' { // not asked for: nothing here reads binary values
				out[i] = row.Value{State: row.Altered}
			}
		default:
			c.Fail()
		}
		if keyOnly && !r.Columns[i].Key {
			out[i] = row.Value{}
		}
		if c.Err != nil {
			return
		}
	}
}
