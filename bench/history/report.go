package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Report is what a run recorded and found.
type Report struct {
	Config     Config
	Took       time.Duration
	Checking   time.Duration
	Reads      int           // answered, a key each
	Writes     int           // confirmed
	Open       int           // writes of which nobody knows
	Refused    int           // statements refused
	Broken     int           // connections that broke, or were closed for want of an answer
	Asked      map[Level]int // reads through Freshet whose source was asked for, by the reader's level
	Hits       map[Level]int // of those, from memory
	Faults     map[string]recovery
	Violations []Violation

	happened []happened
}

// recovery is how often a fault was survived, and the longest time from its end
// until answers came from memory again.
type recovery struct {
	times   int
	slowest time.Duration
}

func (r *Report) fault(name string, back time.Duration) {
	f := r.Faults[name]
	r.Faults[name] = recovery{f.times + 1, max(f.slowest, back)}
}

func (r *Report) add(c *client) {
	r.Refused += c.tally.refused
	r.Broken += c.tally.broken
	if c.level != Direct {
		r.Asked[c.level] += c.tally.asked
		r.Hits[c.level] += c.tally.hits
	}
}

func (r *Report) count(ops []Op) {
	for i := range ops {
		switch {
		case ops[i].Open:
			r.Open++
		case ops[i].Write:
			r.Writes++
		default:
			r.Reads++
		}
	}
}

// Least of what a run has to show, a second. They are far below what an idle
// machine does; outages count.
const (
	leastReads  = 20
	leastWrites = 5
	leastHits   = 3    // at each level, of the answers asked after
	leastShare  = 0.05 // of those answers
)

// Short says why the run proves too little; "" if it does not.
func (r *Report) Short() string {
	var why []string
	seconds := r.Took.Seconds()
	if float64(r.Reads) < leastReads*seconds || float64(r.Writes) < leastWrites*seconds {
		why = append(why, fmt.Sprintf("%d reads and %d writes in %.0f s", r.Reads, r.Writes, seconds))
	}
	for level, asked := range r.Asked {
		if hits := r.Hits[level]; float64(hits) < leastShare*float64(asked) || float64(hits) < leastHits*seconds {
			why = append(why, fmt.Sprintf("%d of %d answers at %s from memory", hits, asked, level))
		}
	}
	return strings.Join(why, "; ")
}

func (r Report) String() string {
	var b strings.Builder
	faults := 0
	for _, f := range r.Faults {
		faults += f.times
	}
	fmt.Fprintf(&b, "history: %s %s at %s: %d reads, %d writes, %d open, %d violations, %d faults, %d statements refused, %d connections broken; %.1f s, checked in %.1f s; seed %d\n",
		r.Config.Server.Kind, r.Config.Server.Version, r.Config.Level, r.Reads, r.Writes, r.Open, len(r.Violations), faults, r.Refused, r.Broken, r.Took.Seconds(), r.Checking.Seconds(), r.Config.Seed)
	for _, level := range slices.Sorted(maps.Keys(r.Asked)) {
		fmt.Fprintf(&b, "  at %-12s %6d answers asked after, %4.1f %% from memory\n", level, r.Asked[level], 100*float64(r.Hits[level])/float64(max(1, r.Asked[level])))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Faults)) {
		fmt.Fprintf(&b, "  fault %3d × %-46s from memory again after %.1f s at most\n", r.Faults[name].times, name, r.Faults[name].slowest.Seconds())
	}
	const most = 3 // the others are of other keys, and seldom tell more
	for i := range r.Violations[:min(most, len(r.Violations))] {
		b.WriteString(r.Violations[i].tell(r.happened))
	}
	if more := len(r.Violations) - most; more > 0 {
		fmt.Fprintf(&b, "  and %d more\n", more)
	}
	return b.String()
}
