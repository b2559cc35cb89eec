package cache

import "sync/atomic"

// An account counts bytes against a limit that is never passed.
type account struct {
	limit int64
	used  atomic.Int64
}

// take adds n bytes and reports true, unless that would leave fewer than spare
// bytes below the limit.
func (a *account) take(n, spare int64) bool {
	for {
		u := a.used.Load()
		if u+n > a.limit-spare {
			return false
		}
		if a.used.CompareAndSwap(u, u+n) {
			return true
		}
	}
}

func (a *account) give(n int64) { a.used.Add(-n) }

// left is how many bytes are not taken.
func (a *account) left() int64 { return a.limit - a.used.Load() }
