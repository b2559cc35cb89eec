package cache

import "sync/atomic"

// A Reader looks entries up. It belongs to one goroutine, which brackets each
// of its events with Enter and Leave and calls Get only in between. A Reader
// outside an event holds nothing up; one that stays inside keeps memory that
// was evicted since from being reused, so that in time nothing can be stored.
type Reader struct {
	_     [64]byte      // own cache line: writers scan epoch, the owner writes it twice an event
	epoch atomic.Uint64 // 0 outside an event
	_     [56]byte
	store *Store
}

// NewReader returns a Reader, to be closed when its goroutine ends.
func (s *Store) NewReader() *Reader {
	r := &Reader{store: s}
	s.reclaim.register(r)
	return r
}

// Close ends the use of the Reader.
func (r *Reader) Close() {
	r.epoch.Store(0)
	r.store.reclaim.unregister(r)
}

// Enter begins an event. Events do not nest.
func (r *Reader) Enter() { r.epoch.Store(r.store.reclaim.epoch.Load()) }

// Leave ends an event: bytes that Get returned in it are no longer valid.
func (r *Reader) Leave() { r.epoch.Store(0) }

// Lookup is what Get found.
type Lookup uint8

const (
	// Cold: no entry has the key.
	Cold Lookup = iota
	// Found: the entry is there and valid.
	Found
	// Stale: the entry is there, but something it was read from changed after
	// it was filled, or it was flushed.
	Stale
)

// Hit is one found entry.
type Hit struct {
	// Value is the answer, read-only, valid until the Reader leaves the event.
	Value []byte
	// Meta is what the caller gave to Claim or SetMeta.
	Meta [2]uint64
	// FilledAt is the position up to which the answer had seen all changes.
	FilledAt Position
}

// Get looks a key up. It allocates nothing, takes no lock, and writes to
// shared memory only while the entry's count of hits is not yet full.
//
// If a Mark of one of the entry's dependencies at a position after its
// filledAt, or a Flush, returned before Get began, the entry is not Found. The
// entry's cells may have been freed by then (it was replaced or evicted while
// this Reader holds it) and even be in use for other dependencies; that is no
// harm, because a cell's position only ever rises, also across reuse: what
// Mark wrote is still there or exceeded. And a Mark that no longer reached
// those cells, because the entry had been unlinked before, began after Get.
func (r *Reader) Get(key []byte) (Hit, Lookup) {
	if checkedMemory && r.epoch.Load() == 0 {
		panic("cache: Get outside an event")
	}
	s := r.store
	h := s.hash(key)
	sh, tag := s.shardOf(h), tagOf(h)
	e, _ := sh.table.Load().get(s.arena, tag, key)
	if e == nil {
		if e = sh.lookAgain(s.arena, tag, key); e == nil {
			return Hit{}, Cold
		}
	}
	epoch, hits := e.loadWord()
	if epoch != s.epoch.Load() {
		return Hit{}, Stale
	}
	filledAt := e.filledAt
	for _, c := range e.cells() {
		if s.cells.changedAt(c) > filledAt {
			return Hit{}, Stale
		}
	}
	e.hit(epoch, hits)
	return Hit{Value: e.value(), Meta: e.meta, FilledAt: filledAt}, Found
}
