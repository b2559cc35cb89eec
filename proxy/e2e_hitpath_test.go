package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
	"freshet/bench/wire"
	"freshet/proxy"
)

// rawHit is a connection, a request that is answered from memory and the size
// of its reply.
type rawHit struct {
	net     net.Conn
	request []byte
	reply   []byte
}

func (h *rawHit) call() error {
	if _, err := h.net.Write(h.request); err != nil {
		return err
	}
	_, err := io.ReadFull(h.net, h.reply)
	return err
}

// benchHit measures a hit from the client's write to its read of the whole
// reply, and what the proxy (which runs in this process) allocates meanwhile.
func benchHit(b *testing.B, prepared bool) {
	for _, kind := range []upstream.Kind{upstream.MariaDB, upstream.Postgres15} {
		b.Run(string(kind), func(b *testing.B) {
			r := newRig(b, upstream.Need(b, kind), proxy.Config{Loops: 1})
			h := r.rawHit(b, prepared)
			b.ReportAllocs()
			for b.Loop() {
				if err := h.call(); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			if hits := r.metric(b, "hit"); hits < float64(b.N) {
				b.Fatalf("%v of %d calls were hits", hits, b.N)
			}
		})
	}
}

func BenchmarkHitText(b *testing.B)     { benchHit(b, false) }
func BenchmarkHitPrepared(b *testing.B) { benchHit(b, true) }

// A hit allocates nothing: what is seen here is the feed's probes and the
// test's own, far fewer than one for each hit.
func TestHitsDoNotAllocate(t *testing.T) {
	for _, kind := range []upstream.Kind{upstream.MariaDB, upstream.Postgres15} {
		for _, prepared := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/prepared=%v", kind, prepared), func(t *testing.T) {
				r := newRig(t, upstream.Need(t, kind), proxy.Config{Loops: 1})
				h := r.rawHit(t, prepared)
				const calls = 5_000
				before := r.metric(t, "hit")
				perRun := testing.AllocsPerRun(1, func() {
					for range calls {
						if err := h.call(); err != nil {
							t.Fatal(err)
						}
					}
				})
				if hits := r.metric(t, "hit") - before; hits < calls {
					t.Fatalf("only %v hits", hits)
				}
				if each := perRun / calls; each > 0.5 {
					t.Errorf("%.2f allocations a hit", each)
				}
			})
		}
	}
}

// rawHit makes a request and repeats it until it is a hit.
func (r *rig) rawHit(t testing.TB, prepared bool) *rawHit {
	t.Helper()
	tb := r.table(t, "id INT PRIMARY KEY, v VARCHAR(40)", "7,'an answer of some length'")
	target, err := wire.Parse(r.url())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	h := &rawHit{}
	sql := "SELECT v FROM " + tb + " WHERE id = 7"
	if r.postgres() {
		c, err := wire.DialPostgres(ctx, target, wire.PostgresOptions{})
		if err != nil {
			t.Fatal(err)
		}
		h.net, h.request = c.Net, wire.AppendQuery(nil, sql)
		if prepared {
			if err := c.Send(wire.AppendSync(wire.AppendParse(nil, "s", sql, nil))); err != nil {
				t.Fatal(err)
			}
			if _, err := c.ReadReady(1, nil); err != nil {
				t.Fatal(err)
			}
			h.request = wire.AppendSync(wire.AppendExecute(wire.AppendBind(nil, "", "s", nil, nil), "", 0))
		}
	} else {
		c, err := wire.DialMySQL(ctx, target, wire.MySQLOptions{})
		if err != nil {
			t.Fatal(err)
		}
		h.net, h.request = c.Net, wire.AppendPacket(nil, 0, append([]byte{3}, sql...))
		if prepared {
			p, _, err := c.Prepare(sql)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := wire.AppendStmtExecute(nil, p.ID, 0, nil, nil)
			h.request = wire.AppendPacket(nil, 0, body)
		}
	}
	t.Cleanup(func() { h.net.Close() })
	if err := h.net.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	h.learn(t, r)
	return h
}

// learn sends the request until it is a hit, and notes how long the reply is:
// everything that comes until nothing comes any more.
func (h *rawHit) learn(t testing.TB, r *rig) {
	t.Helper()
	buf := make([]byte, 4096)
	deadline := time.Now().Add(patience)
	for {
		before := r.metric(t, "hit")
		if _, err := h.net.Write(h.request); err != nil {
			t.Fatal(err)
		}
		n := 0
		for {
			if err := h.net.SetReadDeadline(time.Now().Add(30 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			m, err := h.net.Read(buf[n:])
			if n += m; err != nil {
				break
			}
		}
		if n > 0 && r.metric(t, "hit") > before {
			h.reply = make([]byte, n)
			if err := h.net.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no hit; the last reply was %q", buf[:n])
		}
	}
}

// metric reads freshet_queries_total of a source.
func (r *rig) metric(t testing.TB, source string) float64 {
	t.Helper()
	for _, line := range strings.Split(get(t, r, "/metrics"), "\n") {
		if strings.HasPrefix(line, "freshet_queries_total{") && strings.Contains(line, `source="`+source+`"`) {
			var n float64
			if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no metric for source ", source)
	return 0
}
