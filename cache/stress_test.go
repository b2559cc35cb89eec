package cache

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// world is an upstream with rows, each with a version, and what the feed has
// told the store of them. An answer is read from one row and from the table.
type world struct {
	s        *Store
	versions [stressRows]atomic.Uint32 // as statements read them
	marked   [stressRows]atomic.Uint32 // versions whose Mark has returned
	table    atomic.Uint32
	tableMk  atomic.Uint32
	flushing atomic.Uint32 // Flushes begun
	flushed  atomic.Uint32 // Flushes returned
	stop     atomic.Bool
	failed   atomic.Pointer[string]

	hits, fills, stored atomic.Int64
}

const stressRows = 3000

var stressTable = DepOfTable(1)

func stressDep(row int) Dep { return DepOfShape(ShapeID(row)) }

func stressKey(buf []byte, row int) []byte { return fmt.Appendf(buf[:0], "select %d", row) }

func (w *world) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.failed.CompareAndSwap(nil, &text)
	w.stop.Store(true)
}

// answer is row, row version, table version, flushes begun, then bytes that
// depend on all of these, and a checksum.
func (w *world) answer(row int, rng *rand.Rand) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(row))
	b = binary.LittleEndian.AppendUint32(b, w.versions[row].Load())
	b = binary.LittleEndian.AppendUint32(b, w.table.Load())
	b = binary.LittleEndian.AppendUint32(b, w.flushing.Load())
	for n := rng.IntN(3000); n > 0; n-- {
		b = append(b, b[len(b)-7]*31+byte(n))
	}
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func (w *world) verify(row int, b []byte, version, table, flushed uint32) {
	if len(b) < 20 || crc32.ChecksumIEEE(b[:len(b)-4]) != binary.LittleEndian.Uint32(b[len(b)-4:]) {
		w.fail("row %d: torn answer of %d bytes", row, len(b))
		return
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }
	if word(0) != uint32(row) {
		w.fail("row %d got the answer of row %d", row, word(0))
	}
	if word(1) < version || word(2) < table || word(3) < flushed {
		w.fail("row %d: versions %d %d %d served, but %d %d %d were marked before", row, word(1), word(2), word(3), version, table, flushed)
	}
}

// read looks rows up in events of several look-ups and checks the bytes both
// at once and at the end of the event.
func (w *world) read(rng *rand.Rand) {
	r := w.s.NewReader()
	defer r.Close()
	type held struct {
		row, version, table, flushed int
		value                        []byte
	}
	var hits []held
	var buf []byte
	for !w.stop.Load() {
		r.Enter()
		hits = hits[:0]
		for range 1 + rng.IntN(8) {
			row := w.row(rng)
			h := held{row, int(w.marked[row].Load()), int(w.tableMk.Load()), int(w.flushed.Load()), nil}
			buf = stressKey(buf, row)
			hit, l := r.Get(buf)
			if l != Found {
				continue
			}
			h.value = hit.Value
			w.verify(row, h.value, uint32(h.version), uint32(h.table), uint32(h.flushed))
			hits = append(hits, h)
		}
		if rng.IntN(200) == 0 {
			w.linger()
		}
		for _, h := range hits {
			w.verify(h.row, h.value, uint32(h.version), uint32(h.table), uint32(h.flushed))
		}
		w.hits.Add(int64(len(hits)))
		r.Leave()
		runtime.Gosched()
	}
}

// linger waits until so much was stored that, but for the Reader that is inside
// an event, memory would be reused; not for long, since that may have stopped
// all storing.
func (w *world) linger() {
	until, begun := w.stored.Load()+400, time.Now()
	for w.stored.Load() < until && time.Since(begun) < 20*time.Millisecond && !w.stop.Load() {
		runtime.Gosched()
	}
}

// row prefers low numbers; a few are very hot.
func (w *world) row(rng *rand.Rand) int {
	if rng.IntN(3) == 0 {
		return rng.IntN(3)
	}
	return min(rng.IntN(stressRows), rng.IntN(stressRows))
}

// stressWaiter checks what it is told against what was marked when it joined.
type stressWaiter struct {
	w                       *world
	row                     int
	version, table, flushed uint32
}

func (x *stressWaiter) FillDone(value []byte, ok, _ bool) {
	if ok {
		x.w.verify(x.row, value, x.version, x.table, x.flushed)
	}
}

// fill claims rows and reads them upstream, as sessions inside events do, with
// a few statements in flight.
func (w *world) fill(rng *rand.Rand) {
	r := w.s.NewReader()
	defer r.Close()
	type flight struct {
		fill   *Fill
		answer []byte
	}
	var flights []flight
	var buf []byte
	for !w.stop.Load() {
		row := w.row(rng)
		buf = stressKey(buf, row)
		r.Enter()
		x := &stressWaiter{w, row, w.marked[row].Load(), w.tableMk.Load(), w.flushed.Load()}
		f, c := w.s.Claim(buf, []Dep{stressDep(row), stressTable}, 0, [2]uint64{uint64(row)}, true, x)
		r.Leave()
		if c == Leader {
			w.fills.Add(1)
			flights = append(flights, flight{f, w.answer(row, rng)})
		}
		if len(flights) < 4 {
			continue
		}
		i := rng.IntN(len(flights))
		r.Enter()
		w.land(rng, flights[i].fill, flights[i].answer)
		r.Leave()
		flights = append(flights[:i], flights[i+1:]...)
	}
	for _, f := range flights {
		f.fill.Abandon()
	}
}

// land ends a fill in one of the ways that fills end.
func (w *world) land(rng *rand.Rand, f *Fill, answer []byte) {
	switch half := len(answer) / 2; {
	case rng.IntN(50) == 0:
		f.Abandon()
	case f.Append(answer[:half]) && f.Append(answer[half:]) && f.Finish():
		w.stored.Add(1)
	}
}

// change is the feed and everybody who writes: sometimes a change is marked
// before statements can read it, sometimes after.
func (w *world) change(rng *rand.Rand) {
	at, nextFlush := Position(1), int64(2500)
	for !w.stop.Load() {
		at++
		row := w.row(rng)
		version, marked, dep := &w.versions[row], &w.marked[row], stressDep(row)
		if rng.IntN(2000) == 0 {
			version, marked, dep = &w.table, &w.tableMk, stressTable
		}
		if rng.IntN(2) == 0 {
			version.Add(1)
			w.s.Mark(dep, at)
		} else {
			w.s.Mark(dep, at)
			version.Add(1)
		}
		marked.Store(version.Load())
		w.s.SetApplied(at)
		if rng.IntN(4) == 0 {
			w.s.SetVisible(at)
		}
		for range 600 { // not so fast that nothing stays valid
			rng.Uint64()
		}
		if w.stored.Load() > nextFlush { // the store has been full for a while
			nextFlush += 2500
			w.flushing.Add(1)
			w.s.SetVisible(0)
			w.s.Flush()
			w.flushed.Add(1)
			w.s.SetVisible(at)
		}
	}
	w.s.SetVisible(at)
}

// The two promises under everything at once: an answer belongs to its key, and
// is not served once a Mark of what it was read from has returned.
func TestStress(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := newTestStore(t, Options{LimitBytes: 2 << 20})
	w := &world{s: s}
	var wg sync.WaitGroup
	start := func(i uint64, f func(*rand.Rand)) {
		wg.Go(func() { f(rand.New(rand.NewPCG(seed, i))) })
	}
	for i := range uint64(3) {
		start(i, w.read)
		start(10+i, w.fill)
	}
	start(20, w.change)
	// Until all that it is for has happened, and a second at least.
	enough := func(st Stats) bool {
		return w.hits.Load() > 1000 && st.Reclaimed > 10 && st.Evictions > 10 && st.Joined > 10 && st.Flushes > 0
	}
	begun := time.Now()
	for !w.stop.Load() {
		spent := time.Since(begun)
		if spent > time.Second && enough(s.Stats()) || spent > 20*time.Second {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.stop.Store(true)
	wg.Wait()
	if text := w.failed.Load(); text != nil {
		t.Fatal(*text)
	}
	check(t, s)
	st := s.Stats()
	t.Logf("%d hits, %d fills, %d stored, %d segments reclaimed, %d evictions, %d flushes, %d joined",
		w.hits.Load(), w.fills.Load(), w.stored.Load(), st.Reclaimed, st.Evictions, st.Flushes, st.Joined)
	if !enough(st) {
		t.Fatal("the run did not do what it is for")
	}
}
