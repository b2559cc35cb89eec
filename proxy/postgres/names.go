package postgres

// names are the session's prepared statements by the client's names. Messages
// are sent ahead of their answers, so a name has what is confirmed and, on top
// of it, the changes that are under way: each is confirmed, or cancelled when
// the server drops its message, and an early one that is cancelled must not
// take a later one along.
//
// What a name stands for after a change that is under way is sure only within
// the batch that made it: if the change is dropped, so is the rest of the batch.
type names struct {
	unnamed slot
	named   map[string]*slot
	batch   uint64 // counts Syncs and simple queries sent
}

// slot is one name.
type slot struct {
	now     *statement // confirmed; nil: there is none
	pending []*change  // oldest first
}

// change is one that is under way.
type change struct {
	name  string
	to    *statement // nil: the name is taken away
	batch uint64
}

// last is what the name will be once all is answered well.
func (s *slot) last() *statement {
	if n := len(s.pending); n > 0 {
		return s.pending[n-1].to
	}
	return s.now
}

// get finds a statement, as it will be for a message sent now.
func (n *names) get(name []byte) *statement {
	if len(name) == 0 {
		return n.unnamed.last()
	}
	if s := n.named[string(name)]; s != nil {
		return s.last()
	}
	return nil
}

// sure tells whether what get says of a name is bound to be so when the server
// comes to a message sent now.
func (n *names) sure(name []byte) bool {
	s := &n.unnamed
	if len(name) > 0 {
		if s = n.named[string(name)]; s == nil {
			return true
		}
	}
	last := len(s.pending) - 1
	return last < 0 || s.pending[last].batch == n.batch
}

func (n *names) slot(name string) *slot {
	if name == "" {
		return &n.unnamed
	}
	s := n.named[name]
	if s == nil {
		s = &slot{}
		if n.named == nil {
			n.named = map[string]*slot{}
		}
		n.named[name] = s
	}
	return s
}

// set changes a name at once; nothing may be under way.
func (n *names) set(name string, to *statement) {
	n.slot(name).now = to
	n.tidy(name)
}

// change begins a change.
func (n *names) change(name string, to *statement) *change {
	c := &change{name, to, n.batch}
	s := n.slot(name)
	s.pending = append(s.pending, c)
	return c
}

// confirm ends a change: it has come true.
func (n *names) confirm(c *change) {
	if s := n.slot(c.name); s.remove(c) {
		s.now = c.to
	}
	n.tidy(c.name)
}

// cancel ends a change: it never was.
func (n *names) cancel(c *change) {
	n.slot(c.name).remove(c)
	n.tidy(c.name)
}

// tidy drops a slot that says nothing.
func (n *names) tidy(name string) {
	if s := n.named[name]; name != "" && s != nil && s.now == nil && len(s.pending) == 0 {
		delete(n.named, name)
	}
}

func (s *slot) remove(c *change) bool {
	for i, p := range s.pending {
		if p == c {
			s.pending = append(s.pending[:i], s.pending[i+1:]...)
			return true
		}
	}
	return false
}

// all calls f with each named statement.
func (n *names) all(f func(*statement)) {
	for _, s := range n.named {
		if last := s.last(); last != nil {
			f(last)
		}
	}
}

// clear begins to take all named statements away, those too of which it is not
// yet known that they are there.
func (n *names) clear() []*change {
	var changes []*change
	for name := range n.named {
		changes = append(changes, n.change(name, nil))
	}
	return changes
}

func (n *names) confirmAll(cs []*change) {
	for _, c := range cs {
		n.confirm(c)
	}
}

func (n *names) cancelAll(cs []*change) {
	for _, c := range cs {
		n.cancel(c)
	}
}
