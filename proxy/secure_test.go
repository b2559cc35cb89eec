package proxy

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"freshet/bench/pki"
)

// tlsPipe is pipe for clients whose first byte, T, asks for TLS.
type tlsPipe struct{ pipe }

type tlsPipeHandler struct {
	pipeHandler
	open bool
}

func (p *tlsPipe) NewHandler(s *Session) Handler {
	return &tlsPipeHandler{pipeHandler: pipeHandler{s: s, p: &p.pipe}}
}

func (h *tlsPipeHandler) Data(in []byte) int {
	if h.open {
		return h.pipeHandler.Data(in)
	}
	h.s.Write([]byte("S"))
	h.s.StartTLS("", func() {
		h.open = true
		h.s.Write([]byte("hello"))
	})
	h.s.Write([]byte("never in clear"))
	return 1
}

// secureCore is startCore with TLS.
func secureCore(t *testing.T, c Config, serve func(net.Conn), change func(*Server)) (s *Server, address string, ca *pki.Authority) {
	t.Helper()
	ca = pki.New(t)
	pair := ca.Sign("server")
	c.TLS.Cert, c.TLS.Key = pair.Cert, pair.Key
	p := &tlsPipe{}
	s, address = startCoreWith(t, c, p, &p.pipe, serve, func(s *Server) {
		certs, err := c.TLS.load()
		if err != nil {
			t.Fatal(err)
		}
		s.certificates.Store(certs)
		if change != nil {
			change(s)
		}
	})
	return s, address, ca
}

// asked connects and asks for TLS.
func asked(t *testing.T, address string) net.Conn {
	t.Helper()
	raw := dial(t, address)
	if _, err := raw.Write([]byte("T")); err != nil {
		t.Fatal(err)
	}
	wantRead(t, raw, "S")
	return raw
}

func secured(t *testing.T, raw net.Conn, ca *pki.Authority, version uint16) *tls.Conn {
	t.Helper()
	c := tls.Client(raw, &tls.Config{RootCAs: ca.Pool, ServerName: "localhost", MaxVersion: version})
	if err := c.Handshake(); err != nil {
		t.Fatal("handshake: ", err)
	}
	wantRead(t, c, "hello")
	return c
}

// dribble is a line that carries a byte at a time.
type dribble struct{ net.Conn }

func (d dribble) Write(b []byte) (int, error) {
	for i := range b {
		if _, err := d.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(b), nil
}

// lazy is a line that sends what was written when it is next read from.
type lazy struct {
	net.Conn
	late []byte
}

func (l *lazy) Write(b []byte) (int, error) {
	l.late = append(l.late, b...)
	return len(b), nil
}

func (l *lazy) Read(b []byte) (int, error) {
	if len(l.late) > 0 {
		if _, err := l.Conn.Write(l.late); err != nil {
			return 0, err
		}
		l.late = nil
	}
	return l.Conn.Read(b)
}

// What comes together with the handshake's end is not forgotten: crypto/tls reads
// ahead, and nothing more may come.
func TestTLSEarlyBytes(t *testing.T) {
	_, address, ca := secureCore(t, oneLoop, echo, nil)
	for _, size := range []int{1, 100, 10_000, 100_000} {
		c := tls.Client(&lazy{Conn: asked(t, address)}, &tls.Config{RootCAs: ca.Pool, ServerName: "localhost", MinVersion: tls.VersionTLS13})
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
		early := bytes.Repeat([]byte("e"), size)
		if _, err := c.Write(early); err != nil {
			t.Fatal(err)
		}
		wantRead(t, c, "hello")
		wantRead(t, c, string(early))
	}
}

var oneLoop = Config{Loops: 1, MaxLinks: 4, LinkWait: 5 * time.Second}

func TestTLSBothWays(t *testing.T) {
	_, address, ca := secureCore(t, Config{Loops: 2, MaxLinks: 4, LinkWait: 5 * time.Second}, echo, nil)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, slow := range []bool{false, true} {
			t.Run(fmt.Sprint(tls.VersionName(version), slow), func(t *testing.T) {
				raw := asked(t, address)
				if slow {
					raw = dribble{raw}
				}
				c := secured(t, raw, ca, version)
				if c.ConnectionState().Version != version {
					t.Fatalf("speaks %s", tls.VersionName(c.ConnectionState().Version))
				}
				exchange(t, c, slow)
			})
		}
	}
	if err := tls.Client(asked(t, address), &tls.Config{RootCAs: ca.Pool, ServerName: "localhost", MinVersion: tls.VersionTLS10,
		MaxVersion: tls.VersionTLS11}).Handshake(); err == nil {
		t.Error("TLS 1.1 was spoken")
	}
}

// exchange sends messages of all lengths and wants them back.
func exchange(t *testing.T, c net.Conn, short bool) {
	t.Helper()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range 60 {
		size := 1 + random.IntN(1<<random.IntN(20))
		if short {
			size = 1 + size%3000
		}
		message := bytes.Repeat([]byte{byte('A' + i%26)}, size)
		sent := make(chan error, 1)
		go func() {
			_, err := c.Write(message)
			sent <- err
		}()
		got := make([]byte, size)
		if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, message) {
			t.Fatalf("seed %d: message %d of %d bytes came back otherwise (%v)", seed, i, size, err)
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
}

// recorded is a line that remembers what came.
type recorded struct {
	net.Conn
	came bytes.Buffer
}

func (r *recorded) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	r.came.Write(b[:n])
	return n, err
}

// The end is told as TLS wants it, so that it is no truncation.
func TestTLSGoodbye(t *testing.T) {
	s, address, ca := secureCore(t, oneLoop, echo, nil)
	// Under 1.2 a record's type can be seen.
	line := &recorded{Conn: asked(t, address)}
	c := secured(t, line, ca, tls.VersionTLS12)
	line.came.Reset()
	s.FindSession(1).Post(func() {
		s.FindSession(1).Write([]byte("bye"))
		s.FindSession(1).Close()
	})
	if got, err := io.ReadAll(c); err != nil || string(got) != "bye" {
		t.Fatalf("got %q, %v", got, err)
	}
	last := byte(0)
	for records := line.came.Bytes(); len(records) > 5; records = records[5+int(records[3])<<8+int(records[4]):] {
		last = records[0]
	}
	if last != 21 {
		t.Errorf("the last record is of type %d, want an alert, 21", last)
	}
	// The other way round: the client's goodbye ends the session.
	c = secured(t, asked(t, address), ca, 0)
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) || len(got) != 0 {
		t.Fatalf("got %q, %v", got, err)
	}
	awaitSessions(t, s, 0)
}

func awaitSessions(t *testing.T, s *Server, want int64) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); s.connections.Load() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d sessions, want %d", s.connections.Load(), want)
		}
	}
}

// What is no TLS is answered by an alert and the end, and costs the others nothing.
func TestTLSGarbage(t *testing.T) {
	s, address, ca := secureCore(t, oneLoop, echo, nil)
	for _, garbage := range []string{"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x00\x05\x01\xff\xff\xff\xff", "\x16\x03\x01\xff\xff", "\x00\x00\x00\x00\x00\x00"} {
		raw := asked(t, address)
		if _, err := raw.Write([]byte(garbage)); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(raw)
		if err != nil || len(got) > 0 && got[0] != 21 { // an alert record
			t.Errorf("%q: answered %q, %v", garbage, got, err)
		}
	}
	// Within the session: a record that nobody can have sealed.
	raw := asked(t, address)
	c := secured(t, raw, ca, 0)
	if _, err := raw.Write([]byte("\x17\x03\x03\x00\x20aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(c); err == nil || !bytes.Contains([]byte(err.Error()), []byte("bad record MAC")) {
		t.Errorf("a forged record ends with %v", err)
	}
	awaitSessions(t, s, 0)
}

// A client whose handshake has not begun can send only so much.
func TestTLSFloodBeforeHandshake(t *testing.T) {
	s, address, _ := secureCore(t, oneLoop, echo, func(s *Server) { s.handshakes.most = 1 })
	first := asked(t, address) // and says nothing
	raw := asked(t, address)
	if err := flood(raw, 16<<20); err == nil {
		if _, err = io.ReadAll(raw); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the flood was taken")
		}
	}
	awaitSessions(t, s, 1)
	first.Close()
}

// Half a handshake ends by itself; a bounded number runs at once; and silent ones
// do not keep others out.
func TestTLSHalfHandshakes(t *testing.T) {
	s, address, ca := secureCore(t, Config{Loops: 1, MaxLinks: 50, LinkWait: 5 * time.Second}, echo, func(s *Server) {
		s.handshakes.most, s.handshakes.time, s.handshakes.hurryTime = 3, time.Minute, 50*time.Millisecond
	})
	var half []net.Conn
	for range 10 {
		raw := asked(t, address)
		if _, err := raw.Write([]byte("\x16\x03\x01\x02\x00\x01")); err != nil {
			t.Fatal(err)
		}
		half = append(half, raw)
	}
	if running, waiting := s.handshakes.counts(); running > 3 || running+waiting < 7 {
		t.Errorf("%d run and %d wait", running, waiting)
	}
	for range 5 {
		c := secured(t, asked(t, address), ca, 0)
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		wantRead(t, c, "x")
		c.Close()
	}
	half[9].Close()
	if got, err := io.ReadAll(half[0]); err != nil || len(got) > 0 {
		t.Errorf("the first half handshake ended with %q, %v", got, err)
	}
}

// counts are of tests.
func (h *handshakes) counts() (running, waiting int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.running), h.line.Len()
}

func TestTLSHandshakeTime(t *testing.T) {
	s, address, _ := secureCore(t, oneLoop, echo, func(s *Server) { s.handshakes.time = 50 * time.Millisecond })
	raw := asked(t, address)
	if got, err := io.ReadAll(raw); err != nil || len(got) > 0 {
		t.Fatalf("got %q, %v", got, err)
	}
	awaitSessions(t, s, 0)
	// One that the client gives up leaves nothing behind.
	s, address, _ = secureCore(t, oneLoop, echo, func(s *Server) { s.handshakes.time = time.Hour })
	asked(t, address).Close()
	awaitSessions(t, s, 0)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if running, waiting := s.handshakes.counts(); running+waiting == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the handshake still runs")
		}
	}
}

// TestSlowReader and TestSlowUpstream for TLS: bounded memory in both directions.
func TestTLSSlowReader(t *testing.T) {
	_, address, ca := secureCore(t, oneLoop, func(c net.Conn) {
		b := make([]byte, 1)
		io.ReadFull(c, b)    //nolint:errcheck // the flood below fails then
		flood(c, floodBytes) //nolint:errcheck // the reader sees what arrives
	}, nil)
	readSlowly(t, secured(t, asked(t, address), ca, 0))
}

func TestTLSSlowUpstream(t *testing.T) {
	read := make(chan struct{})
	came := make(chan int64, 1)
	_, address, ca := secureCore(t, oneLoop, func(c net.Conn) {
		<-read
		n, err := io.CopyN(io.Discard, c, floodBytes)
		if err != nil {
			n = -1
		}
		came <- n
	}, nil)
	c := secured(t, asked(t, address), ca, 0)
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
	if n := <-came; n != floodBytes {
		t.Fatalf("%d bytes came", n)
	}
}

// New files count for clients that come after Reload; who is in stays, and files
// that make no sense change nothing.
func TestTLSReload(t *testing.T) {
	s, address, ca := secureCore(t, oneLoop, echo, nil)
	talk := func(c net.Conn) {
		t.Helper()
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		wantRead(t, c, "x")
	}
	first := secured(t, asked(t, address), ca, 0)
	talk(first)
	ca.Sign("server") // to the same files
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	second := secured(t, asked(t, address), ca, 0)
	talk(second)
	talk(first)
	serial := func(c *tls.Conn) string { return c.ConnectionState().PeerCertificates[0].SerialNumber.String() }
	if serial(first) == serial(second) {
		t.Error("the second client was shown the old certificate")
	}
	if err := os.WriteFile(s.config.TLS.Key, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err == nil {
		t.Error("nonsense was read")
	}
	if third := secured(t, asked(t, address), ca, 0); serial(third) != serial(second) {
		t.Error("nonsense changed the certificate")
	}
}
