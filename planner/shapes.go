package planner

import (
	"fmt"
	"sync"

	"freshet/cache/feed"
)

// maxShapes bounds the shapes of one table: each costs the feed a hash for every
// changed row. Beyond half of it, shapes no longer tell which columns are read,
// so that more statements share them; beyond it, statements depend on the whole
// table.
const maxShapes = 64

// shapeSets are the shapes registered for each followed table. They outlive
// what the catalog said of a table for as long as the feed follows it.
type shapeSets struct {
	mu sync.Mutex
	of map[*feed.Table]*shapeSet
}

// shapeSet are the shapes of one table.
type shapeSet struct {
	table  *feed.Table
	mu     sync.Mutex
	shapes map[string]*feed.Shape // under mu
}

// get returns a table's set, and forgets those of tables that are gone.
func (s *shapeSets) get(table *feed.Table) *shapeSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	if set := s.of[table]; set != nil {
		return set
	}
	for t := range s.of {
		if t.Gone() {
			delete(s.of, t)
		}
	}
	set := &shapeSet{table: table, shapes: make(map[string]*feed.Shape)}
	s.of[table] = set
	return set
}

// get registers a shape, or returns the one registered before; nil when there
// are too many.
func (s *shapeSet) get(f Follower, spec feed.ShapeSpec) *feed.Shape {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := shapeKey(spec)
	if sh := s.shapes[key]; sh != nil {
		return sh
	}
	if len(s.shapes) >= maxShapes/2 && spec.Reads != nil {
		if len(spec.Equal) == 0 && spec.Range < 0 {
			return nil // without its columns it would be the whole table
		}
		spec.Reads = nil
		key = shapeKey(spec)
		if sh := s.shapes[key]; sh != nil {
			return sh
		}
	}
	if len(s.shapes) >= maxShapes {
		return nil
	}
	sh := f.ShapeOf(s.table, spec)
	s.shapes[key] = sh
	return sh
}

func shapeKey(spec feed.ShapeSpec) string {
	return fmt.Sprint(spec.Equal, spec.Range, spec.Level, spec.Reads == nil, spec.Reads)
}
