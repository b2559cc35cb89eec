package mysql

import (
	"slices"
	"time"

	"freshet/proxy"
)

// A session holds its link after an error or a warning, because the next
// statement may be SHOW WARNINGS. Most never ask. So that idle sessions cannot
// keep others from working, one that holds its link for nothing else gives it
// up when another session of its loop has waited for yieldAfter; should it then
// ask after all, it is told that the answer is gone.

const yieldAfter = 50 * time.Millisecond

// yielders are the sessions of one loop that would give up their link, oldest
// first. The slices are shared's, under its mutex; the sessions in one belong
// to the loop that is its key, and are only touched there.
type yielders map[*proxy.Loop][]*handler

// mayYield registers a session whose link is held for its diagnostics alone.
func (sh *shared) mayYield(h *handler) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.yield == nil {
		sh.yield = yielders{}
	}
	if list := sh.yield[h.s.Loop]; !slices.Contains(list, h) {
		sh.yield[h.s.Loop] = append(list, h)
	}
}

// stay takes a session off the list.
func (sh *shared) stay(h *handler) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if list := sh.yield[h.s.Loop]; len(list) > 0 {
		sh.yield[h.s.Loop] = slices.DeleteFunc(list, func(x *handler) bool { return x == h })
	}
}

// oldest takes the session that has held its link longest off the list.
func (sh *shared) oldest(l *proxy.Loop) *handler {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	list := sh.yield[l]
	if len(list) == 0 {
		return nil
	}
	h := list[0]
	sh.yield[l] = list[1:]
	return h
}

// waiting notes that a session waits for a link.
func (sh *shared) waiting(h *handler) {
	sh.tickets.Add(1)
	h.waits = sh.tickets.Load()
	ticket := h.waits
	var again func()
	again = func() {
		h.s.Post(func() {
			if h.waits != ticket {
				return
			}
			for other := sh.oldest(h.s.Loop); other != nil; other = sh.oldest(h.s.Loop) {
				if other.giveUp() {
					break
				}
			}
			time.AfterFunc(yieldAfter, again)
		})
	}
	time.AfterFunc(yieldAfter, again)
}

// arrived ends the wait.
func (sh *shared) arrived(h *handler) { h.waits = 0 }

// giveUp gives the link back without the last statement's diagnostics, if
// nothing else holds it and the session is at rest.
func (h *handler) giveUp() bool {
	if h.s.Over() || h.s.Link == nil || h.hold != holdDiagnostics || len(h.queue) > 0 || h.inTransaction() || h.s.Blocked {
		return false
	}
	h.hold = 0
	h.concluding = !h.conclude()
	h.past.yielded = true
	return true
}
