package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Violation is a promise that was broken.
type Violation struct {
	Level  Level // the promise; "": that only what was written can be read
	Key    int
	What   string
	Around []Op // the key's operations up to the answer that broke it
}

// Check checks a history against all promises made to its readers. log is the
// server's own order of commits; bound is the one for staleness.
func Check(ops []Op, log commits, bound time.Duration) ([]Violation, error) {
	found := whereFrom(ops, log)
	found = append(found, bounded(ops, log, bound)...)
	more, err := sessions(ops, log)
	if found = append(found, more...); err != nil {
		return found, err
	}
	more, err = linearizable(ops)
	return append(found, more...), err
}

// shown is how much of a history is printed.
const (
	shownOps  = 40
	shownTime = int64(2 * time.Second)
)

// tell prints the violation: the key's operations before it, and the faults
// that fell among them.
func (v *Violation) tell(faults []happened) string {
	var b strings.Builder
	promise := string(v.Level)
	if promise == "" {
		promise = "nothing but what was written"
	}
	fmt.Fprintf(&b, "history: VIOLATION of %s, key %d: %s\n", promise, v.Key, v.What)
	last := int64(0)
	for i := range v.Around {
		if !v.Around[i].Open {
			last = max(last, v.Around[i].Return)
		}
	}
	type line struct {
		at   int64
		text string
	}
	var lines []line
	for i := range v.Around {
		if o := &v.Around[i]; min(o.end(), last) >= last-shownTime {
			lines = append(lines, line{o.Call, o.String()})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	lines = lines[max(0, len(lines)-shownOps):]
	for _, f := range faults {
		if len(lines) > 0 && f.at >= lines[0].at-shownTime && f.at <= last {
			lines = append(lines, line{f.at, fmt.Sprintf("%11.3f ms  --- %s", millis(f.at), f.what)})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	for _, l := range lines {
		fmt.Fprintf(&b, "  %s\n", l.text)
	}
	fmt.Fprintf(&b, "  the answer that is one too many came at %.3f ms\n", millis(last))
	return b.String()
}
