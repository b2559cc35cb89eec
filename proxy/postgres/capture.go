package postgres

import (
	"freshet/cache"
	pg "freshet/protocol/postgres"
	"freshet/proxy"
)

// capture takes one answer down for the store while it passes to the client.
// Only a whole and plain answer is kept: one description if one was asked for,
// rows, one CommandComplete, and an idle server at the end. An error, a notice,
// a changed setting, a COPY or a second result ends it.
type capture struct {
	session   *proxy.Session
	fill      *cache.Fill
	described bool // RowDescription comes first

	sawDescription, complete, spoilt, ended bool
}

// message is shown each message of the answer.
func (c *capture) message(kind byte, frame []byte) {
	if c.ended || c.spoilt {
		return
	}
	switch {
	case c.complete:
		c.spoilt = true
	case kind == pg.TypeRowDescription && c.described && !c.sawDescription:
		c.sawDescription = true
	case kind == pg.TypeDataRow && c.described == c.sawDescription:
	case kind == pg.TypeCommandComplete && c.described == c.sawDescription:
		c.complete = true
	default:
		c.spoilt = true
	}
	if c.spoilt {
		c.end(false)
		return
	}
	if !c.fill.Append(frame) {
		c.spoilt = true
		c.end(false)
	}
}

// spoil: the answer is not to be kept.
func (c *capture) spoil() {
	c.spoilt = true
	c.end(false)
}

// end is called when the answer is complete (ok) or will never be; the first
// call counts.
func (c *capture) end(ok bool) {
	if c.ended {
		return
	}
	c.ended = true
	if ok && c.complete && !c.spoilt {
		c.session.Keep(c.fill)
		return
	}
	c.fill.Abandon()
}
