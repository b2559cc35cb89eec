package oracle

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Report is what a run found.
type Report struct {
	Kind        string
	Seed        uint64
	Rounds      int
	Checks      int // answers compared
	Hits        int // of those, from memory
	Forwarded   int // of those, neither from memory nor a fill
	Writes      int
	Refused     int // statements of writes that the server refused
	Statements  int // statements of writes
	Differences int
	Hindered    int // refusals that a server without Freshet would not have made
	Fickle      int // differences that the server has with itself, by when it prepared a statement or by its plan
	Took        time.Duration

	kinds   map[string]*counts
	writes  map[string]int
	refusal map[string]int    // by kind of write
	reasons map[string]int    // why answers were forwarded
	samples map[string]string // of a refusal, by kind of write
}

// counts are those of one kind of statement.
type counts struct {
	checks, hits, forwarded int
	unchanged               int // answers that the write did not change and that were kept before it
	needless                int // of those, lost all the same
}

// tally is what one lane saw since it was last added up.
type tally struct {
	fickle  int
	kinds   map[string]*counts
	reasons map[string]int
}

func (t *tally) count(q *checked, where source, sum uint64) {
	if t.kinds == nil {
		t.kinds, t.reasons = make(map[string]*counts), make(map[string]int)
	}
	c := t.kinds[q.kind]
	if c == nil {
		c = new(counts)
		t.kinds[q.kind] = c
	}
	c.checks++
	hit := where.fromCache()
	switch {
	case hit:
		c.hits++
	case where.place != "fill":
		c.forwarded++
		t.reasons[where.reason]++
	}
	if q.kept && q.sum == sum {
		c.unchanged++
		if !hit {
			c.needless++
		}
	}
}

func newReport(cfg Config) Report {
	return Report{Kind: string(cfg.Kind), Seed: cfg.Seed, kinds: make(map[string]*counts), writes: make(map[string]int),
		refusal: make(map[string]int), reasons: make(map[string]int), samples: make(map[string]string)}
}

func (r *Report) add(t *tally) {
	for kind, c := range t.kinds {
		sum := r.kinds[kind]
		if sum == nil {
			sum = new(counts)
			r.kinds[kind] = sum
		}
		sum.checks += c.checks
		sum.hits += c.hits
		sum.forwarded += c.forwarded
		sum.unchanged += c.unchanged
		sum.needless += c.needless
		r.Checks += c.checks
		r.Hits += c.hits
		r.Forwarded += c.forwarded
	}
	r.Fickle += t.fickle
	for reason, n := range t.reasons {
		r.reasons[reason] += n
	}
}

func (r *Report) wrote(w *write) {
	r.Writes++
	r.writes[w.kind]++
}

// refused notes a statement that the server did not take.
func (r *Report) refused(kind, sql, refusal string) {
	r.Refused++
	r.refusal[kind]++
	if hindered(refusal) {
		if kind = "HINDERED by Freshet's publication"; r.Hindered == 0 {
			r.samples[kind] = ""
		}
		r.Hindered++
	}
	if r.samples[kind] == "" {
		const most = 160
		if len(sql) > most {
			sql = sql[:most] + "…"
		}
		r.samples[kind] = sql + ": " + refusal
	}
}

// hindered tells whether PostgreSQL refused a write because the table is in a
// publication (codes 55000 and 42P10, CheckCmdReplicaIdentity), which nothing
// here but Freshet makes. A table that lost its identity a moment ago is
// excepted: Freshet is told of that, and not asked before.
func hindered(refusal string) bool {
	return strings.HasPrefix(refusal, "42P10 cannot ") || strings.HasPrefix(refusal, "55000 cannot ") && strings.Contains(refusal, "replica identity")
}

// HitShare is the part of the answers that came from memory.
func (r *Report) HitShare() float64 { return share(r.Hits, r.Checks) }

func share(part, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(part) / float64(of)
}

// String is the summary: what was checked, then a line for each kind of
// statement.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "oracle: %s: %d checked answers, %d wrong, %.1f %% of them hits, %.1f %% forwarded, %d writes (%d of %d statements refused), %d rounds, %s, seed %d\n",
		r.Kind, r.Checks, r.Differences, 100*r.HitShare(), 100*share(r.Forwarded, r.Checks), r.Writes, r.Refused, r.Statements, r.Rounds, r.Took.Round(time.Second/10), r.Seed)
	if r.Fickle > 0 {
		fmt.Fprintf(&b, "oracle: %s: %d times the server contradicted itself, by when it had prepared a statement or by its plan\n", r.Kind, r.Fickle)
	}
	return b.String()
}

// Detail is the table of needless invalidations by kind of statement, then the
// writes by kind and why answers were forwarded.
func (r Report) Detail() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %-10s %9s %7s %10s %10s %9s\n", "statement", "checked", "hits", "forwarded", "unchanged", "needless")
	all := new(counts)
	for _, kind := range sortedKeys(r.kinds) {
		c := r.kinds[kind]
		all.unchanged, all.needless = all.unchanged+c.unchanged, all.needless+c.needless
		fmt.Fprintf(&b, "  %-10s %9d %6.1f%% %9.1f%% %10d %8.1f%%\n", kind, c.checks, 100*share(c.hits, c.checks),
			100*share(c.forwarded, c.checks), c.unchanged, 100*share(c.needless, c.unchanged))
	}
	fmt.Fprintf(&b, "  %-10s %9d %6.1f%% %9.1f%% %10d %8.1f%%\n", "all", r.Checks, 100*r.HitShare(), 100*share(r.Forwarded, r.Checks), all.unchanged, 100*share(all.needless, all.unchanged))
	b.WriteString("  writes:")
	for _, kind := range sortedKeys(r.writes) {
		fmt.Fprintf(&b, " %s %d", kind, r.writes[kind])
		if n := r.refusal[kind]; n > 0 {
			fmt.Fprintf(&b, " (%d refused)", n)
		}
		b.WriteString(",")
	}
	b.WriteString("\n  forwarded because:\n")
	reasons := sortedKeys(r.reasons)
	slices.SortStableFunc(reasons, func(x, y string) int { return r.reasons[y] - r.reasons[x] })
	for _, reason := range reasons[:min(len(reasons), 15)] {
		fmt.Fprintf(&b, "  %9d %s\n", r.reasons[reason], reason)
	}
	b.WriteString("  refused by the server, for instance:\n")
	for _, kind := range sortedKeys(r.samples) {
		fmt.Fprintf(&b, "  %s: %s\n", kind, r.samples[kind])
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
