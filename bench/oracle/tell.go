package oracle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// tell prints a difference and, when asked, what is needed to see it again.
func (r *runner) tell(ctx context.Context, sc *script, f *finding, minimise bool) error {
	r.report.Differences++
	out := r.cfg.Out
	fmt.Fprintf(out, "oracle: WRONG ANSWER %d: %s, seed %d, round %d, after write %d\n", r.report.Differences, r.cfg.Kind, r.cfg.Seed, r.round, f.write)
	fmt.Fprintf(out, "  statement %s\n  from      %s (%s)\n", f.q, f.where.place, f.where.reason)
	if f.laneSetting != "" {
		fmt.Fprintf(out, "  session   %s\n", f.laneSetting)
	}
	if f.write >= 0 {
		fmt.Fprintf(out, "  write     %s: %s\n", sc.writes[f.write].kind, &sc.writes[f.write])
	}
	fmt.Fprintf(out, "  differs in %s\n  through   %s\n  direct    %s\n", f.what, f.through.show(), f.direct.show())
	again := "the same once more"
	if f.again == "" {
		again = "no difference when asked once more"
	} else if f.again != f.what {
		again = "once more: " + f.again
	}
	fmt.Fprintf(out, "  %s\n", again)
	if !minimise || f.write < 0 || r.minimised == mostMinimised {
		return nil
	}
	r.minimised++
	return r.minimise(ctx, sc, f)
}

// Bounds of the search for a small reproduction.
const (
	mostMinimised = 5 // in a run
	maxTrials     = 120
	maxMinTime    = 90 * time.Second
)

// trial is a part of a round that may show a difference by itself.
type trial struct {
	setup  []step
	writes []write
}

// minimiser looks for the least that still shows a difference.
type minimiser struct {
	r     *runner
	f     *finding
	left  int
	until time.Time
}

// minimise leaves out writes, then rows, while the difference stays, and prints
// what is left.
func (r *runner) minimise(ctx context.Context, sc *script, f *finding) error {
	m := &minimiser{r: r, f: f, left: maxTrials, until: time.Now().Add(maxMinTime)}
	t := trial{setup: sc.setup, writes: sc.writes[:f.write+1]}
	seen, err := m.shows(ctx, t)
	if err != nil {
		return err
	}
	if !seen {
		fmt.Fprintln(r.cfg.Out, "  not seen again with this statement alone and no reads beside the writes")
		return nil
	}
	if t.writes, err = shrink(t.writes, func(w []write) (bool, error) { return m.shows(ctx, trial{t.setup, w}) }); err != nil {
		return err
	}
	if t.setup, err = shrink(t.setup, func(s []step) (bool, error) { return m.shows(ctx, trial{s, t.writes}) }); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("  seen again with only:\n")
	for _, s := range t.setup {
		fmt.Fprintf(&b, "    %s;\n", s.sql)
	}
	fmt.Fprintf(&b, "    -- read through Freshet: %s\n", f.q)
	for i := range t.writes {
		fmt.Fprintf(&b, "    %s;\n", &t.writes[i])
	}
	fmt.Fprint(r.cfg.Out, b.String())
	return nil
}

// shrink drops ever smaller runs of members while bad stays true of the rest.
func shrink[T any](all []T, bad func([]T) (bool, error)) ([]T, error) {
	for size := (len(all) + 1) / 2; size >= 1; size /= 2 {
		for at := 0; at < len(all); {
			rest := slices.Concat(all[:at], all[min(at+size, len(all)):])
			still, err := bad(rest)
			if err != nil {
				return all, err
			}
			if still {
				all = rest
			} else {
				at += size
			}
		}
	}
	return all, nil
}

// shows tells whether the trial makes Freshet answer the statement wrongly
// after any of its writes.
func (m *minimiser) shows(ctx context.Context, t trial) (bad bool, err error) {
	if m.left--; m.left < 0 || time.Now().After(m.until) {
		return false, nil
	}
	quiet := m.r.report // refusals of a reproduction are not the run's
	defer func() { m.r.report = quiet }()
	m.r.report = newReport(m.r.cfg)
	s, err := m.r.enter(ctx, t.setup, []int{m.f.lane})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.deal([]*read{m.f.q.read})
	found, err := s.warm(ctx)
	undo := ""
	for i := 0; i < len(t.writes) && err == nil && len(found) == 0; i++ {
		w := &t.writes[i]
		if undo != "" && w.ends != undo {
			err = s.undo(undo)
		}
		if err == nil {
			err = s.write(ctx, w, false)
		}
		if err == nil {
			found, err = s.check(ctx, i, true)
		}
		undo = w.undo
	}
	return len(found) > 0, errors.Join(err, s.undo(undo))
}
