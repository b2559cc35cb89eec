package proxy

import (
	"testing"

	"freshet/cache"
	"freshet/cache/feed"
)

// deafMarks is a store that forgets one invalidation in every.
type deafMarks struct {
	*cache.Store
	every, seen int
}

func (d *deafMarks) Mark(dep cache.Dep, at cache.Position) {
	if d.seen++; d.seen%d.every != 0 {
		d.Store.Mark(dep, at)
	}
}

// ForgetMarks breaks invalidation on purpose in servers opened until the test
// ends.
func ForgetMarks(t testing.TB, every int) {
	sound := marksOf
	marksOf = func(s *cache.Store) feed.Marks { return &deafMarks{Store: s, every: every} }
	t.Cleanup(func() { marksOf = sound })
}
