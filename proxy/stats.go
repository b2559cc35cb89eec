package proxy

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// A tally is a counter that one loop writes and anybody reads. The loop is
// the only writer, so a load and a store do and no cache line is contended.
type tally struct{ n atomic.Uint64 }

func (t *tally) add(d uint64) { t.n.Store(t.n.Load() + d) }
func (t *tally) get() uint64  { return t.n.Load() }

// histogram counts durations in powers of two from 1 µs: bucket i holds those
// below 2^i µs.
type histogram struct {
	buckets [28]tally
	sum     tally // nanoseconds
}

func (h *histogram) observe(nanos int64, times uint64) {
	if nanos < 0 {
		nanos = 0
	}
	i := bits.Len64(uint64(nanos) / 1000)
	h.buckets[min(i, len(h.buckets)-1)].add(times)
	h.sum.add(uint64(nanos) * times)
}

// queryTally is what one loop counted of one query.
type queryTally struct {
	hits, joins, cold, stale, forwards tally
	upstreamMicros                     tally
}

const (
	tallyChunk  = 256
	tallyChunks = 256
)

// maxQueries bounds how many distinct queries are told apart; the rest share
// a line.
const maxQueries = tallyChunk * tallyChunks

// laneStats is what one loop counts of one upstream.
type laneStats struct {
	sources  [5]tally
	bypasses [bypasses]tally
	hits     histogram
	forwards histogram
	errors   tally // protocol errors
	// chunks grows as queries appear, so that a loop that never sees a query
	// holds nothing for it.
	chunks [tallyChunks]atomic.Pointer[[tallyChunk]queryTally]
	_      [64]byte // the next lane's counters start on another cache line
}

func (st *laneStats) query(index uint32) *queryTally {
	if index >= maxQueries {
		index = furtherQueries
	}
	slot := &st.chunks[index/tallyChunk]
	c := slot.Load()
	if c == nil {
		c = new([tallyChunk]queryTally)
		slot.Store(c)
	}
	return &c[index%tallyChunk]
}

func (st *laneStats) hit(index uint32) {
	st.sources[SourceHit].add(1)
	st.query(index).hits.add(1)
}

func (st *laneStats) joined(index uint32) {
	st.sources[SourceJoin].add(1)
	st.query(index).joins.add(1)
}

func (st *laneStats) missed(index uint32, stale bool) {
	q := st.query(index)
	if stale {
		q.stale.add(1)
	} else {
		q.cold.add(1)
	}
}

func (st *laneStats) completed(source Source, index uint32, nanos int64) {
	st.sources[source].add(1)
	q := st.query(index)
	if source == SourceForward {
		q.forwards.add(1)
	}
	q.upstreamMicros.add(uint64(nanos / 1000))
	st.forwards.observe(nanos, 1)
}

func (st *laneStats) bypassed(b Bypass) { st.bypasses[b].add(1) }

// upstreamStats is the lanes of one upstream, for those who add them up.
type upstreamStats struct {
	mu    sync.Mutex
	lanes []*laneStats
}

func (u *upstreamStats) lane() *laneStats {
	st := &laneStats{}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lanes = append(u.lanes, st)
	return st
}

func (u *upstreamStats) each(f func(*laneStats)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, st := range u.lanes {
		f(st)
	}
}

// queryTotals is a query's counts over all loops.
type queryTotals struct {
	Hits, Joins, Cold, Stale, Forwards, UpstreamMicros uint64
}

func (t queryTotals) count() uint64 { return t.Hits + t.Joins + t.Cold + t.Stale + t.Forwards }

func (u *upstreamStats) totals(index uint32) (t queryTotals) {
	u.each(func(st *laneStats) {
		c := st.chunks[index/tallyChunk].Load()
		if c == nil {
			return
		}
		q := &c[index%tallyChunk]
		t.Hits += q.hits.get()
		t.Joins += q.joins.get()
		t.Cold += q.cold.get()
		t.Stale += q.stale.get()
		t.Forwards += q.forwards.get()
		t.UpstreamMicros += q.upstreamMicros.get()
	})
	return t
}
