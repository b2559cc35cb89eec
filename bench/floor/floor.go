// Package floor is the least that a server on the same event loop can do: it
// greets, lets everybody in, answers each setup request with recorded bytes and
// every request after those with one recorded reply, without looking at more
// of it than where it ends. What a proxy costs above it is the proxy's own.
package floor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"

	"github.com/panjf2000/gnet/v2"
	"github.com/panjf2000/gnet/v2/pkg/logging"

	"freshet/bench/load"
	"freshet/bench/wire"
)

// Server is a floor that listens.
type Server struct {
	Addr string // host:port
	eng  gnet.Engine
	done chan error
}

// Start listens on a free loopback port, on one event loop with the options
// that the proxy uses.
func Start(rec load.Recording) (*Server, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	h := &handler{rec: rec, booted: make(chan gnet.Engine, 1)}
	s := &Server{Addr: addr, done: make(chan error, 1)}
	go func() {
		s.done <- gnet.Run(h, "tcp://"+addr, gnet.WithNumEventLoop(1), gnet.WithReuseAddr(true),
			gnet.WithTCPNoDelay(gnet.TCPNoDelay), gnet.WithLogger(quiet{}), gnet.WithLogLevel(logging.ErrorLevel))
	}()
	select {
	case s.eng = <-h.booted:
		return s, nil
	case err := <-s.done:
		return nil, fmt.Errorf("floor: %w", err)
	}
}

// Stop closes every connection and the listener.
func (s *Server) Stop(ctx context.Context) error {
	if err := s.eng.Stop(ctx); err != nil {
		return err
	}
	return <-s.done
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// quiet drops gnet's log; its errors come back from Run as well.
type quiet struct{}

func (quiet) Debugf(string, ...any) {}
func (quiet) Infof(string, ...any)  {}
func (quiet) Warnf(string, ...any)  {}
func (quiet) Errorf(f string, a ...any) {
	slog.Error(fmt.Sprintf(f, a...))
}
func (quiet) Fatalf(f string, a ...any) {
	slog.Error(fmt.Sprintf(f, a...))
}

// phase is how far a connection has come.
type phase uint8

const (
	greeting phase = iota // the client's answer to the greeting is awaited
	setup                 // recorded setup replies go out in turn
	serving
)

// state is one connection's; it is a gnet connection's context.
type state struct {
	phase phase
	step  int // setup replies sent
}

type handler struct {
	gnet.BuiltinEventEngine
	rec    load.Recording
	booted chan gnet.Engine
	burst  []byte // rec.Reply repeated, for pipelined requests
}

func (h *handler) OnBoot(eng gnet.Engine) gnet.Action {
	h.booted <- eng
	return gnet.None
}

func (h *handler) OnOpen(c gnet.Conn) ([]byte, gnet.Action) {
	c.SetContext(&state{})
	if h.rec.Dialect == wire.MySQL {
		return mysqlGreeting(h.rec), gnet.None
	}
	return nil, gnet.None
}

func (h *handler) OnTraffic(c gnet.Conn) gnet.Action {
	s := c.Context().(*state)
	b, err := c.Peek(-1)
	if err != nil {
		return gnet.Close
	}
	used, replies := 0, 0
	for {
		n, last, err := h.frame(s, b[used:])
		if err != nil {
			return gnet.Close
		}
		if n == 0 {
			break
		}
		used += n
		if !last {
			continue
		}
		if s.phase == serving {
			replies++
			continue
		}
		if _, err := c.Write(h.early(s, b[used-n:used])); err != nil {
			return gnet.Close
		}
	}
	if replies > 0 {
		if _, err := c.Write(h.replies(replies)); err != nil {
			return gnet.Close
		}
	}
	if _, err := c.Discard(used); err != nil {
		return gnet.Close
	}
	return gnet.None
}

// replies is the recorded reply n times over.
func (h *handler) replies(n int) []byte {
	if n == 1 {
		return h.rec.Reply
	}
	for len(h.burst) < n*len(h.rec.Reply) {
		h.burst = append(h.burst, h.rec.Reply...)
	}
	return h.burst[:n*len(h.rec.Reply)]
}

// maxRequest bounds a request: what is larger was not sent by the bench.
const maxRequest = 1 << 20

var errRequest = errors.New("not a request of the bench")

// frame finds the first complete message in b: its size (0: not whole yet) and
// whether it calls for a reply.
func (h *handler) frame(s *state, b []byte) (size int, last bool, err error) {
	if h.rec.Dialect == wire.MySQL {
		if len(b) < 4 {
			return 0, false, nil
		}
		size = 4 + (int(b[0]) | int(b[1])<<8 | int(b[2])<<16)
		last = true
	} else if s.phase == greeting {
		if len(b) < 4 {
			return 0, false, nil
		}
		size, last = int(binary.BigEndian.Uint32(b)), true
	} else {
		if len(b) < 5 {
			return 0, false, nil
		}
		size = 1 + int(binary.BigEndian.Uint32(b[1:]))
		last = b[0] == 'S' || b[0] == 'Q' // Sync, Query
	}
	if size < 4 || size > maxRequest {
		return 0, false, errRequest
	}
	if size > len(b) {
		return 0, false, nil
	}
	return size, last, nil
}

// sslRequest is the code in an SSLRequest's place of the protocol version.
const sslRequest = 80877103

// early answers what comes before the load.
func (h *handler) early(s *state, request []byte) []byte {
	var out []byte
	switch {
	case s.phase == setup:
		out = h.rec.Setup[s.step]
		s.step++
	case h.rec.Dialect == wire.MySQL:
		s.phase = setup
		out = []byte{7, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0} // OK, autocommit
	case len(request) == 8 && binary.BigEndian.Uint32(request[4:]) == sslRequest:
		return []byte{'N'}
	default:
		s.phase = setup
		out = postgresWelcome(h.rec)
	}
	if s.step == len(h.rec.Setup) {
		s.phase = serving
	}
	return out
}

// mysqlGreeting is HandshakeV10 for mysql_native_password; any answer will do.
func mysqlGreeting(rec load.Recording) []byte {
	caps := rec.Capabilities &^ wire.CapSSL
	b := append([]byte{10}, rec.Version...)
	b = append(b, 0, 1, 0, 0, 0)
	b = append(b, "12345678"...)
	b = append(b, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(caps))
	b = append(b, 45, 2, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(caps>>16))
	b = append(b, 21)
	b = append(b, make([]byte, 10)...)
	b = append(b, "123456789012\x00mysql_native_password\x00"...)
	return wire.AppendPacket(nil, 0, b)
}

// postgresWelcome is AuthenticationOk, a few ParameterStatus, BackendKeyData
// and ReadyForQuery.
func postgresWelcome(rec load.Recording) []byte {
	message := func(b []byte, kind byte, body string) []byte {
		b = binary.BigEndian.AppendUint32(append(b, kind), uint32(len(body)+4))
		return append(b, body...)
	}
	b := message(nil, 'R', "\x00\x00\x00\x00")
	for _, p := range [][2]string{{"server_version", rec.Version}, {"client_encoding", "UTF8"}, {"standard_conforming_strings", "on"}} {
		b = message(b, 'S', p[0]+"\x00"+p[1]+"\x00")
	}
	b = message(b, 'K', "\x00\x00\x00\x01\x00\x00\x00\x02")
	return message(b, 'Z', "I")
}

// Serve runs a floor until r, from which nothing is expected, ends: a child
// process that reads its parent's pipe dies with it. It writes its address to w.
func Serve(rec load.Recording, r io.Reader, w io.Writer) error {
	s, err := Start(rec)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w, s.Addr); err != nil {
		return errors.Join(err, s.Stop(context.Background()))
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, s.Stop(context.Background()))
}
