package proxy

import (
	"slices"
	"sync"
	"time"
)

// budget divides --max-links among the loops' pools. Any pool may take what is
// free; one that finds nothing is hungry, and the next place that comes free is
// its. So that none is hungry for long, a pool that holds more than its equal
// share gives up each link that its sessions give back, and one that holds less
// the links that lie idle.
//
// Lock order: a pool's methods, on its loop, call these; these post to loops
// and call nothing of a pool's.
type budget struct {
	mu     sync.Mutex
	free   int
	hungry []*pool // oldest first, each once
}

// hungerPatience is how long a pool waits for others' surplus before it asks for
// their idle links: moving a link costs a login.
const hungerPatience = 50 * time.Millisecond

// take takes a place, or makes the pool hungry.
func (b *budget) take(p *pool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.free > 0 {
		b.free--
		return true
	}
	if !slices.Contains(b.hungry, p) {
		b.hungry = append(b.hungry, p)
		time.AfterFunc(hungerPatience, func() { b.beg(p) })
	}
	return false
}

// put gives a place back: to the pool that was hungry first.
func (b *budget) put() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.hungry) == 0 {
		b.free++
		return
	}
	p := b.hungry[0]
	b.hungry = b.hungry[1:]
	p.loop.post(func() {
		p.granted++
		p.fill()
	})
}

// wanted tells whether a pool is hungry.
func (b *budget) wanted() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.hungry) > 0
}

// sated takes a pool out of the line: nobody waits there any more.
func (b *budget) sated(p *pool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.hungry, p); i >= 0 {
		b.hungry = slices.Delete(b.hungry, i, i+1)
	}
}

// beg asks the other pools for an idle link, for as long as the pool is hungry.
func (b *budget) beg(p *pool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(b.hungry, p) {
		return
	}
	for _, l := range p.loop.server.allLoops() {
		if q := l.laneOf(p.upstream).pool; q != p {
			l.post(q.yield)
		}
	}
	time.AfterFunc(hungerPatience, func() { b.beg(p) })
}

// yield closes an idle link for the sake of another pool.
func (p *pool) yield() {
	if p.budget.wanted() {
		p.closeIdle()
	}
}

// discard drops a link that a session had, and sees to those that wait.
func (p *pool) discard(l *Link) {
	p.drop(l)
	p.fill()
}

// drop closes a link that nobody has. Its place is given back when the server
// sees it closed: see lost.
func (p *pool) drop(l *Link) {
	if _, ok := p.links[l]; !ok {
		return // it closed itself before
	}
	delete(p.links, l)
	p.leaving++
	l.leaving = true
	l.sock.Close()
}
