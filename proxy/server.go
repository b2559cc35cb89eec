package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panjf2000/gnet/v2"
)

// Server is one Freshet process: its upstreams, its loops and its sessions.
type Server struct {
	config    Config
	log       *slog.Logger
	upstreams []*Upstream
	engine    *engine
	gnet      gnet.Engine
	started   time.Time
	http      *httpServer
	// certificates are those for clients that come; nil without TLS.
	certificates atomic.Pointer[certificates]
	handshakes   *handshakes
	users        atomic.Pointer[users]

	mu       sync.RWMutex
	loops    []*Loop
	sessions map[uint64]*Session

	lastID      atomic.Uint64
	connections atomic.Int64
	serving     atomic.Bool
}

// Protocols names the dialects a server can speak: "mysql" and "postgres".
type Protocols map[string]Protocol

// Open connects to every upstream; Serve then accepts clients.
func Open(ctx context.Context, c Config, protocols Protocols, log *slog.Logger) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := writable(c.StoreDir); err != nil {
		return nil, err
	}
	s := &Server{config: c, log: log, sessions: map[uint64]*Session{}, started: time.Now(), handshakes: newHandshakes(maxHandshakes)}
	certs, err := c.TLS.load()
	if err != nil {
		return nil, err
	}
	s.certificates.Store(certs)
	all, err := loadUsers(c.Users)
	if err != nil {
		return nil, err
	}
	s.users.Store(&all)
	for _, uc := range c.Upstreams {
		u, err := s.openUpstream(ctx, uc, protocols)
		if err != nil {
			return nil, errors.Join(err, s.closeUpstreams())
		}
		u.users = &s.users
		s.upstreams = append(s.upstreams, u)
	}
	if err := all.of(s.upstreams); err != nil {
		return nil, errors.Join(err, s.closeUpstreams())
	}
	s.engine = &engine{server: s, loops: map[gnet.EventLoop]*Loop{}, booted: make(chan gnet.Engine, 1)}
	return s, nil
}

func (s *Server) openUpstream(ctx context.Context, uc UpstreamConfig, protocols Protocols) (*Upstream, error) {
	t, err := ParseTarget(uc.DSN)
	if err != nil {
		return nil, err
	}
	proto := protocols[t.Dialect]
	if proto == nil {
		return nil, fmt.Errorf("no protocol for %s", t.Dialect)
	}
	if uc.Listen, err = freeAddress(uc.Listen); err != nil {
		return nil, err
	}
	return openUpstream(ctx, s.config, uc, proto, s.log)
}

// Serve accepts clients until ctx ends. ready is told once it does.
func (s *Server) Serve(ctx context.Context, ready func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	addresses := make([]string, len(s.upstreams))
	for i, u := range s.upstreams {
		addresses[i] = u.Listen
	}
	ended := make(chan error, 1)
	go func() { ended <- runEngine(s.engine, addresses, s.config.Loops) }()
	select {
	case err := <-ended:
		return errors.Join(fmt.Errorf("listen on %v: %w", addresses, err), s.closeUpstreams())
	case s.gnet = <-s.engine.booted:
	}
	if err := s.startHTTP(); err != nil {
		cancel()
		return errors.Join(err, s.engine.stop(context.WithoutCancel(ctx), s.gnet), s.closeUpstreams())
	}
	for _, u := range s.upstreams {
		go u.watchDefaults(ctx, func(answers bool) { s.defaultsChanged(u, answers) })
	}
	go s.reap(ctx)
	s.serving.Store(true)
	ready()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = s.drain(context.WithoutCancel(ctx), ended)
	}
	return errors.Join(err, s.http.close(), s.closeUpstreams())
}

// loginTime is how long a client may take to log in, which is PostgreSQL's
// authentication_timeout: one that says nothing holds a descriptor.
const loginTime = time.Minute

// reap has the loops close links that nobody needs and clients that do not log
// in, until ctx ends.
func (s *Server) reap(ctx context.Context) {
	tick := time.NewTicker(idleTime / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, l := range s.allLoops() {
			l.post(func() {
				for _, ln := range l.lanes {
					ln.pool.reap()
				}
				l.reapStrangers(loginTime)
			})
		}
	}
}

// drainTime is how long transactions may go on after SIGTERM.
const drainTime = 10 * time.Second

// drain has sessions end, those in a transaction after it, within drainTime,
// and stops the loops.
func (s *Server) drain(ctx context.Context, ended <-chan error) error {
	s.serving.Store(false)
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for s.sayGoodbye(false) && ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	s.sayGoodbye(true)
	stop, cancelStop := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancelStop()
	if err := s.engine.stop(stop, s.gnet); err != nil {
		return err
	}
	return <-ended
}

// sayGoodbye has every session that can close do so, and waits until the loops
// have asked them. It tells whether some are left.
func (s *Server) sayGoodbye(now bool) bool {
	s.onLoops(func(l *Loop) {
		for _, sess := range l.sessions {
			sess.Handler.Shutdown(now)
		}
	})
	return s.connections.Load() > 0
}

func (s *Server) closeUpstreams() error {
	var errs []error
	for _, u := range s.upstreams {
		errs = append(errs, u.close())
	}
	return errors.Join(errs...)
}

// defaultsChanged drops the links with the old defaults, and what was answered
// under them if answers depend on those that changed.
func (s *Server) defaultsChanged(u *Upstream, answers bool) {
	if answers {
		u.log.Info("the server's defaults changed: everything cached is dropped")
		if u.Store != nil {
			u.Store.Flush()
		}
	}
	for _, l := range s.allLoops() {
		l.post(func() { l.laneOf(u).pool.dropIdle() })
	}
}

// accept makes the session of a client that has just connected, or nil when it
// reached an address that is nobody's.
func (s *Server) accept(l *Loop, c gnet.Conn) *Session {
	u := s.upstreamAt(c.LocalAddr())
	if u == nil {
		return nil
	}
	sess := &Session{ID: s.lastID.Add(1), Loop: l, Upstream: u, Remote: c.RemoteAddr(), lane: l.laneOf(u), connectedAt: time.Now()}
	sess.level = s.level()
	sess.client = &Socket{loop: l, owner: sess, conn: c, fd: c.Fd()}
	sess.Full = s.connections.Add(1) > int64(s.config.MaxConnections) || !s.serving.Load()
	sess.Handler = u.Protocol.NewHandler(sess)
	l.sessions[sess.ID] = sess
	sess.lane.connections.Add(1)
	s.mu.Lock()
	s.sessions[sess.ID] = sess
	s.mu.Unlock()
	return sess
}

// level is what sessions begin with.
func (s *Server) level() Level {
	l, _ := ParseLevel(s.config.Consistency) // Validate has
	return l
}

// left forgets a session.
func (s *Server) left(sess *Session) {
	s.connections.Add(-1)
	sess.lane.connections.Add(-1)
	delete(sess.Loop.sessions, sess.ID)
	s.mu.Lock()
	delete(s.sessions, sess.ID)
	s.mu.Unlock()
}

// FindSession finds a session by its id, from any goroutine. What is done to
// it goes through Session.Post.
func (s *Server) FindSession(id uint64) *Session {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.sessions[id]
}

func (s *Server) upstreamAt(a net.Addr) *Upstream {
	for _, u := range s.upstreams {
		if u.Listen == a.String() {
			return u
		}
	}
	if len(s.upstreams) == 1 {
		return s.upstreams[0]
	}
	_, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return nil
	}
	for _, u := range s.upstreams {
		if _, p, err := net.SplitHostPort(u.Listen); err == nil && p == port {
			return u
		}
	}
	return nil
}

func (s *Server) addLoop(l *Loop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loops = append(s.loops, l)
}

func (s *Server) allLoops() []*Loop {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return append([]*Loop(nil), s.loops...)
}

// Server gives a session the way to its siblings.
func (l *Loop) Server() *Server { return l.server }

func (l *Loop) laneOf(u *Upstream) *lane {
	for i, other := range l.server.upstreams {
		if other == u {
			return l.lanes[i]
		}
	}
	return nil
}

// Listeners describes each listener for the first line on stdout, such as
// "mysql 127.0.0.1:3307 -> mariadb 10.11.19 at db.example:3306, feed following".
func (s *Server) Listeners() []string {
	var lines []string
	for _, u := range s.upstreams {
		state := "feed following"
		if u.Feed == nil {
			state = "feed off"
		} else if st := u.Feed.Status(); st.Replica {
			state = "feed following replica " + st.From
		}
		lines = append(lines, fmt.Sprintf("%s %s -> %s %s at %s, %s", u.Target.Dialect, u.Listen,
			u.Server.Kind, shortVersion(u.Server.Version), u.Target.Address(), state))
	}
	return lines
}

// shortVersion is the number at the front of a version string.
func shortVersion(v string) string {
	for i, c := range v {
		if (c < '0' || c > '9') && c != '.' {
			return v[:i]
		}
	}
	return v
}
