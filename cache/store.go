package cache

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
	"unsafe"

	"github.com/cespare/xxhash/v2"
)

// Options are what a Store is made with.
type Options struct {
	// LimitBytes bounds the store's memory: segments, index, cells and answers
	// being filled, in whole pages as the kernel counts them. At least 2 MiB.
	LimitBytes int64
	// MaxEntryBytes bounds one answer; 0 means 1 MiB. An entry lies in one
	// segment, and a segment is at most a thirty-second of LimitBytes, so that
	// a small store may hold less: Store.MaxEntryBytes tells.
	MaxEntryBytes int
}

const (
	minLimit        = 2 << 20
	minSegment      = 64 << 10
	maxSegment      = 1 << 30
	defaultMaxEntry = 1 << 20
	maxShards       = 64
	maxCellShards   = 256
)

var errTooSmall = errors.New("cache: LimitBytes is too small: at least 2 MiB are needed")

// A Store holds answers. Its methods may be called from any goroutine, except
// that Mark, SetApplied and SetVisible are the feed's.
type Store struct {
	// Read by every Get, written never or rarely.
	arena     unsafe.Pointer
	salt      uint64
	shardMask uint64
	segShift  uint
	shards    []shard
	epoch     atomic.Uint32 // number of Flushes
	cells     cells
	recent    recent
	segments  []segment
	maxEntry  int

	recentMem, ghostMem memory

	// Written by fills, by storing, by Readers coming and going, by the feed:
	// each away from the rest.
	_        [128]byte
	pool     pool
	acct     account // everything but answers being filled
	fillAcct account // those
	_        [128]byte
	reclaim  reclaimer
	_        [128]byte
	applied  atomic.Uint64
	_        [128]byte
	visible  atomic.Uint64
	_        [128]byte
}

// New makes an empty Store. Memory is reserved as address space at once and
// occupied as it fills.
func New(o Options) (*Store, error) { return newStore(o, rand.Uint64()) }

// newStore is New with the salt chosen, so that a test can be repeated.
func newStore(o Options, salt uint64) (*Store, error) {
	if o.LimitBytes < minLimit {
		return nil, errTooSmall
	}
	if o.MaxEntryBytes <= 0 {
		o.MaxEntryBytes = defaultMaxEntry
	}
	s := &Store{maxEntry: min(o.MaxEntryBytes, maxValueLen), salt: salt | 1}
	limit := min(o.LimitBytes, maxArena)
	s.fillAcct.limit = limit / 16
	s.acct.limit = limit - s.fillAcct.limit
	s.reclaim.init()
	if err := s.build(limit); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// segmentSize is a thousandth of the limit, up to 2 MiB, or what holds the
// largest entry if that is more; but at most a thirty-second of the limit.
func segmentSize(limit, maxEntry int64) int64 {
	size := min(max(pow2Below(limit/1024), minSegment), hugePage)
	size = max(size, pow2Above(maxEntry+entryHead+4*MaxDeps+MaxKeyBytes+segmentStart+segmentEnd))
	return max(min(size, pow2Below(limit/32), maxSegment), minSegment)
}

func (s *Store) build(limit int64) error {
	segSize := segmentSize(limit, int64(s.maxEntry))
	total := s.acct.limit / segSize
	shards := int(min(max(pow2Below(total/64), 1), maxShards))
	s.segShift = log2(int(segSize))
	s.shardMask = uint64(shards - 1)
	s.segments = make([]segment, total)

	p := &s.pool
	p.acct, p.segSize, p.total = &s.acct, uint64(segSize), int32(total)
	var err error
	if p.mem, err = mapMemory(int(total*segSize), segSize >= hugePage); err != nil {
		return err
	}
	s.arena = p.mem.base()

	ghostBytes := limit / 256 / 4096 * 4096
	if !s.acct.take(recentBytes+ghostBytes, 0) {
		return errTooSmall
	}
	if s.recentMem, err = mapMemory(recentBytes, false); err != nil {
		return err
	}
	s.recent.slots = unsafe.Slice((*uint64)(s.recentMem.base()), recentSlots)
	if s.ghostMem, err = mapMemory(int(ghostBytes), false); err != nil {
		return err
	}
	cellShards := int(min(max(pow2Below(limit>>23), 1), maxCellShards))
	if err = s.cells.init(&s.acct, &s.recent, cellShards, s.salt); err != nil {
		return err
	}
	return s.buildShards(shards, ghostBytes)
}

func (s *Store) buildShards(n int, ghostBytes int64) error {
	prints := unsafe.Slice((*uint32)(s.ghostMem.base()), ghostBytes/4)
	s.shards = make([]shard, n)
	if !s.acct.take(int64(n)*tableBytes(0), 0) {
		return errTooSmall
	}
	for i := range s.shards {
		share := len(prints) / n
		if err := s.shards[i].init(s, ghost{prints[i*share:][:share]}); err != nil {
			return err
		}
	}
	// From here on some of the limit is left for cells and tables to grow.
	s.pool.spare = s.acct.limit / 32
	return nil
}

// Close gives all memory back. Nothing may use the Store, its Readers, its
// fills or what Get returned, any more.
func (s *Store) Close() {
	for i := range s.shards {
		if t := s.shards[i].table.Swap(nil); t != nil {
			t.mem.free()
		}
	}
	for _, r := range s.reclaim.tables {
		r.table.mem.free()
	}
	s.reclaim.tables = nil
	s.cells.free()
	s.pool.mem.free()
	s.recentMem.free()
	s.ghostMem.free()
}

// MaxEntryBytes is the largest answer that can be stored under a short key.
func (s *Store) MaxEntryBytes() int { return s.maxValueFor(64, 4) }

// maxValueFor is what an answer may be at most, beside such a key and cells;
// negative if these alone do not fit.
func (s *Store) maxValueFor(key, cells int) int {
	room := int(s.pool.segSize) - segmentStart - segmentEnd - entryAlign - entryHead - 4*cells - key
	return min(s.maxEntry, room)
}

// Flush drops everything. When it returns, no Get that begins finds an answer
// whose fill was claimed before; fills that run are not kept. The memory is
// reused first. (A store that was flushed 2^30 times keeps nothing any more,
// rather than confuse epochs.)
func (s *Store) Flush() {
	for {
		e := s.epoch.Load()
		if e == epochMax || s.epoch.CompareAndSwap(e, e+1) {
			break
		}
	}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		sh.syncEpoch()
		sh.mu.Unlock()
	}
}

// Mark notes that dep changed at a position; positions must not fall. Answers
// that depend on it and were filled before that are not served by any Get that
// begins after Mark returns. For the feed's goroutine.
func (s *Store) Mark(dep Dep, at Position) { s.cells.mark(uint64(dep), at) }

// SetApplied says that all changes up to p have been marked.
func (s *Store) SetApplied(p Position) { s.applied.Store(uint64(p)) }

// Applied returns what SetApplied said last.
func (s *Store) Applied() Position { return Position(s.applied.Load()) }

// SetVisible says that all changes up to p can be read by statements sent from
// now on; 0 says that nothing is known, and nothing is filled.
func (s *Store) SetVisible(p Position) { s.visible.Store(uint64(p)) }

// Visible returns what SetVisible said last.
func (s *Store) Visible() Position { return Position(s.visible.Load()) }

func (s *Store) loadEpoch() uint32 { return s.epoch.Load() }

// valid reports whether no cell changed after a position.
func (s *Store) valid(list []uint32, filledAt Position) bool {
	for _, c := range list {
		if s.cells.changedAt(c) > filledAt {
			return false
		}
	}
	return true
}

func (s *Store) at(off uint64) unsafe.Pointer { return unsafe.Add(s.arena, off) }

func (s *Store) entryAt(off uint64) *entry { return (*entry)(s.at(off)) }

// hash is salted, so that which keys share a shard or a place in an index is not
// for clients to choose. Its low bits choose the shard, its high ones the tag.
func (s *Store) hash(key []byte) uint64 { return xxhash.Sum64(key) * s.salt }

func (s *Store) shardOf(hash uint64) *shard { return &s.shards[hash&s.shardMask] }

// tagOf is the part of a hash that its slot holds.
func tagOf(hash uint64) uint64 { return hash >> locationBits }

func log2(n int) uint { return uint(bits.Len(uint(n)) - 1) }

// pow2Below is the largest power of two <= n, 0 for n < 1.
func pow2Below(n int64) int64 {
	if n < 1 {
		return 0
	}
	return 1 << (bits.Len64(uint64(n)) - 1)
}

// pow2Above is the smallest power of two >= n.
func pow2Above(n int64) int64 { return 1 << bits.Len64(uint64(n-1)) }
