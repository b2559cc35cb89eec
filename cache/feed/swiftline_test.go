package feed

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"
)

// linePair is both ends of a TCP connection, the first made swift.
func linePair(t *testing.T) (line, peer net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer closeQuietly(l)
	dialled, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if peer, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	line = swift(dialled)
	t.Cleanup(func() { closeQuietly(line); closeQuietly(peer) })
	return line, peer
}

// A swift line gives what any connection gives: the bytes in order, then the
// end.
func TestSwiftLineReadsToTheEnd(t *testing.T) {
	line, peer := linePair(t)
	sent := make([]byte, 3<<20)
	random := rand.NewChaCha8([32]byte{1})
	if _, err := io.ReadFull(random, sent); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := peer.Write(sent)
		failed <- errors.Join(err, peer.Close())
	}()
	got, err := io.ReadAll(line)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, sent) {
		t.Fatalf("%d bytes came of %d, or others", len(got), len(sent))
	}
	if n, err := line.Read(nil); n != 0 || err != nil {
		t.Fatalf("reading nothing gave %d, %v", n, err)
	}
}

// Whoever waits for bytes on a swift line is woken by its deadline and its end.
func TestSwiftLineIsInterrupted(t *testing.T) {
	line, _ := linePair(t)
	if err := line.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := line.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the deadline gave %v", err)
	}
	if err := line.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := line.Read(make([]byte, 1))
		read <- err
	}()
	time.Sleep(5 * time.Millisecond) // most often it waits by then; both ways must do
	if err := line.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-read:
		if !errors.Is(err, net.ErrClosed) {
			t.Fatalf("closing gave %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("closing wakes no reader")
	}
}
