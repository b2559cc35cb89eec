package cache

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// benchStore holds n entries with a cell of their own and a shared one.
func benchStore(tb testing.TB, n int) (*Store, [][]byte) {
	s := newTestStore(tb, Options{LimitBytes: 1 << 30})
	value := strings.Repeat("v", 200)
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "context-0123456789abcdef/select c from t where id = %d", i)
		mustFill(tb, s, string(keys[i]), value, spread(i), 1)
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return s, keys
}

func TestGetDoesNotAllocate(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: small})
	mustFill(t, s, "k", "v", 1, 2)
	mustFill(t, s, "stale", "v", 3)
	s.Mark(3, 2)
	r := s.NewReader()
	keys := [][]byte{[]byte("k"), []byte("stale"), []byte("cold")}
	if n := testing.AllocsPerRun(1000, func() {
		r.Enter()
		for i, k := range keys {
			if _, l := r.Get(k); l != []Lookup{Found, Stale, Cold}[i] {
				t.Fatal("wrong look-up")
			}
		}
		r.Leave()
	}); n != 0 {
		t.Fatalf("%.1f allocations", n)
	}
}

func TestMarkDoesNotAllocate(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: small})
	mustFill(t, s, "k", "v", 1)
	if n := testing.AllocsPerRun(1000, func() { s.Mark(1, 2); s.Mark(2, 2) }); n != 0 {
		t.Fatalf("%.1f allocations", n)
	}
}

func benchGet(b *testing.B, n int) {
	s, keys := benchStore(b, n)
	var start atomic.Uint32
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		r := s.NewReader()
		defer r.Close()
		i := int(start.Add(1)) * 7919 % n
		for pb.Next() {
			r.Enter()
			_, l := r.Get(keys[i])
			r.Leave()
			if l != Found {
				b.Error("not found")
				return
			}
			if i++; i == n {
				i = 0
			}
		}
	})
}

// Run with -cpu 1,2.
func BenchmarkGet(b *testing.B) {
	for _, n := range []int{1, 1000, 500000} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) { benchGet(b, n) })
	}
}

// BenchmarkGetBatch is 16 look-ups in one event, with keys that are made anew
// for each, as a session's are.
func BenchmarkGetBatch(b *testing.B) {
	for _, n := range []int{1, 1000, 500000} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			s, keys := benchStore(b, n)
			r := s.NewReader()
			prefix := keys[0][:bytes.LastIndexByte(keys[0], ' ')+1]
			key := bytes.Clone(prefix)
			rng := rand.New(rand.NewPCG(1, 2))
			b.ReportAllocs()
			for b.Loop() {
				r.Enter()
				for range 16 {
					key = strconv.AppendInt(key[:len(prefix)], int64(rng.Uint32N(uint32(n))), 10)
					if _, l := r.Get(key); l != Found {
						b.Fatal("not found")
					}
				}
				r.Leave()
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/16, "ns/get")
		})
	}
}

func BenchmarkGetCold(b *testing.B) {
	s, _ := benchStore(b, 100000)
	r := s.NewReader()
	prefix := "context-0123456789abcdef/select c from t where id = -"
	key := []byte(prefix)
	for i := int64(0); b.Loop(); i++ {
		key = strconv.AppendInt(key[:len(prefix)], i, 10)
		r.Enter()
		r.Get(key)
		r.Leave()
	}
}

// BenchmarkFill claims, appends and finishes; 0 % of the keys are there before,
// so that in the long run each stored answer evicts another.
func BenchmarkFill(b *testing.B) {
	for _, limit := range []int64{8 << 20, 256 << 20} {
		b.Run(fmt.Sprintf("limit=%d", limit), func(b *testing.B) {
			s := newTestStore(b, Options{LimitBytes: limit})
			value := []byte(strings.Repeat("v", 200))
			var key []byte
			deps := []Dep{0, 1}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				key = fmt.Appendf(key[:0], "context/select c from t where id = %d", i)
				deps[0] = spread(i)
				if f, c := s.Claim(key, deps, 0, [2]uint64{}, true, nil); c == Leader {
					f.Append(value)
					f.Finish()
				}
			}
			b.ReportMetric(float64(s.Stats().Evictions)/float64(b.N), "evictions/op")
		})
	}
}

// BenchmarkRefill replaces one key's answer again and again.
func BenchmarkRefill(b *testing.B) {
	s := newTestStore(b, Options{LimitBytes: small})
	key, value, deps := []byte("key"), []byte(strings.Repeat("v", 200)), []Dep{1, 2}
	b.ReportAllocs()
	for b.Loop() {
		if f, c := s.Claim(key, deps, 0, [2]uint64{}, true, nil); c == Leader {
			f.Append(value)
			f.Finish()
		}
	}
}

func BenchmarkMark(b *testing.B) {
	for _, there := range []bool{true, false} {
		b.Run(fmt.Sprintf("cell=%v", there), func(b *testing.B) {
			s, keys := benchStore(b, 100000)
			base := 0
			if !there {
				base = len(keys)
			}
			for i := 0; b.Loop(); i++ {
				s.Mark(spread(base+i%len(keys)), Position(i))
			}
		})
	}
}

// BenchmarkGetWhileFilling is Get with a second goroutine that stores and
// evicts all the time.
func BenchmarkGetWhileFilling(b *testing.B) {
	s := newTestStore(b, Options{LimitBytes: 32 << 20})
	value := strings.Repeat("v", 200)
	mustFill(b, s, "hot", value, 1, 2)
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; !stop.Load(); i++ {
			fill(b, s, keyOf(i), value, spread(i), 1)
		}
	}()
	r := s.NewReader()
	key := []byte("hot")
	missed := 0
	for b.Loop() {
		r.Enter()
		if _, l := r.Get(key); l != Found {
			missed++
		}
		r.Leave()
	}
	stop.Store(true)
	<-done
	if st := s.Stats(); missed > 0 {
		b.Fatalf("%d of %d not found; %+v", missed, b.N, st)
	}
}
