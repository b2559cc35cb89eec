package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/panjf2000/gnet/v2"
)

// pipe is a protocol without messages: what the client sends goes to its link
// and back. A '!' gives the link back.
type pipe struct {
	backend string
	refuse  error
	lost    atomic.Int64
}

type pipeHandler struct {
	s *Session
	p *pipe
}

func (p *pipe) NewHandler(s *Session) Handler { return &pipeHandler{s: s, p: p} }

func (p *pipe) Dial(ctx context.Context, _ *Upstream, _ string) (net.Conn, any, error) {
	if p.refuse != nil {
		return nil, nil, p.refuse
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", p.backend)
	return c, nil, err
}

func (h *pipeHandler) Open() {
	if h.s.Full {
		h.s.Write([]byte("full"))
		h.s.Close()
	}
}

func (h *pipeHandler) Data(in []byte) int {
	if h.s.Link == nil && !h.s.AcquireLink("k") {
		return 0
	}
	n := len(in)
	if i := bytes.IndexByte(in, '!'); i >= 0 {
		h.s.ReleaseLink()
		h.s.Write([]byte("released"))
		return i + 1
	}
	h.s.Link.Write(in)
	return n
}

func (h *pipeHandler) LinkReady(err error) {
	if err != nil {
		h.s.Write([]byte(err.Error()))
		h.s.Close()
	}
}
func (h *pipeHandler) Joined([]byte, bool) {}
func (h *pipeHandler) LinkData(in []byte) int {
	h.s.Write(in)
	return len(in)
}
func (h *pipeHandler) LinkLost(error) { h.p.lost.Add(1); h.s.Close() }
func (h *pipeHandler) Closed()        {}
func (h *pipeHandler) Shutdown(bool)  { h.s.Close() }

// startCore serves the pipe protocol in front of a backend that runs serve for
// each connection.
func startCore(t *testing.T, c Config, p *pipe, serve func(net.Conn)) (*Server, string) {
	t.Helper()
	return startCoreWith(t, c, p, p, serve, nil)
}

// startCoreWith is startCore for a protocol over pipe; change may prepare the
// server.
func startCoreWith(t *testing.T, c Config, protocol Protocol, p *pipe, serve func(net.Conn), change func(*Server)) (*Server, string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	p.backend = ln.Addr().String()
	address, err := freeAddress("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = 100
	}
	s := &Server{config: c, log: slog.New(slog.DiscardHandler), sessions: map[uint64]*Session{}, handshakes: newHandshakes(maxHandshakes)}
	if change != nil {
		change(s)
	}
	u := &Upstream{Protocol: protocol, Listen: address, log: s.log, ConnectTimeout: 5 * time.Second, linkWait: c.LinkWait, budget: budget{free: c.MaxLinks}, mode: CacheOff}
	s.upstreams = []*Upstream{u}
	s.engine = &engine{server: s, loops: map[gnet.EventLoop]*Loop{}, booted: make(chan gnet.Engine, 1)}
	ended := make(chan error, 1)
	go func() { ended <- runEngine(s.engine, []string{address}, c.Loops) }()
	s.gnet = <-s.engine.booted
	s.serving.Store(true)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := errors.Join(s.gnet.Stop(ctx), <-ended); err != nil {
			t.Error(err)
		}
	})
	return s, address
}

func echo(c net.Conn) {
	defer c.Close()
	io.Copy(c, c) //nolint:errcheck // the test sees what arrives
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

func wantRead(t *testing.T, c net.Conn, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != want {
		t.Fatalf("read %q, %v: want %q", b, err, want)
	}
}

func TestForwardsBothWays(t *testing.T) {
	_, address := startCore(t, Config{Loops: 2, MaxLinks: 4, LinkWait: time.Second}, &pipe{}, echo)
	for range 3 {
		c := dial(t, address)
		if _, err := c.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		wantRead(t, c, "hello")
	}
}

func TestDialFailureReachesTheClient(t *testing.T) {
	_, address := startCore(t, Config{Loops: 1, MaxLinks: 4, LinkWait: time.Second}, &pipe{refuse: errors.New("no database today")}, echo)
	c := dial(t, address)
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil || string(got) != "no database today" {
		t.Fatalf("got %q, %v", got, err)
	}
}

func TestFullHouse(t *testing.T) {
	_, address := startCore(t, Config{Loops: 1, MaxLinks: 4, LinkWait: time.Second, MaxConnections: 1}, &pipe{}, echo)
	first := dial(t, address)
	if _, err := first.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	wantRead(t, first, "x")
	got, err := io.ReadAll(dial(t, address))
	if err != nil || string(got) != "full" {
		t.Fatalf("got %q, %v", got, err)
	}
}

// A client that never logs in loses its place; one that did keeps it.
func TestStrangersAreTurnedOut(t *testing.T) {
	s, address := startCore(t, Config{Loops: 1, MaxLinks: 4, LinkWait: time.Second}, &pipe{}, echo)
	stranger, guest := dial(t, address), dial(t, address)
	for _, c := range []net.Conn{stranger, guest} {
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		wantRead(t, c, "x")
	}
	s.FindSession(2).Post(func() {
		s.FindSession(2).LoggedIn()
		s.FindSession(2).Loop.reapStrangers(0)
	})
	if got, err := io.ReadAll(stranger); err != nil || len(got) != 0 {
		t.Fatalf("got %q, %v", got, err)
	}
	if _, err := guest.Write([]byte("y")); err != nil {
		t.Fatal(err)
	}
	wantRead(t, guest, "y")
}

func TestWaitersGetTheLinkInTurn(t *testing.T) {
	_, address := startCore(t, Config{Loops: 1, MaxLinks: 1, LinkWait: 5 * time.Second}, &pipe{}, echo)
	a, b := dial(t, address), dial(t, address)
	if _, err := a.Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	wantRead(t, a, "a")
	if _, err := b.Write([]byte("b")); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Write([]byte("!")); err != nil {
		t.Fatal(err)
	}
	wantRead(t, a, "released")
	wantRead(t, b, "b")
}

// --max-links holds for all loops together, and every loop can serve.
func TestLinksOfAllLoopsTogether(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	count := func(d int) {
		mu.Lock()
		defer mu.Unlock()
		now += d
		most = max(most, now)
	}
	open := func() int {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	_, address := startCore(t, Config{Loops: 2, MaxLinks: 3, LinkWait: 10 * time.Second}, &pipe{}, func(c net.Conn) {
		// This end may learn later of a link that was closed than of the next.
		for deadline := time.Now().Add(time.Second); open() >= 3 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		count(1)
		defer count(-1)
		echo(c)
	})
	var all sync.WaitGroup
	for range 12 {
		c := dial(t, address)
		all.Add(1)
		go func() {
			defer all.Done()
			if _, err := c.Write([]byte("a")); err != nil {
				t.Error(err)
				return
			}
			b := make([]byte, 1)
			if _, err := io.ReadFull(c, b); err != nil {
				t.Error(err)
				return
			}
			if _, err := c.Write([]byte("!")); err != nil { // gives the link back
				t.Error(err)
			}
		}()
	}
	all.Wait()
	mu.Lock()
	defer mu.Unlock()
	if most > 3 {
		t.Fatalf("%d links at a time, want at most 3", most)
	}
}

func TestWaitForALinkIsBounded(t *testing.T) {
	_, address := startCore(t, Config{Loops: 1, MaxLinks: 1, LinkWait: 50 * time.Millisecond}, &pipe{}, echo)
	a, b := dial(t, address), dial(t, address)
	if _, err := a.Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	wantRead(t, a, "a")
	if _, err := b.Write([]byte("b")); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(b)
	if err != nil || string(got) != ErrPoolTimeout.Error() {
		t.Fatalf("got %q, %v", got, err)
	}
}

func TestUpstreamThatHangsUpIsNoticed(t *testing.T) {
	p := &pipe{}
	_, address := startCore(t, Config{Loops: 1, MaxLinks: 1, LinkWait: time.Second}, p, func(c net.Conn) {
		b := make([]byte, 1)
		io.ReadFull(c, b) //nolint:errcheck // any end will do
		c.Close()
	})
	c := dial(t, address)
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || len(got) != 0 {
		t.Fatalf("got %q, %v", got, err)
	}
	if p.lost.Load() != 1 {
		t.Fatal("the handler was not told")
	}
}

// flood sends a pattern that tells each byte's place.
func flood(w io.Writer, total int) error {
	buf := make([]byte, 64<<10)
	for sent := 0; sent < total; sent += len(buf) {
		for i := range buf {
			buf[i] = byte((sent + i) >> 8)
			if buf[i] == '!' {
				buf[i] = '?'
			}
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

const floodBytes = 256 << 20

func checkFlood(t *testing.T, r io.Reader, each func(read int)) {
	t.Helper()
	buf := make([]byte, 64<<10)
	for at := 0; at < floodBytes; {
		n, err := r.Read(buf)
		if err != nil {
			t.Fatalf("after %d bytes: %v", at, err)
		}
		for i := range n {
			want := byte((at + i) >> 8)
			if want == '!' {
				want = '?'
			}
			if buf[i] != want {
				t.Fatalf("byte %d is %d, want %d", at+i, buf[i], want)
			}
		}
		at += n
		each(at)
	}
}

func heapMiB() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc >> 20
}

// A client that does not read must cost a bounded amount of memory, and get
// every byte in order once it does.
func TestSlowReader(t *testing.T) {
	_, address := startCore(t, Config{Loops: 1, MaxLinks: 1, LinkWait: time.Second}, &pipe{}, func(c net.Conn) {
		b := make([]byte, 1)
		io.ReadFull(c, b)    //nolint:errcheck // the flood below fails then
		flood(c, floodBytes) //nolint:errcheck // the reader sees what arrives
	})
	readSlowly(t, dial(t, address))
}

// readSlowly asks for a flood, and holds the heap to a few MiB while it is read.
func readSlowly(t *testing.T, c net.Conn) {
	t.Helper()
	before := heapMiB()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	most, next := uint64(0), 1<<20
	checkFlood(t, c, func(read int) {
		if read >= next { // stop reading now and then
			next += 32 << 20
			for range 3 {
				most = max(most, heapMiB())
			}
		}
	})
	if most > before+16 {
		t.Fatalf("the heap grew from %d to %d MiB", before, most)
	}
}

// A link given back while it is parked for its session's slowness, or about to
// be, serves the next session.
func TestParkedLinkIsGivenBackReading(t *testing.T) {
	for _, alreadyParked := range []bool{false, true} {
		s, address := startCore(t, Config{Loops: 1, MaxLinks: 1, LinkWait: time.Second}, &pipe{}, echo)
		first := dial(t, address)
		if _, err := first.Write([]byte("a")); err != nil {
			t.Fatal(err)
		}
		wantRead(t, first, "a")
		session := s.FindSession(1)
		session.Post(func() {
			session.Link.sock.park()
			if alreadyParked {
				session.Link.sock.parkNow()
			}
			session.ReleaseLink()
		})
		second := dial(t, address)
		if _, err := second.Write([]byte("b")); err != nil {
			t.Fatal(err)
		}
		wantRead(t, second, "b")
	}
}

// The same the other way: an upstream that does not take the client's bytes.
func TestSlowUpstream(t *testing.T) {
	read := make(chan struct{})
	failed := make(chan string, 1)
	_, address := startCore(t, Config{Loops: 1, MaxLinks: 1, LinkWait: time.Second}, &pipe{}, func(c net.Conn) {
		<-read
		defer close(failed)
		buf := make([]byte, 1<<20)
		for at := 0; at < floodBytes; {
			n, err := c.Read(buf)
			for i := range n {
				want := byte((at + i) >> 8)
				if want == '!' {
					want = '?'
				}
				if buf[i] != want {
					failed <- "wrong byte"
					return
				}
			}
			if at += n; err != nil {
				failed <- err.Error()
				return
			}
		}
	})
	c := dial(t, address)
	before := heapMiB()
	done := make(chan error, 1)
	go func() { done <- flood(c, floodBytes) }()
	select {
	case err := <-done:
		t.Fatalf("the flood went somewhere: %v", err)
	case <-time.After(300 * time.Millisecond): // nobody reads: it must stand still
	}
	if now := heapMiB(); now > before+16 {
		t.Fatalf("the heap grew from %d to %d MiB", before, now)
	}
	close(read)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if msg := <-failed; msg != "" {
		t.Fatal(msg)
	}
}
