package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"github.com/panjf2000/gnet/v2"
)

// engine is the only place where gnet's event handler is known: it turns
// gnet's calls into the loops' events.
type engine struct {
	gnet.BuiltinEventEngine
	server *Server

	mu     sync.Mutex
	loops  map[gnet.EventLoop]*Loop
	booted chan gnet.Engine
}

// runEngine serves until the engine is stopped. Level-triggered polling is the
// faster here; ReusePort would make the load balancer moot, and the keep-alive
// option hides a failed bind, so both stay off.
func runEngine(e *engine, addresses []string, loops int) error {
	urls := make([]string, len(addresses))
	for i, a := range addresses {
		urls[i] = "tcp://" + a
	}
	return gnet.Rotate(e, urls,
		gnet.WithNumEventLoop(loops),
		gnet.WithLoadBalancing(gnet.LeastConnections),
		gnet.WithReuseAddr(true),
		gnet.WithTCPNoDelay(gnet.TCPNoDelay),
		gnet.WithLogger(gnetLogger{e.server.log}),
	)
}

func (e *engine) OnBoot(eng gnet.Engine) gnet.Action {
	e.booted <- eng
	return gnet.None
}

// loop finds, or makes at its first connection, the Loop of a gnet loop.
func (e *engine) loop(el gnet.EventLoop) *Loop {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.loops[el]
	if l == nil {
		l = newLoop(e.server, el, len(e.loops))
		e.loops[el] = l
		e.server.addLoop(l)
	}
	return l
}

func (e *engine) OnOpen(c gnet.Conn) ([]byte, gnet.Action) {
	if s, ok := c.Context().(*Socket); ok { // a link, or a socket coming back
		s.loop.begin()
		fresh := !s.parked
		s.attach(c)
		if fresh && !s.done {
			s.owner.opened()
		}
		s.loop.end()
		return nil, gnet.None
	}
	l := e.loop(c.EventLoop())
	l.begin()
	defer l.end()
	s := e.server.accept(l, c)
	if s == nil {
		return nil, gnet.Close
	}
	c.SetContext(s.client)
	s.opened()
	return nil, gnet.None
}

func (e *engine) OnTraffic(c gnet.Conn) gnet.Action {
	s, ok := c.Context().(*Socket)
	if !ok {
		return gnet.Close
	}
	in, err := c.Next(-1)
	if err != nil || s.conn != c {
		return gnet.None
	}
	s.loop.begin()
	if !s.closing {
		s.consume(in)
	}
	s.loop.end()
	return gnet.None
}

func (e *engine) OnClose(c gnet.Conn, err error) gnet.Action {
	s, ok := c.Context().(*Socket)
	if !ok || s.conn != c {
		return gnet.None // parked, or closed by us
	}
	s.loop.begin()
	s.conn = nil
	s.finish(err)
	s.loop.end()
	return gnet.None
}

func (e *engine) OnShutdown(gnet.Engine) {}

func (e *engine) stop(ctx context.Context, eng gnet.Engine) error { return eng.Stop(ctx) }

// freeAddress resolves port 0: gnet reports the address it was given, not the
// one the kernel chose.
func freeAddress(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("listen address %q: want host:port: %w", address, err)
	}
	if port != "0" {
		return address, nil
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", err
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}

// gnetLogger passes gnet's words on; what it calls information is detail here.
type gnetLogger struct{ log *slog.Logger }

func (g gnetLogger) Debugf(f string, a ...any) { g.log.Debug("gnet: " + fmt.Sprintf(f, a...)) }
func (g gnetLogger) Infof(f string, a ...any)  { g.log.Debug("gnet: " + fmt.Sprintf(f, a...)) }
func (g gnetLogger) Warnf(f string, a ...any)  { g.log.Warn("gnet: " + fmt.Sprintf(f, a...)) }
func (g gnetLogger) Errorf(f string, a ...any) { g.log.Error("gnet: " + fmt.Sprintf(f, a...)) }
func (g gnetLogger) Fatalf(f string, a ...any) { g.log.Error("gnet: " + fmt.Sprintf(f, a...)) }
