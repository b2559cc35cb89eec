package feed

import (
	"sync"
	"sync/atomic"
)

// awaiting are those who wait for a ticket to be proven. The zero value is
// ready.
type awaiting struct {
	// some is how many there are. It is read after the ticket was published, and
	// raised before the ticket is read, so nobody is overlooked by both sides.
	some atomic.Int32
	mu   sync.Mutex
	list []await
}

type await struct {
	ticket uint64
	then   func()
}

// Await calls then once ProvenTicket() >= ticket, and has a probe asked now. It
// may be called before Await returns, by any goroutine, and must not block. It
// may never be called: the stream can stand still. So whoever waits bounds it.
func (f *Feed) Await(ticket uint64, then func()) {
	f.awaiting.add(await{ticket, then})
	if f.ProvenTicket() >= ticket {
		f.awaiting.proven(f.ProvenTicket())
		return
	}
	f.Kick()
}

func (a *awaiting) add(w await) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, w)
	a.some.Add(1)
}

// proven tells those who waited for the ticket or an earlier one.
func (a *awaiting) proven(ticket uint64) {
	if a.some.Load() == 0 {
		return
	}
	for _, w := range a.take(ticket) {
		w.then()
	}
}

func (a *awaiting) take(ticket uint64) (due []await) {
	a.mu.Lock()
	defer a.mu.Unlock()
	left := a.list[:0]
	for _, w := range a.list {
		if w.ticket <= ticket {
			due = append(due, w)
		} else {
			left = append(left, w)
		}
	}
	clear(a.list[len(left):])
	a.list = left
	a.some.Add(-int32(len(due)))
	return due
}
