package proxy

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// server listens and has serve speak to whoever comes.
func server(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return ln.Addr().String()
}

// A DSN of the wrong kind is told in words, not as a wait that ran out.
func TestDSNOfTheWrongKind(t *testing.T) {
	mysql := server(t, func(c net.Conn) {
		// A greeting of 78 bytes: its first byte is the letter N.
		c.Write(append([]byte{78, 0, 0, 0, 10}, make([]byte, 77)...)) //nolint:errcheck // the test sees what arrives
		io.Copy(io.Discard, c)                                        //nolint:errcheck // until the client goes
	})
	postgres := server(t, func(c net.Conn) {
		b := make([]byte, 8)
		if _, err := io.ReadFull(c, b); err == nil && bytes.Equal(b, []byte{0, 0, 0, 8, 4, 210, 22, 47}) {
			c.Write([]byte("N")) //nolint:errcheck // the test sees what arrives
		}
		io.Copy(io.Discard, c) //nolint:errcheck // until the client goes
	})
	silent := server(t, func(c net.Conn) { time.Sleep(10 * time.Millisecond) })
	for dsn, want := range map[string]string{
		"mysql://app@" + postgres + "/shop":  "speaks PostgreSQL's protocol: want postgres://",
		"postgres://app@" + mysql + "/shop":  "speaks MySQL's protocol: want mysql://",
		"mysql://app@" + mysql + "/shop":     "no answer from " + mysql + " within 5s",
		"postgres://app@" + silent + "/shop": "no answer from " + silent,
	} {
		target, err := ParseTarget(dsn)
		if err != nil {
			t.Fatal(err)
		}
		got := target.Explain(context.Background(), context.DeadlineExceeded)
		if got == nil || !strings.Contains(got.Error(), want) {
			t.Errorf("%s: %v, want %s", dsn, got, want)
		}
	}
}
