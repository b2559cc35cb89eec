// Package side keeps a connection to a server beside a change stream, for
// questions. It knows nothing of the protocol on it: what a connection is and
// how one is opened, judged and ended is its user's.
package side

import (
	"context"
	"errors"
)

// ErrClosed is what Use returns once the line was closed, and the cause of the
// end of contexts that Close cancelled.
var ErrClosed = errors.New("the line is closed")

// Fate is what becomes of a connection after an error.
type Fate int

const (
	// Keep: the error is an answer, the connection is as good as before.
	Keep Fate = iota
	// Drop: the error is an answer, but nobody shall use the connection again.
	Drop
	// Broken: there was no answer. A connection that was at rest before may
	// have been broken all the time, so the question is put once more on a new
	// one.
	Broken
)

// Kind says how connections of type C are treated. Every function is required.
type Kind[C any] struct {
	// Dial opens a connection and names the server at its other end. It
	// returns soon after its context ended.
	Dial func(context.Context) (conn C, server string, err error)
	// Server is the one that is wanted; "" while any will do.
	Server func() string
	// Elsewhere is told that Dial has reached another server, and words the
	// error.
	Elsewhere func(server string) error
	// Judge is asked after an error of the user's, in the user's turn.
	Judge func(C, error) Fate
	// Interrupt makes what runs on the connection return soon. It alone is
	// called from another goroutine than the user's, while the user runs, so it
	// must touch nothing but what is safe then: the socket.
	Interrupt func(C)
	// Close ends a connection that nobody uses.
	Close func(C)
}

// Line is one connection, opened when it is first needed, and anew after it
// broke. Its methods are for any goroutine. One user has it at a time; the
// others wait for their turn.
//
// A connection is closed in a turn only. Closing it from outside while it is
// used is a race with all the connection's own state, which neither client
// library guards; so whoever wants it gone interrupts the user, which touches
// the socket alone, and waits for the turn.
type Line[C any] struct {
	kind Kind[C]
	turn chan struct{} // holds a token while somebody has the line

	// life ends at Close.
	life context.Context
	end  context.CancelFunc

	// In a turn only.
	open   bool
	conn   C
	server string
}

// New makes a line; nothing is dialled yet.
func New[C any](kind Kind[C]) *Line[C] {
	l := &Line[C]{kind: kind, turn: make(chan struct{}, 1)}
	l.life, l.end = context.WithCancel(context.Background())
	return l
}

// Use waits for the line and runs do on its connection, with a context that
// ends with ctx or at Close. The connection is do's until it returns. Errors
// are do's, Dial's, Elsewhere's, ctx's or ErrClosed. After Broken on a
// connection that was open before, do runs a second time.
func (l *Line[C]) Use(ctx context.Context, do func(context.Context, C) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.life, func() { cancel(ErrClosed) })()
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-l.turn }()
	// Both may have been ready, and after Close's turn nothing may be opened.
	if l.life.Err() != nil {
		return ErrClosed
	}
	if l.open && !l.wants(l.server) {
		l.drop() // the stream has gone to another server
	}
	old := l.open
	for {
		if err := l.ready(ctx); err != nil {
			return err
		}
		err := l.run(ctx, do)
		if err == nil {
			return nil
		}
		fate := Drop // what was interrupted is of no use
		if ctx.Err() == nil {
			fate = l.kind.Judge(l.conn, err)
		}
		if fate != Keep {
			l.drop()
		}
		if fate != Broken || !old {
			return err
		}
		old = false
	}
}

// ready opens the connection unless it is open.
func (l *Line[C]) ready(ctx context.Context) error {
	if l.open {
		return nil
	}
	conn, server, err := l.kind.Dial(ctx)
	switch {
	case err != nil && l.life.Err() != nil:
		return ErrClosed
	case err != nil:
		return err
	case !l.wants(server):
		l.kind.Close(conn)
		return l.kind.Elsewhere(server)
	}
	l.open, l.conn, l.server = true, conn, server
	return nil
}

func (l *Line[C]) wants(server string) bool {
	want := l.kind.Server()
	return want == "" || want == server
}

// run runs do; ctx ending interrupts it. When run returns, Interrupt has
// returned or is never called: the connection may be closed.
func (l *Line[C]) run(ctx context.Context, do func(context.Context, C) error) error {
	conn, interrupted := l.conn, make(chan struct{})
	release := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		l.kind.Interrupt(conn)
	})
	err := do(ctx, conn)
	if release() {
		return err
	}
	<-interrupted
	return context.Cause(ctx) // err, if there is one, only tells of the interruption
}

// drop ends the connection. In a turn.
func (l *Line[C]) drop() {
	if !l.open {
		return
	}
	conn := l.conn
	var none C
	l.open, l.conn, l.server = false, none, ""
	l.kind.Close(conn)
}

// Close interrupts whoever has the line, waits until they are done, and ends
// the connection. Nobody gets the line afterwards. It may be called again.
func (l *Line[C]) Close() {
	l.end()
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	l.drop()
}
