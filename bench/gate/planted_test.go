package gate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"freshet/bench/upstream"
	"freshet/bench/wire"
)

// relay stands between a client and a server. request may answer in the
// server's place; reply may change what the server said.
type relay struct {
	listener net.Listener
	server   string
	request  func(b []byte) (answer []byte)
	reply    func(request, b []byte) []byte
	whole    func(request, reply []byte) // a whole reply has gone by
	wg       sync.WaitGroup
}

func (r *relay) start(t *testing.T, server string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.listener, r.server = l, server
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		r.wg.Wait()
	})
	r.wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			r.wg.Go(func() {
				if err := r.session(client); err != nil {
					t.Log("relay:", err)
				}
			})
		}
	})
}

// session copies both ways until either side closes. The gate's sessions send
// one request at a time, so the newest is the one being answered.
func (r *relay) session(client net.Conn) error {
	server, err := net.Dial("tcp", r.server)
	if err != nil {
		return errors.Join(err, client.Close())
	}
	var mu sync.Mutex
	var newest, answer []byte
	done := make(chan error, 1)
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil {
				done <- client.Close()
				return
			}
			mu.Lock()
			b := r.reply(newest, buf[:n])
			answer = append(answer, b...)
			mu.Unlock()
			if _, err := client.Write(b); err != nil {
				done <- client.Close()
				return
			}
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return errors.Join(server.Close(), <-done)
		}
		mu.Lock()
		if r.whole != nil && newest != nil {
			r.whole(newest, answer)
		}
		newest, answer = append([]byte(nil), buf[:n]...), nil
		to, b := io.Writer(server), newest
		if known := r.request(newest); known != nil {
			to, b, answer = client, known, known
		}
		mu.Unlock()
		if _, err := to.Write(b); err != nil {
			return errors.Join(server.Close(), <-done)
		}
	}
}

func noAnswer([]byte) []byte     { return nil }
func asIs(_, b []byte) []byte    { return b }
func swapped(_, b []byte) []byte { return bytes.Replace(b, []byte("sku-03"), []byte("sku-30"), 1) }
func otherTag(_, b []byte) []byte {
	return bytes.Replace(b, []byte("INSERT 0 3"), []byte("INSERT 0 2"), 1)
}
func otherCode(_, b []byte) []byte { return bytes.Replace(b, []byte("42601"), []byte("42602"), 1) }
func otherErr(_, b []byte) []byte  { return bytes.Replace(b, []byte("#42000"), []byte("#42001"), 1) }

// TestFindsPlantedDifferences: bytes changed on their way must be found.
func TestFindsPlantedDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		kind  upstream.Kind
		reply func(request, b []byte) []byte
	}{
		"a value, MariaDB":          {upstream.MariaDB, swapped},
		"a SQLSTATE, MariaDB":       {upstream.MariaDB, otherErr},
		"a value, PostgreSQL":       {upstream.Postgres15, swapped},
		"a command tag, PostgreSQL": {upstream.Postgres15, otherTag},
		"a SQLSTATE, PostgreSQL":    {upstream.Postgres15, otherCode},
	} {
		t.Run(name, func(t *testing.T) {
			report := runThroughRelay(t, c.kind, &relay{request: noAnswer, reply: c.reply})
			if report.Differences == 0 {
				t.Errorf("seed %d: %d calls and not one difference found", report.Seed, report.Calls)
			}
		})
	}
}

// TestFindsStaleAnswers: a cache that never forgets must be found out.
func TestFindsStaleAnswers(t *testing.T) {
	for _, kind := range []upstream.Kind{upstream.MariaDB, upstream.Postgres15} {
		t.Run(string(kind), func(t *testing.T) {
			kept := make(map[string][]byte)
			var mu sync.Mutex
			cacheable := func(request []byte) bool {
				isText := len(request) > 5 && (request[0] == 'Q' || request[4] == wire.ComQuery)
				return isText && bytes.Contains(request, []byte("SELECT")) && bytes.Contains(request, []byte("items")) && !bytes.Contains(request, []byte("lane"))
			}
			remember := func(request, reply []byte) {
				mu.Lock()
				defer mu.Unlock()
				if cacheable(request) && kept[string(request)] == nil {
					kept[string(request)] = reply
				}
			}
			answer := func(request []byte) []byte {
				mu.Lock()
				defer mu.Unlock()
				return kept[string(request)]
			}
			report := runThroughRelay(t, kind, &relay{request: answer, reply: asIs, whole: remember})
			if report.Differences == 0 {
				t.Errorf("seed %d: %d calls, %d answers kept for ever, and not one difference found", report.Seed, report.Calls, len(kept))
			}
		})
	}
}

func runThroughRelay(t *testing.T, kind upstream.Kind, r *relay) Report {
	t.Helper()
	s := upstream.Need(t, kind)
	target, err := wire.Parse(s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	r.start(t, target.Address())
	through := target.At("127.0.0.1", r.listener.Addr().(*net.TCPAddr).Port)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	const seed = 20 // the same for every run, so that a change to the code is what a failure speaks of
	report, err := Run(ctx, Config{
		Direct: s.DSN(), Through: through.DSN(), Calls: 2500, Seed: seed, MaxStaleness: 20 * time.Millisecond, Enough: 1, Out: tlog{t},
	})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return report
}

// TestRelayIsInnocent: the relay alone changes nothing.
func TestRelayIsInnocent(t *testing.T) {
	for _, kind := range []upstream.Kind{upstream.MariaDB, upstream.Postgres15} {
		t.Run(string(kind), func(t *testing.T) {
			if report := runThroughRelay(t, kind, &relay{request: noAnswer, reply: asIs}); report.Differences != 0 {
				t.Errorf("seed %d: %d differences", report.Seed, report.Differences)
			}
		})
	}
}
