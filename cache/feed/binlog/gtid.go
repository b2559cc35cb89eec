package binlog

import (
	"encoding/hex"
	"fmt"
	"math/bits"

	"freshet/cache/feed/cursor"
)

// GTID is one MySQL transaction's name. Source is the server's UUID, 32
// lower-case hexadecimal digits without hyphens, then ":tag" when it has one.
type GTID struct {
	Source string
	Number int64
}

// String writes the GTID for people.
func (g GTID) String() string { return fmt.Sprintf("%s:%d", g.Source, g.Number) }

// ParseGTID decodes a MySQL GTID event, tagged or not.
func ParseGTID(t Type, body []byte) (GTID, error) {
	c := cursor.Cursor{Data: body}
	if t == TaggedGTIDEvent {
		return parseTagged(c)
	}
	c.Take(1) // flags
	source := c.Take(16)
	number := int64(c.Little64())
	if c.Err != nil {
		return GTID{}, c.Err
	}
	return GTID{Source: hex.EncodeToString(source), Number: number}, nil
}

// Fields of a tagged GTID event, in mysql::serialization's numbering.
const (
	taggedFlags  = 0
	taggedUUID   = 1
	taggedNumber = 2
	taggedTag    = 3
)

// parseTagged decodes the event of MySQL 8.3 and later (PageLibsMysqlSerialization
// in the source documentation): version, size, last field that may not be
// ignored, then fields, each after its number, in rising order.
func parseTagged(c cursor.Cursor) (GTID, error) {
	varUint(&c)
	varUint(&c)
	varUint(&c)
	var uuid [16]byte
	var g GTID
	tag := ""
	seen := 0
	for last := -1; c.Err == nil && seen < 4 && len(c.Data) > 0; {
		field := int(varUint(&c))
		if field <= last || field > taggedTag {
			break
		}
		last, seen = field, seen+1
		switch field {
		case taggedFlags:
			varUint(&c)
		case taggedUUID:
			for i := range uuid {
				v := varUint(&c)
				if v > 0xff {
					return GTID{}, cursor.ErrShort
				}
				uuid[i] = byte(v)
			}
		case taggedNumber:
			g.Number = varInt(&c)
		case taggedTag:
			tag = string(c.Long(varUint(&c)))
		}
	}
	if c.Err != nil || seen < 4 {
		return GTID{}, cursor.ErrShort
	}
	g.Source = hex.EncodeToString(uuid[:])
	if tag != "" {
		g.Source += ":" + tag
	}
	return g, nil
}

// varUint reads mysql::serialization's number: as many low one bits as bytes
// follow, a zero bit, then the value, little-endian.
func varUint(c *cursor.Cursor) uint64 {
	if len(c.Data) == 0 {
		c.Fail()
		return 0
	}
	extra := bits.TrailingZeros8(^c.Data[0])
	if extra == 8 {
		c.Take(1)
		return c.Little64()
	}
	v := c.Little(extra + 1)
	return v >> (extra + 1)
}

// varInt reads the signed form: the lowest bit of the value is its sign.
func varInt(c *cursor.Cursor) int64 {
	v := varUint(c)
	if v&1 != 0 {
		return -int64(v>>1) - 1
	}
	return int64(v >> 1)
}

// Flags of a MariaDB GTID event.
const (
	MariaStandalone  byte = 1   // one event follows, with no commit after it
	MariaPreparedXA  byte = 64  // ends in an XA PREPARE event
	MariaCompletedXA byte = 128 // XA COMMIT or XA ROLLBACK
)

// MariaGTID is MariaDB's name of a transaction and how its events end.
type MariaGTID struct {
	Domain   uint32
	Sequence uint64
	Flags    byte
}

// ParseMariaGTID decodes a MariaDB GTID event.
func ParseMariaGTID(body []byte) (MariaGTID, error) {
	c := cursor.Cursor{Data: body}
	g := MariaGTID{Sequence: c.Little64(), Domain: c.Little32(), Flags: c.U8()}
	return g, c.Err
}

// XA is an XA transaction's identifier as statements write it.
type XA struct {
	OnePhase bool // ends the transaction at once, as a commit
	ID       string
}

// ParseXAPrepare decodes an XA prepare event.
func ParseXAPrepare(body []byte) (XA, error) {
	c := cursor.Cursor{Data: body}
	x := XA{OnePhase: c.U8() != 0}
	format := c.Little32()
	global := int(c.Little32())
	branch := int(c.Little32())
	g, b := c.Take(global), c.Take(branch)
	if c.Err != nil {
		return XA{}, c.Err
	}
	x.ID = XAName(format, g, b)
	return x, nil
}

// XAName is the key under which a prepared transaction is remembered.
func XAName(format uint32, global, branch []byte) string {
	return fmt.Sprintf("X'%x',X'%x',%d", global, branch, format)
}
