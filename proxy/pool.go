package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrPoolTimeout says that no link came free in time.
var ErrPoolTimeout = errors.New("no upstream connection came free in time")

// pool is one loop's links to one upstream. A link never leaves its loop, so
// a forwarded statement costs one hop; what moves between loops is the room for
// one, see budget.
type pool struct {
	loop     *Loop
	upstream *Upstream
	budget   *budget
	share    int // an equal one of --max-links
	granted  int // places that were handed over and not used yet
	leaving  int // links being closed whose places are not given back yet

	idle    map[string][]*Link // newest last
	links   map[*Link]struct{}
	dialing int
	paused  bool       // no dialling for now, see crowded
	waiters []*Session // oldest first; each has wantKey set
	nextID  uint64

	opened, idleCount, busyCount atomic.Int64 // for SHOW and metrics
}

func newPool(l *Loop, u *Upstream) *pool {
	return &pool{loop: l, upstream: u, budget: &u.budget, share: l.server.config.linkShare(l.index), idle: map[string][]*Link{}, links: map[*Link]struct{}{}}
}

// acquire gives the session a link with its wantKey: at once, or by LinkReady.
func (p *pool) acquire(s *Session) bool {
	s.wantGeneration = p.upstream.Generation()
	for list := p.idle[s.wantKey]; len(list) > 0; list = p.idle[s.wantKey] {
		l := list[len(list)-1]
		p.idle[s.wantKey] = list[:len(list)-1]
		p.idleCount.Add(-1)
		if l.generation >= s.wantGeneration {
			p.give(l, s)
			return true
		}
		p.drop(l)
	}
	p.waiters = append(p.waiters, s)
	s.waitTimer = time.AfterFunc(p.upstream.linkWait, func() {
		p.loop.post(func() { p.timeout(s) })
	})
	p.fill()
	return false
}

// fill dials for waiters while there is room, making room by closing idle
// links of other keys.
func (p *pool) fill() {
	for p.dialing < len(p.waiters) && !p.paused {
		if !p.place() {
			return
		}
		p.dialing++
		go p.dial(p.waiters[p.dialing-1].wantKey)
	}
	if p.dialing >= len(p.waiters) {
		p.budget.sated(p)
		for ; p.granted > 0; p.granted-- {
			p.budget.put()
		}
	}
}

// place takes room for one more link.
func (p *pool) place() bool {
	if p.granted > 0 {
		p.granted--
		return true
	}
	if p.budget.take(p) {
		return true
	}
	// An idle link of another key gives way. Its place comes when it is closed,
	// unless a pool was hungry before.
	if p.dialing+p.leaving < len(p.waiters) {
		p.closeIdle()
	}
	return false
}

// closeIdle closes one idle link and tells whether there was one.
func (p *pool) closeIdle() bool {
	for key, list := range p.idle {
		if len(list) == 0 {
			continue
		}
		l := list[0]
		p.idle[key] = list[1:]
		p.idleCount.Add(-1)
		p.drop(l)
		return true
	}
	return false
}

// dial runs off the loop. A link is opened and authenticated here and then
// enrolled; its first event is arrived.
func (p *pool) dial(key string) {
	ctx, cancel := context.WithTimeout(context.Background(), p.upstream.ConnectTimeout)
	defer cancel()
	generation := p.upstream.Generation() // before the server sets the session up
	conn, state, err := p.upstream.Protocol.Dial(ctx, p.upstream, key)
	p.opened.Add(1)
	p.loop.post(func() { p.dialed(key, generation, conn, state, err) })
}

func (p *pool) dialed(key string, generation uint64, conn net.Conn, state any, err error) {
	if err != nil {
		p.dialing--
		p.budget.put()
		if upstreamFull(err) && (len(p.links) > 0 || p.dialing > 0) {
			p.crowded()
			return
		}
		p.refuse(key, err)
		return
	}
	p.nextID++
	l := &Link{Key: key, State: state, generation: generation, pool: p, ID: p.nextID<<8 | uint64(p.loop.index)}
	l.sock = &Socket{loop: p.loop, owner: l, fd: -1}
	p.links[l] = struct{}{}
	if err := p.loop.enroll(conn, l.sock); err != nil {
		p.dialing--
		delete(p.links, l)
		p.budget.put()
		p.refuse(key, fmt.Errorf("enrol link: %w", err))
	}
}

// crowdedPause is how long a pool does without new links after the upstream
// said that it takes no more.
const crowdedPause = 250 * time.Millisecond

// crowded: the upstream takes no more connections, but some of its are ours.
// The waiters stay in line for those; idle ones that nobody in line can use
// give way.
func (p *pool) crowded() {
	p.closeIdle()
	if p.paused {
		return
	}
	p.paused = true
	time.AfterFunc(crowdedPause, func() {
		p.loop.post(func() {
			p.paused = false
			p.fill()
		})
	})
}

// idleTime is how long a link is kept that nobody needs.
const idleTime = 30 * time.Second

// reap closes the links that were idle for too long: they take the place of
// the upstream's other clients.
func (p *pool) reap() {
	for key, list := range p.idle {
		for len(list) > 0 && time.Since(list[0].idleSince) > idleTime {
			l := list[0]
			list = list[1:]
			p.idleCount.Add(-1)
			p.drop(l)
		}
		if len(list) == 0 {
			delete(p.idle, key)
			continue
		}
		p.idle[key] = list
	}
}

// arrived gives a link that was just enrolled to the oldest waiter of its key.
func (p *pool) arrived(l *Link) {
	p.dialing--
	p.free(l)
}

// free hands a link without state to the oldest waiter, or keeps it. One from
// before a change of the server's defaults is for nobody who came after it; who
// waits has a link dialled since, however often they change.
func (p *pool) free(l *Link) {
	if len(p.links) > p.share && p.budget.wanted() {
		p.discard(l)
		return
	}
	for i, s := range p.waiters {
		if s.wantKey == l.Key && l.generation >= s.wantGeneration {
			p.waiters = append(p.waiters[:i], p.waiters[i+1:]...)
			s.stopWaiting()
			p.give(l, s)
			s.ready(nil)
			return
		}
	}
	if l.generation < p.upstream.Generation() {
		p.discard(l)
		return
	}
	l.idleSince = time.Now()
	p.idle[l.Key] = append(p.idle[l.Key], l)
	p.idleCount.Add(1)
	p.fill()
}

func (p *pool) give(l *Link, s *Session) {
	l.session, s.Link = s, l
	p.busyCount.Add(1)
}

// release takes the link back from its session. The session's slowness is not
// the link's any more: one that was about to be parked, or was, reads again,
// for nobody would unpark it on behalf of the next session.
func (p *pool) release(l *Link) {
	l.session = nil
	l.sock.unpark()
	p.busyCount.Add(-1)
	if l.sock.done || l.sock.closing || len(l.sock.held) > 0 {
		p.discard(l)
		return
	}
	p.free(l)
}

// refuse tells the waiters of a key that dialling failed: all of them, for
// the next dial would most likely fail alike and they should not wait for it.
func (p *pool) refuse(key string, err error) {
	kept := p.waiters[:0:0]
	var told []*Session
	for _, s := range p.waiters {
		if s.wantKey == key {
			told = append(told, s)
		} else {
			kept = append(kept, s)
		}
	}
	p.waiters = kept
	for _, s := range told {
		s.stopWaiting()
		s.ready(err)
	}
	p.fill()
}

func (p *pool) timeout(s *Session) {
	if p.forget(s) {
		s.ready(ErrPoolTimeout)
	}
}

// forget takes a session out of the queue and tells whether it was there.
func (p *pool) forget(s *Session) bool {
	for i, w := range p.waiters {
		if w == s {
			p.waiters = append(p.waiters[:i], p.waiters[i+1:]...)
			s.stopWaiting()
			p.fill()
			return true
		}
	}
	return false
}

// lost is told of every link that is gone.
func (p *pool) lost(l *Link) {
	// Behind the closing itself, which is posted: the upstream never sees more.
	p.loop.post(p.budget.put)
	if l.leaving {
		p.leaving--
		return
	}
	delete(p.links, l)
	list := p.idle[l.Key]
	for i, other := range list {
		if other == l {
			p.idle[l.Key] = append(list[:i], list[i+1:]...)
			p.idleCount.Add(-1)
			p.fill()
			return
		}
	}
	p.busyCount.Add(-1)
	p.fill()
}

// upstreamFull tells whether an upstream refused a link for want of room.
func upstreamFull(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "53300"
	}
	var numbered interface{ Errno() uint16 }
	if !errors.As(err, &numbered) {
		return false
	}
	switch numbered.Errno() {
	case 1040, 1203, 1226: // ER_CON_COUNT_ERROR, ER_TOO_MANY_USER_CONNECTIONS, ER_USER_LIMIT_REACHED
		return true
	}
	return false
}

// dropIdle closes every idle link: the upstream's defaults have changed. Those
// in use follow when they are given back.
func (p *pool) dropIdle() {
	for p.closeIdle() {
	}
}
