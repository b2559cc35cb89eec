package proxy

import (
	"context"
	"net"
)

// Protocol is what a dialect brings to the core.
type Protocol interface {
	// NewHandler makes the dialect's state machine for an accepted client.
	// It runs on the session's loop. Session.Full tells that there is no room:
	// the handler then only says so in the dialect's words and closes.
	NewHandler(*Session) Handler

	// Dial opens and authenticates one link. It runs off the loop and may
	// block until ctx ends. key is the pool key the handler asked for; links
	// with equal keys are interchangeable. The connection returned must be a
	// *net.TCPConn or *net.UnixConn with no byte left unread (a TLS line goes
	// through Bridge). state becomes Link.State.
	Dial(ctx context.Context, u *Upstream, key string) (conn net.Conn, state any, err error)
}

// Handler is one client's session as its dialect sees it. Every method runs
// on the session's loop, one at a time; none may block.
type Handler interface {
	// Open is called once the client is connected (MySQL greets here).
	Open()

	// Data is given every byte the client sent that was not yet consumed and
	// returns how many it consumed. The bytes are valid during the call only.
	// A handler that is waiting for something (a plan, a link, a joined fill,
	// a console command) sets Session.Blocked, consumes nothing more, and is
	// called again after Session.Unblock.
	Data(in []byte) (consumed int)

	// LinkReady answers Session.AcquireLink: Session.Link is set, or err says
	// why there is none (the dial failed, or the wait for a free link ran out).
	LinkReady(err error)

	// Joined ends a wait that Miss began: the answer that another session's
	// fill brought, in the form the handler itself keeps answers, valid during
	// the call; or ok false, and the statement is to be forwarded.
	Joined(value []byte, ok bool)

	// LinkData is Data for bytes from the attached link.
	LinkData(in []byte) (consumed int)

	// LinkLost tells that the attached link was closed by the upstream;
	// Session.Link is nil already.
	LinkLost(err error)

	// Shutdown tells that the server is going down. A session that has nothing
	// under way and no transaction open says goodbye in its dialect's words
	// and closes; with now, any session does.
	Shutdown(now bool)

	// Closed is called last, when the client is gone. The core then takes the
	// link away: it is closed unless the handler released it before.
	Closed()
}
