package proxy

import (
	"container/list"
	"errors"
	"sync"
	"time"
)

// Bounds of the TLS handshakes under way. One takes a goroutine and some 40 KiB
// until it is done; what it computes (a signature, some 0.1 to 1 ms) would take
// the loops' processors from them if all computed at once.
const (
	maxHandshakes = 256
	maxComputing  = 2 // the processors that serve leaves beside the loops
	handshakeTime = 10 * time.Second
	// While others stand in line, a client has hurryTime for each answer.
	hurryTime  = time.Second
	hurryEvery = 100 * time.Millisecond
)

var errHandshakeTime = errors.New("the client did not finish the TLS handshake in time")

// handshakes are those of all loops. Past the bound clients stand in line,
// which costs what they have sent so far; those that answer are not turned out
// for those that come, but those that are silent are.
type handshakes struct {
	turns chan struct{} // a place for each that may compute
	most  int
	// time for the whole of one, and for one answer while others stand in line.
	time, hurryTime time.Duration

	mu       sync.Mutex
	running  map[*secure]struct{}
	line     list.List // of *secure
	hurrying bool
}

func newHandshakes(most int) *handshakes {
	return &handshakes{turns: make(chan struct{}, maxComputing), most: most, time: handshakeTime, hurryTime: hurryTime,
		running: map[*secure]struct{}{}}
}

// begin starts a handshake, or lines it up.
func (h *handshakes) begin(t *secure) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.running) < h.most {
		h.start(t)
		return
	}
	t.place = h.line.PushBack(t)
	if !h.hurrying {
		h.hurrying = true
		time.AfterFunc(hurryEvery, h.hurry)
	}
}

func (h *handshakes) start(t *secure) {
	h.running[t] = struct{}{}
	go h.run(t)
}

// run is the handshake's goroutine.
func (h *handshakes) run(t *secure) {
	late := time.AfterFunc(h.time, func() { t.line.end(errHandshakeTime) })
	h.turns <- struct{}{}
	err := t.shake()
	<-h.turns
	late.Stop()
	h.done(t)
	t.sock.loop.post(func() { t.shaken(err) })
}

// done makes room for the next in line.
func (h *handshakes) done(t *secure) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.running, t)
	for len(h.running) < h.most && h.line.Len() > 0 {
		next := h.line.Remove(h.line.Front()).(*secure)
		next.place = nil
		h.start(next)
	}
}

// leave takes a client out of the line that has gone.
func (h *handshakes) leave(t *secure) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.place != nil {
		h.line.Remove(t.place)
		t.place = nil
	}
}

// hurry turns out those that are silent, as long as there is a line.
func (h *handshakes) hurry() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.line.Len() == 0 {
		h.hurrying = false
		return
	}
	for t := range h.running {
		if t.line.silent() > h.hurryTime {
			t.line.end(errHandshakeTime)
		}
	}
	time.AfterFunc(hurryEvery, h.hurry)
}
