package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// mark says that from a time on everybody could know of a version.
type mark struct{ at, version int64 }

// bounded checks every read through Freshet against the clock: it may not miss
// what was written, or read by anybody, bound before it was asked for.
func bounded(ops []Op, log commits, bound time.Duration) (found []Violation) {
	for key, part := range byKey(ops) {
		var marks []mark
		for i := range part {
			o := &part[i]
			if n, ok := log.version(key, o.Value); ok && !o.Open {
				marks = append(marks, mark{o.Return, n})
			}
		}
		slices.SortFunc(marks, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
		for i := 1; i < len(marks); i++ {
			marks[i].version = max(marks[i].version, marks[i-1].version)
		}
		for i := range part {
			o := &part[i]
			if o.Write || o.Level == Direct {
				continue
			}
			before, _ := slices.BinarySearchFunc(marks, o.Call-int64(bound), func(m mark, at int64) int { return cmp.Compare(m.at, at) })
			if before == 0 || o.Version >= marks[before-1].version {
				continue
			}
			found = append(found, Violation{Level: Bounded, Key: key, Around: until(part, o.Return),
				What: fmt.Sprintf("version %d was read %s and more after version %d had been known", o.Version, bound, marks[before-1].version)})
			break // one of a key says it all
		}
	}
	return found
}

// whereFrom checks that each value read was committed, as the version that the
// read says, and that each write that was confirmed was committed.
func whereFrom(ops []Op, log commits) (found []Violation) {
	for key, part := range byKey(ops) {
		for i := range part {
			o := &part[i]
			n, ok := log.version(key, o.Value)
			switch {
			case o.Open || ok && (o.Write || n == o.Version):
				continue
			case o.Write:
				found = append(found, Violation{Key: key, Around: part[:i+1], What: "a confirmed write was never committed"})
			default:
				found = append(found, Violation{Key: key, Around: part[:i+1], What: "what was read was never committed"})
			}
			break
		}
	}
	return found
}
