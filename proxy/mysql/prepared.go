package mysql

import (
	"bytes"
	"slices"
)

// prepared is a statement on a link: the twin of any number of equal
// statements of sessions. What a server makes of a statement depends on the
// types it was first executed with, so a twin is only ever executed with one
// set of them. A private one is of one statement alone, because a cursor and
// values sent ahead belong to one. (MySQL 9.7 also breaks the protocol when a
// statement that had a cursor is executed without one.)
type prepared struct {
	id    uint32
	owner *statement // nil when it may be shared
	typed bool       // it was executed: with types
	types []byte
	used  uint64
}

// maxPrepared bounds the statements of one link; servers allow 16382 together.
const maxPrepared = 100

// preparedSet is what is prepared on a link, by statement.name.
type preparedSet struct {
	byName map[string][]*prepared
	count  int
	clock  uint64
}

// get finds a statement's twin for an execution with these types.
func (p *preparedSet) get(s *statement, types []byte, private bool) *prepared {
	var found *prepared
	for _, pr := range p.byName[s.name()] {
		switch {
		case private && pr.owner == s, !private && pr.owner == nil && pr.typed && bytes.Equal(pr.types, types):
			found = pr
		case !private && pr.owner == nil && !pr.typed && found == nil:
			found = pr
		}
	}
	if found != nil {
		p.clock++
		found.used = p.clock
	}
	return found
}

// put adds a twin and returns the ids that have to be closed for it: that of
// one like it, or of the one used least recently.
func (p *preparedSet) put(name string, pr *prepared) (closed []uint32) {
	if p.byName == nil {
		p.byName = map[string][]*prepared{}
	}
	for _, old := range p.byName[name] {
		if old.owner == pr.owner && (pr.owner != nil || !old.typed) {
			closed = append(closed, old.id)
		}
	}
	if len(closed) == 0 && p.count >= maxPrepared {
		closed = append(closed, p.oldest())
	}
	for _, id := range closed {
		p.remove(id)
	}
	p.clock++
	p.count++
	pr.used = p.clock
	p.byName[name] = append(p.byName[name], pr)
	return closed
}

func (p *preparedSet) oldest() (id uint32) {
	used := p.clock + 1
	for _, list := range p.byName {
		for _, pr := range list {
			if pr.used < used {
				id, used = pr.id, pr.used
			}
		}
	}
	return id
}

func (p *preparedSet) remove(id uint32) {
	for name, list := range p.byName {
		i := slices.IndexFunc(list, func(pr *prepared) bool { return pr.id == id })
		if i < 0 {
			continue
		}
		p.count--
		if list = slices.Delete(list, i, i+1); len(list) == 0 {
			delete(p.byName, name)
		} else {
			p.byName[name] = list
		}
		return
	}
}

func (p *preparedSet) has(id uint32) bool {
	for _, list := range p.byName {
		for _, pr := range list {
			if pr.id == id {
				return true
			}
		}
	}
	return false
}
