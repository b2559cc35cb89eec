package precision

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Tally counts the reads of one statement, or of several.
type Tally struct {
	Name string
	// Hits to Forwarded are how many reads ended how: answered from memory;
	// asked anew with nothing in memory; with an answer that was out of date;
	// sent on without keeping the answer.
	Hits, Cold, Stale, Forwarded int
	// Needless are the stale ones whose answer turned out to be equal, byte for
	// byte, to the one that was lost.
	Needless int
	// Ideal are the reads that would be hits if only answers that have truly
	// changed were lost: those whose answer is what it was when last read.
	Ideal int
}

// Reads is how many there were.
func (t *Tally) Reads() int { return t.Hits + t.Cold + t.Stale + t.Forwarded }

// NeedlessShare is the share of needless ones among the stale misses; 0 when
// there are none.
func (t *Tally) NeedlessShare() float64 { return share(t.Needless, t.Stale) }

// HitShare is the hits as a share of those there could be; 1 when there could
// be none.
func (t *Tally) HitShare() float64 {
	if t.Ideal == 0 {
		return 1
	}
	return share(t.Hits, t.Ideal)
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// count adds a read. known tells that the text was read before, same that its
// answer was this one.
func (t *Tally) count(o outcome, known, same bool) {
	switch o {
	case hit:
		t.Hits++
	case cold:
		t.Cold++
	case stale:
		t.Stale++
		if known && same {
			t.Needless++
		}
	case forwarded:
		t.Forwarded++
	}
	if known && same {
		t.Ideal++
	}
}

func (t *Tally) add(o *Tally) {
	t.Hits += o.Hits
	t.Cold += o.Cold
	t.Stale += o.Stale
	t.Forwarded += o.Forwarded
	t.Needless += o.Needless
	t.Ideal += o.Ideal
}

// sum adds tallies up.
func sum(name string, tallies []*Tally) *Tally {
	total := &Tally{Name: name}
	for _, t := range tallies {
		total.add(t)
	}
	return total
}

// printTallies writes one line for each tally.
func printTallies(w io.Writer, tallies []*Tally) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "statement\treads\thits\tcold\tstale\tneedless\tshare of stale\thits of possible\t")
	for _, t := range tallies {
		hits := "-"
		if t.Ideal > 0 {
			hits = fmt.Sprintf("%.1f %%", 100*t.HitShare())
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%.1f %%\t%s\t\n", t.Name, t.Reads(), t.Hits, t.Cold+t.Forwarded, t.Stale, t.Needless,
			100*t.NeedlessShare(), hits)
	}
	return table.Flush()
}
