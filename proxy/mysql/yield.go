package mysql

import (
	"slices"
	"time"

	"freshet/proxy"
)

// A session holds its link after an error, a warning or a write, because the
// next statement may be SHOW WARNINGS or SELECT ROW_COUNT(). Most never ask. So
// that idle sessions cannot keep others from working, one that holds its link
// for nothing else gives it up when another session has waited for
// yieldAfter (of another loop: ten times that), and after a write alone within countFor. Should it then ask for
// what nothing but the link can tell, it gets an error instead of a wrong
// answer.
const (
	yieldAfter = 2 * time.Millisecond
	countFor   = 500 * time.Millisecond
	// elsewhereAfter is after how many waits of yieldAfter, and how often, a
	// session of another loop is asked.
	elsewhereAfter = 10
)

// rest leaves the link with a session that holds it softly. It always tells
// that nothing more is awaited.
func (h *handler) rest() bool {
	h.up.mayYield(h)
	if h.hold != holdCount {
		return true
	}
	h.restUntil = time.Now().Add(countFor)
	if !h.resting {
		h.resting = true
		time.AfterFunc(countFor, func() { h.s.Post(h.rested) })
	}
	return true
}

// rested gives the link back if the session did nothing since.
func (h *handler) rested() {
	h.resting = false
	switch wait := time.Until(h.restUntil); {
	case h.hold != holdCount:
	case wait > 0:
		h.resting = true
		time.AfterFunc(wait, func() { h.s.Post(h.rested) })
	default:
		h.giveUp()
	}
}

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

// oldestElsewhere does so for the session of some other loop.
func (sh *shared) oldestElsewhere(l *proxy.Loop) *handler {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for other, list := range sh.yield {
		if other != l && len(list) > 0 {
			sh.yield[other] = list[1:]
			return list[0]
		}
	}
	return nil
}

// crowded says whether some session of the loop waits for a link.
func (sh *shared) crowded(l *proxy.Loop) bool {
	if sh.waits.Load() == 0 {
		return false
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.waiters[l] > 0
}

func (sh *shared) countWaiter(l *proxy.Loop, by int) {
	sh.waits.Add(int64(by))
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.waiters == nil {
		sh.waiters = map[*proxy.Loop]int{}
	}
	sh.waiters[l] += by
}

// waiting notes that a session waits for a link.
func (sh *shared) waiting(h *handler) {
	ticket := sh.tickets.Add(1)
	h.waits = ticket
	sh.countWaiter(h.s.Loop, 1)
	rounds := 0
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
			if rounds++; rounds%elsewhereAfter == 0 {
				// An idle link of another loop makes room for one of this.
				if other := sh.oldestElsewhere(h.s.Loop); other != nil {
					other.s.Post(func() { other.giveUp() })
				}
			}
			time.AfterFunc(yieldAfter, again)
		})
	}
	time.AfterFunc(yieldAfter, again)
}

// arrived ends the wait.
func (sh *shared) arrived(h *handler) {
	if h.waits != 0 {
		h.waits = 0
		sh.countWaiter(h.s.Loop, -1)
	}
}

// giveUp gives the link back without the last statement's diagnostics, if
// nothing else holds it and the session is at rest.
func (h *handler) giveUp() bool {
	if h.s.Over() || h.s.Link == nil || h.hold&^soft != 0 || len(h.queue) > 0 || h.inTransaction() && !h.between || h.s.Blocked {
		return false
	}
	h.past.yielded = h.hold&holdDiagnostics != 0
	h.hold = 0
	h.concluding = !h.conclude()
	return true
}
