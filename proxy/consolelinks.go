package proxy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// onLoops runs f on every loop, one after the other's beginning, and waits for
// all of them.
func (s *Server) onLoops(f func(l *Loop)) {
	var asked sync.WaitGroup
	for _, l := range s.allLoops() {
		asked.Add(1)
		l.post(func() {
			defer asked.Done()
			f(l)
		})
	}
	asked.Wait()
}

// rowsOf are the rows that the loops give, by the number each begins with.
func (s *Server) rowsOf(give func(l *Loop, add func(number uint64, rest ...string))) [][]string {
	type numbered struct {
		number uint64
		row    []string
	}
	var mu sync.Mutex
	var all []numbered
	s.onLoops(func(l *Loop) {
		give(l, func(number uint64, rest ...string) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, numbered{number, append([]string{fmt.Sprint(number)}, rest...)})
		})
	})
	slices.SortFunc(all, func(a, b numbered) int { return cmp.Compare(a.number, b.number) })
	rows := make([][]string, len(all))
	for i, n := range all {
		rows[i] = n.row
	}
	return rows
}

// showLinks is SHOW FRESHET LINKS: the connections to the upstream, whose they
// are, and why one that is not in use now is not given back.
type showLinks struct{}

func (showLinks) run(_ context.Context, c *console) (*Result, error) {
	r := &Result{Tag: "SHOW", Columns: columns("#link", "#loop", "state", "session", "user", "pinned_by", "#idle_ms")}
	r.Rows = c.server.rowsOf(func(l *Loop, add func(uint64, ...string)) {
		for link := range l.laneOf(c.upstream).pool.links {
			state, session, user, idle := "idle", "", "", time.Since(link.idleSince).Milliseconds()
			if s := link.session; s != nil {
				state, session, user, idle = "busy", fmt.Sprint(s.ID), s.User, 0
			}
			add(link.ID, fmt.Sprint(l.index), state, session, user, link.PinnedBy, fmt.Sprint(idle))
		}
	})
	return r, nil
}

// showConnections is SHOW FRESHET CONNECTIONS: the clients of the listener.
type showConnections struct{}

func (showConnections) run(_ context.Context, c *console) (*Result, error) {
	r := &Result{Tag: "SHOW", Columns: columns("#session", "#loop", "user", "client", "state", "link", "cache", "consistency", "last_destination", "#age_ms")}
	r.Rows = c.server.rowsOf(func(l *Loop, add func(uint64, ...string)) {
		for _, s := range l.sessions {
			if s.Upstream != c.upstream {
				continue
			}
			link, caching := "", "on"
			if s.Link != nil {
				link = fmt.Sprint(s.Link.ID)
			}
			if s.CacheOff {
				caching = "off"
			}
			add(s.ID, fmt.Sprint(l.index), s.User, s.Remote.String(), s.state(), link, caching, s.level.String(), s.Last.Source.String(),
				fmt.Sprint(time.Since(s.connectedAt).Milliseconds()))
		}
	})
	return r, nil
}

// state is what the session does, in a word.
func (s *Session) state() string {
	switch {
	case !s.loggedIn:
		return "login"
	case s.waitTimer != nil:
		return "waiting for a link"
	case s.Blocked:
		return "active"
	}
	return "idle"
}
