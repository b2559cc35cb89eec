package postgres

import "fmt"

// ReplyKind is what was sent upstream, as far as the replies to it go.
type ReplyKind uint8

const (
	ReplyParse        ReplyKind = iota // ParseComplete
	ReplyBind                          // BindComplete
	ReplyDescribe                      // ParameterDescription (of a statement), then RowDescription or NoData
	ReplyExecute                       // rows or a COPY, then CommandComplete, PortalSuspended or EmptyQueryResponse
	ReplyClose                         // CloseComplete
	ReplySync                          // ReadyForQuery
	ReplyQuery                         // anything, then ReadyForQuery
	ReplyFunctionCall                  // FunctionCallResponse, then ReadyForQuery
	// ReplyCopyEnd is CopyDone or CopyFail: no reply of its own, but it says
	// which messages the server read while it was copying in.
	ReplyCopyEnd
)

func (k ReplyKind) String() string {
	return [...]string{"Parse", "Bind", "Describe", "Execute", "Close", "Sync", "Query", "FunctionCall", "CopyEnd"}[k]
}

// Extended says whether an error makes the server skip to the next Sync.
func (k ReplyKind) Extended() bool { return k <= ReplyClose }

// Action is what is to be done with the replies to one message.
type Action uint8

const (
	// ActionForward: they go to the client.
	ActionForward Action = iota
	// ActionSwallow: they were not asked for by the client, but its own
	// messages rest on them: only an error is forwarded, in their place.
	ActionSwallow
	// ActionHide: nothing is forwarded, an error neither.
	ActionHide
	// ActionReplace: the message was sent to make the server fail where the
	// client's own would have; the owner tells the client the right error.
	ActionReplace
)

// Expected is one message whose replies are still to come. Ref is the owner's.
type Expected[T any] struct {
	Kind   ReplyKind
	Action Action
	Ref    T
}

// Reply says what one message from the server is.
type Reply[T any] struct {
	Expected[T]
	// Owned is false for a message that answers nothing: a notice, a changed
	// setting or a notification while nothing is expected, or the server's
	// farewell. Expected is then zero.
	Owned bool
	// Async marks notices, settings and notifications, which may come at any
	// time; Expected then only tells during what.
	Async bool
	// Last: the message completes its answer.
	Last bool
}

// UnexpectedReplyError says that the server's messages do not fit what was
// sent; nothing more can be said of the connection.
type UnexpectedReplyError struct {
	Type    byte
	During  ReplyKind
	Nothing bool // nothing was expected
}

func (e *UnexpectedReplyError) Error() string {
	if e.Nothing {
		return fmt.Sprintf("postgres: unexpected message %q from the server: nothing was asked", e.Type)
	}
	return fmt.Sprintf("postgres: unexpected message %q from the server in the answer to %v", e.Type, e.During)
}

// Replies is the queue of answers that one connection to a server still owes,
// in order. It follows the server's own rules for what it reads and what it
// ignores: after an error in the extended protocol everything up to a Sync is
// dropped, a simple Query too; during COPY FROM STDIN Sync and Flush are
// ignored, and any other message ends the COPY with an error.
type Replies[T any] struct {
	// OnDrop is told of each expected message that the server will not answer,
	// the newest first, so that what was taken for done can be taken back.
	OnDrop func(Expected[T])

	items    []Expected[T] // from head on
	head     int
	skipping bool // the server ignores everything until a Sync
	copying  bool // the server reads COPY data for the first item
}

// Push notes a message as sent. It tells false when the server
// will not answer it: it is skipping, or reads it as part of a COPY.
func (q *Replies[T]) Push(kind ReplyKind, action Action, ref T) bool {
	switch {
	case q.skipping && kind != ReplySync:
		return false
	case q.copying:
		if kind != ReplySync {
			q.copying = false
		}
		return false
	case kind == ReplyCopyEnd && q.Len() == 0:
		return false
	}
	q.skipping = false
	q.items = append(q.items, Expected[T]{kind, action, ref})
	return true
}

// Len is how many messages are not yet completely answered.
func (q *Replies[T]) Len() int { return len(q.items) - q.head }

// Skipping tells whether the server waits for a Sync after an error.
func (q *Replies[T]) Skipping() bool { return q.skipping }

// Copying tells whether the server reads COPY data now.
func (q *Replies[T]) Copying() bool { return q.copying }

// Idle: nothing is expected and the server would take any message.
func (q *Replies[T]) Idle() bool { return q.Len() == 0 && !q.skipping && !q.copying }

// Step takes the type of the server's next message and tells what it answers.
func (q *Replies[T]) Step(kind byte) (Reply[T], error) {
	switch kind {
	case TypeNoticeResponse, TypeParameterStatus, TypeNotificationResponse:
		r := Reply[T]{Async: true, Owned: q.Len() > 0}
		if r.Owned {
			r.Expected = q.items[q.head]
		}
		return r, nil
	}
	if q.Len() == 0 {
		if kind == TypeErrorResponse {
			return Reply[T]{}, nil
		}
		return Reply[T]{}, &UnexpectedReplyError{Type: kind, Nothing: true}
	}
	first := q.items[q.head]
	last, ok := step(first.Kind, kind)
	if !ok {
		return Reply[T]{}, &UnexpectedReplyError{Type: kind, During: first.Kind}
	}
	r := Reply[T]{Expected: first, Owned: true, Last: last}
	if last {
		q.pop()
	}
	switch kind {
	case TypeCopyInResponse:
		q.startCopy()
	case TypeErrorResponse:
		q.copying = false
		if first.Kind.Extended() {
			q.skip()
		}
	case TypeReadyForQuery:
		q.copying = false
	}
	q.dropCopyEnds()
	return r, nil
}

// step says whether a message may come in the answer to what was sent, and
// whether it ends it.
func step(sent ReplyKind, kind byte) (last, ok bool) {
	if kind == TypeErrorResponse {
		return sent.Extended(), true // the others still get their ReadyForQuery
	}
	switch sent {
	case ReplyParse:
		return true, kind == TypeParseComplete
	case ReplyBind:
		return true, kind == TypeBindComplete
	case ReplyClose:
		return true, kind == TypeCloseComplete
	case ReplySync:
		return true, kind == TypeReadyForQuery
	case ReplyDescribe:
		switch kind {
		case TypeParameterDescription:
			return false, true
		case TypeRowDescription, TypeNoData:
			return true, true
		}
	case ReplyExecute:
		switch kind {
		case TypeDataRow, TypeCopyInResponse, TypeCopyOutResponse, TypeCopyBothResponse, TypeCopyData, TypeCopyDone:
			return false, true
		case TypeCommandComplete, TypePortalSuspended, TypeEmptyQueryResponse:
			return true, true
		}
	case ReplyQuery:
		switch kind {
		case TypeReadyForQuery:
			return true, true
		case TypeRowDescription, TypeDataRow, TypeCommandComplete, TypeEmptyQueryResponse,
			TypeCopyInResponse, TypeCopyOutResponse, TypeCopyBothResponse, TypeCopyData, TypeCopyDone:
			return false, true
		}
	case ReplyFunctionCall:
		switch kind {
		case TypeFunctionCallResponse:
			return false, true
		case TypeReadyForQuery:
			return true, true
		}
	}
	return false, false
}

// startCopy looks at what was sent behind the message that turned out to be a
// COPY FROM STDIN: the server reads it as part of the COPY. Syncs vanish; a
// CopyEnd ends it well, anything else with an error.
func (q *Replies[T]) startCopy() {
	q.copying = true
	for q.Len() > 1 {
		i := q.head + 1
		next := q.items[i]
		q.items = append(q.items[:i], q.items[i+1:]...)
		if next.Kind != ReplyCopyEnd {
			q.drop(next)
		}
		if next.Kind != ReplySync {
			q.copying = false
			return
		}
	}
}

// skip drops everything up to the next Sync.
func (q *Replies[T]) skip() {
	end := q.head
	for end < len(q.items) && q.items[end].Kind != ReplySync {
		end++
	}
	q.skipping = end == len(q.items)
	for i := end - 1; i >= q.head; i-- {
		q.drop(q.items[i])
	}
	q.head = end
	q.compact()
}

// DropAll forgets everything: the connection is gone.
func (q *Replies[T]) DropAll() {
	for i := len(q.items) - 1; i >= q.head; i-- {
		q.drop(q.items[i])
	}
	q.head = len(q.items)
	q.compact()
	q.skipping, q.copying = false, false
}

func (q *Replies[T]) drop(e Expected[T]) {
	if q.OnDrop != nil {
		q.OnDrop(e)
	}
}

// dropCopyEnds takes off the ends of COPYs that never began: the server
// ignores them.
func (q *Replies[T]) dropCopyEnds() {
	for q.Len() > 0 && q.items[q.head].Kind == ReplyCopyEnd {
		q.pop()
	}
}

func (q *Replies[T]) pop() Expected[T] {
	e := q.items[q.head]
	q.items[q.head] = Expected[T]{}
	q.head++
	q.compact()
	return e
}

func (q *Replies[T]) compact() {
	switch {
	case q.head == len(q.items):
		q.items, q.head = q.items[:0], 0
	case q.head > 64 && q.head > len(q.items)/2:
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
}

// Head is the message whose replies come next.
func (q *Replies[T]) Head() (Expected[T], bool) {
	if q.Len() == 0 {
		return Expected[T]{}, false
	}
	return q.items[q.head], true
}
