package binlog

import "freshet/cache/feed/cursor"

// packed reads a length-encoded integer (MySQL manual, "Protocol::LengthEncodedInteger").
func packed(c *cursor.Cursor) uint64 {
	switch b := c.U8(); b {
	case 0xfc:
		return uint64(c.Little16())
	case 0xfd:
		return c.Little(3)
	case 0xfe:
		return c.Little64()
	case 0xfb, 0xff:
		c.Fail()
		return 0
	default:
		return uint64(b)
	}
}
