package proxy

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// sealedLine is the net.Conn that crypto/tls has under it: records come from
// the loop and go to the loop. It has two lives. While shaking, the handshake
// reads and writes from a goroutine of its own and waits for bytes. From then on
// the loop alone uses it, and a read that finds nothing tells errNoMore, which
// crypto/tls takes for a deadline that has passed: it keeps what it has of a
// record and may be asked again.
type sealedLine struct {
	shaking bool // changed by the loop once the goroutine is done
	remote  net.Addr

	// While shaking.
	mu    sync.Mutex
	ended error
	come  chan struct{} // told, with room for one word, of bytes or of the end
	post  func([]byte)  // takes what is to be sent
	turns chan struct{} // has a place for each handshake that may compute
	// silentSince: waiting for the client since then (Unix nanoseconds), 0 for not.
	silentSince atomic.Int64

	in  []byte // come and not yet read; mu's while shaking
	out []byte // written by crypto/tls in this call of the loop
}

// noMore tells that there are no bytes yet.
type noMore struct{}

func (noMore) Error() string   { return "no more bytes for now" }
func (noMore) Timeout() bool   { return true }
func (noMore) Temporary() bool { return true }

var errNoMore net.Error = noMore{}

// maxShaking bounds what a client may have sent that its handshake has not read:
// more than the longest message that crypto/tls takes.
const maxShaking = 320 << 10

// feed hands the handshake what has come, and tells whether that was too much.
func (l *sealedLine) feed(b []byte) (ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.in)+len(b) > maxShaking {
		return false
	}
	l.in = append(l.in, b...)
	l.wake()
	return true
}

// end has the handshake fail.
func (l *sealedLine) end(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		l.ended = why
	}
	l.wake()
}

func (l *sealedLine) wake() {
	select {
	case l.come <- struct{}{}:
	default:
	}
}

// Read implements net.Conn.
func (l *sealedLine) Read(p []byte) (int, error) {
	if l.shaking {
		return l.readWaiting(p)
	}
	if len(l.in) == 0 {
		return 0, errNoMore
	}
	n := copy(p, l.in)
	l.in = l.in[n:]
	return n, nil
}

// readWaiting waits for bytes, and lets another handshake compute meanwhile.
func (l *sealedLine) readWaiting(p []byte) (int, error) {
	for {
		l.mu.Lock()
		n, err := copy(p, l.in), l.ended
		l.in = l.in[n:]
		l.mu.Unlock()
		if err != nil {
			return 0, err
		}
		if n > 0 || len(p) == 0 {
			return n, nil
		}
		<-l.turns
		l.silentSince.Store(time.Now().UnixNano())
		<-l.come
		l.silentSince.Store(0)
		l.turns <- struct{}{}
	}
}

// silent is how long the handshake has been waiting for its client.
func (l *sealedLine) silent() time.Duration {
	since := l.silentSince.Load()
	if since == 0 {
		return 0
	}
	return time.Duration(time.Now().UnixNano() - since)
}

// Write implements net.Conn.
func (l *sealedLine) Write(p []byte) (int, error) {
	if l.shaking {
		l.post(append([]byte(nil), p...))
	} else {
		l.out = append(l.out, p...)
	}
	return len(p), nil
}

// The rest of net.Conn, of which crypto/tls needs nothing here: the socket is
// the loop's to close, and time is kept by handshakes.

func (l *sealedLine) Close() error                     { return nil }
func (l *sealedLine) LocalAddr() net.Addr              { return l.remote }
func (l *sealedLine) RemoteAddr() net.Addr             { return l.remote }
func (l *sealedLine) SetDeadline(time.Time) error      { return nil }
func (l *sealedLine) SetReadDeadline(time.Time) error  { return nil }
func (l *sealedLine) SetWriteDeadline(time.Time) error { return nil }
