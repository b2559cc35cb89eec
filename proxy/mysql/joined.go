package mysql

import (
	"bytes"

	"freshet/cache"
	"freshet/proxy"
)

// Joined implements proxy.Handler.
func (h *handler) Joined(value []byte, ok bool) {
	if !ok {
		return
	}
	h.answerKept(value)
	h.stage.answered = true
	if !h.up.stored(h.s, h.stage.key, value) {
		h.s.Wrote()
	}
}

// stored says whether the answer to a key that a session was just given is also
// the one in the store. It need not be: a fill that another took the lead from
// serves those who joined it and is not kept, and the other, though it began
// later, may have read an older row. A session that then hit what the other
// stored would see time go back, so it must not hit before the feed has caught
// up with now.
func (sh *shared) stored(s *proxy.Session, key, value []byte) bool {
	r := sh.reader(s)
	r.Enter()
	defer r.Leave()
	hit, found := r.Get(key)
	return found == cache.Found && bytes.Equal(hit.Value, value)
}

// reader is the loop's own reader for that.
func (sh *shared) reader(s *proxy.Session) *cache.Reader {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.readers == nil {
		sh.readers = map[*proxy.Loop]*cache.Reader{}
	}
	r := sh.readers[s.Loop]
	if r == nil {
		r = s.Upstream.Store.NewReader()
		sh.readers[s.Loop] = r
	}
	return r
}
