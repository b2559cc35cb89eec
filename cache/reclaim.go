package cache

import (
	"math"
	"sync"
	"sync/atomic"
)

// A reclaimer tells when memory that was unlinked can no longer be seen.
//
// The scheme is epoch-based reclamation with quiescent Readers (RCU/QSBR;
// Fraser, "Practical lock-freedom", 2004, section 5.2.3). A Reader announces
// the epoch when it enters an event and 0 when it leaves. Whoever unlinks
// something then advances the epoch to e; the memory may be reused once every
// Reader is idle or has announced an epoch >= e.
//
// Why this holds, all these operations being sequentially consistent:
//   - A Reader that announced an epoch >= e read it after the advance, so after
//     the unlinking, and cannot find the memory.
//   - A Reader that could have found it announced less than e before it looked.
//     If the scan of oldest does not see the announcement, then it came after
//     the scan, so the look-up came after the unlinking, and found nothing.
//   - A Reader registered after the scan took the list is the same case.
//
// Nobody ever waits: memory that may still be seen stays in a limbo list, and
// the caller does without. A caller inside an event of its own would otherwise
// wait for itself.
type reclaimer struct {
	epoch atomic.Uint64 // starts at 1, because 0 is "idle"
	_     [120]byte     // Enter reads epoch; keep the list's writes off its line

	readers atomic.Pointer[[]*Reader] // copied on every change
	mu      sync.Mutex                // guards changes of readers, and tables
	tables  []retiredTable
	pending atomic.Int32 // len(tables), to be read without mu
}

type retiredTable struct {
	table *table
	epoch uint64
}

func (c *reclaimer) init() {
	c.epoch.Store(1)
	c.readers.Store(&[]*Reader{})
}

// retire is called after something was unlinked; it returns the epoch that
// oldest must reach before the memory is reused.
func (c *reclaimer) retire() uint64 { return c.epoch.Add(1) }

// oldest returns the lowest epoch that a Reader is in.
func (c *reclaimer) oldest() uint64 {
	low := uint64(math.MaxUint64)
	for _, r := range *c.readers.Load() {
		if e := r.epoch.Load(); e != 0 && e < low {
			low = e
		}
	}
	return low
}

func (c *reclaimer) register(r *Reader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := *c.readers.Load()
	list := append(append(make([]*Reader, 0, len(old)+1), old...), r)
	c.readers.Store(&list)
}

func (c *reclaimer) unregister(r *Reader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := *c.readers.Load()
	list := make([]*Reader, 0, len(old))
	for _, other := range old {
		if other != r {
			list = append(list, other)
		}
	}
	c.readers.Store(&list)
}

// retireTable takes an index table that was replaced.
func (c *reclaimer) retireTable(t *table) {
	e := c.retire()
	c.mu.Lock()
	c.tables = append(c.tables, retiredTable{t, e})
	c.pending.Store(int32(len(c.tables)))
	c.mu.Unlock()
}

// freeTables unmaps the tables that nobody can see any more and credits them.
func (c *reclaimer) freeTables(acct *account) {
	if c.pending.Load() == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	low := c.oldest()
	kept := c.tables[:0]
	for _, r := range c.tables {
		if r.epoch > low {
			kept = append(kept, r)
			continue
		}
		bytes := r.table.bytes()
		r.table.mem.free()
		acct.give(bytes)
	}
	clear(c.tables[len(kept):])
	c.tables = kept
	c.pending.Store(int32(len(kept)))
}
