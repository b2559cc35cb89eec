package planner

import (
	"sync/atomic"
	"time"
)

// A fact is something the catalog said. It is dropped, once and for all, when
// a change of the schema may have made it untrue; what was built on it has to
// be built again.
type fact struct{ dropped atomic.Bool }

// basis lists what a plan was built on.
type basis struct {
	facts []*fact
	// tables are followed: when the feed sees one change its definition, the
	// plan is outdated even before SchemaChanged says so.
	tables []followed
	// until is when a plan that was refused for a passing reason is to be made
	// again; zero if it stays.
	until time.Time
}

// outdated tells whether the plan must be made again. It is called for every
// run of a statement: a few atomic loads, and a look at the clock only for
// plans with a passing reason.
func (b *basis) outdated() bool {
	if b == nil {
		return false
	}
	for _, f := range b.facts {
		if f.dropped.Load() {
			return true
		}
	}
	for i := range b.tables {
		if b.tables[i].table.Gone() {
			return true
		}
	}
	return !b.until.IsZero() && time.Now().After(b.until)
}
