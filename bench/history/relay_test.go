package history

import (
	"bufio"
	"net"
	"testing"
	"time"
)

// echo is a server that sends lines back.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for s := bufio.NewScanner(c); s.Scan(); {
					if _, err := c.Write(append(s.Bytes(), '\n')); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// caller is a client of the relay.
type caller struct {
	t *testing.T
	net.Conn
	*bufio.Reader
}

func call(t *testing.T, r *relay) *caller {
	t.Helper()
	c, err := net.Dial("tcp", r.address().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &caller{t, c, bufio.NewReader(c)}
}

// says sends a line and tells whether it came back within a time.
func (c *caller) says(line string, within time.Duration) bool {
	c.t.Helper()
	if line != "" {
		if _, err := c.Write([]byte(line + "\n")); err != nil {
			return false
		}
	}
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		c.t.Fatal(err)
	}
	_, err := c.ReadString('\n')
	return err == nil
}

func TestRelay(t *testing.T) {
	r, err := newRelay(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	const long, little = 10 * time.Second, 50 * time.Millisecond
	link, probe, stream := call(t, r), call(t, r), call(t, r)
	for c, first := range map[*caller]string{link: "hello", probe: "x program_name\x07freshet", stream: "program_name\x07freshet SET @source_binlog_checksum = @@global"} {
		if !c.says(first, long) {
			t.Fatalf("%q did not come back", first)
		}
	}
	for sc, want := range map[scope]int{streamOnly: 1, feedAll: 1, everything: 1} {
		if got := r.count(sc); got != want {
			t.Errorf("%d connections of scope %s, want %d", got, sc, want)
		}
	}
	for sc, held := range map[scope][3]bool{streamOnly: {false, false, true}, feedAll: {false, true, true}, everything: {true, true, true}} {
		r.hold(sc)
		for i, c := range []*caller{link, probe, stream} {
			if wait := map[bool]time.Duration{true: little, false: long}[held[i]]; c.says("on", wait) == held[i] {
				t.Errorf("with %s held, connection %d", sc, i)
			}
		}
		r.hold(nothing)
		for i, c := range []*caller{link, probe, stream} {
			if held[i] && !c.says("", long) {
				t.Errorf("with %s let go, connection %d", sc, i)
			}
		}
	}
	r.slow(feedAll, little)
	begun := time.Now()
	if !probe.says("slow", long) || time.Since(begun) < 2*little {
		t.Errorf("a slow line took %s", time.Since(begun))
	}
	if n := r.cut(feedAll); n != 2 || probe.says("cut", long) || stream.says("cut", long) || !link.says("on", long) {
		t.Errorf("%d connections cut, or the wrong ones", n)
	}
	if err := r.close(); err != nil || link.says("closed", long) {
		t.Errorf("the relay closed: %v", err)
	}
}

// What is held when a line is cut is lost.
func TestRelayLoses(t *testing.T) {
	r, err := newRelay(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	c := call(t, r)
	r.hold(everything)
	if c.says("lost", 20*time.Millisecond) {
		t.Error("what was held came through")
	}
	r.cut(everything)
	r.hold(nothing)
	if c.says("", 10*time.Second) {
		t.Error("what was lost came through")
	}
	if err := r.close(); err != nil {
		t.Error(err)
	}
}
