package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"freshet/bench/cpu"
	"freshet/bench/fresh"
	"freshet/bench/rig"
	"freshet/bench/versus"
)

// newBenchFresh measures the way from a commit upstream to the first answer
// through the proxy that shows it.
func newBenchFresh() *cobra.Command {
	f := &benchFlags{}
	var cfg fresh.Config
	var speed fresh.SpeedConfig
	cmd := &cobra.Command{
		Use:   "fresh {--dialect KIND | --through DSN --direct DSN [--http ADDRESS]}",
		Short: "time from a commit made directly upstream to the first fresh answer",
		Long: `Changes rows on the server itself, one at a time, and reads each through Freshet
until the change shows. Then lets a bare client of the server's change stream
and Freshet await commits in turn, while the server is idle and while it writes
as fast as it can: until the bare client has seen the commit, until it has the
row, which it asks the server for then, and until the first answer through
Freshet that shows it, with an older one kept before. Last it tells the CPU time
that each row written takes.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := f.arena(cmd.Context())
			if err != nil {
				return err
			}
			if cfg.Seed == 0 {
				cfg.Seed = rand.Uint64()
			}
			cfg.Direct, cfg.Through, cfg.HTTP = a.Direct, a.Through, a.HTTP
			return errors.Join(f.fresh(cmd.Context(), cmd.OutOrStdout(), a, cfg, speed), a.Close())
		},
	}
	f.where(cmd.Flags())
	cmd.Flags().IntVar(&cfg.Updates, "updates", 10000, "rows to change, one at a time")
	cmd.Flags().IntVar(&cfg.Rows, "rows", 500, "different rows")
	cmd.Flags().Uint64Var(&cfg.Seed, "seed", 0, "what draws the rows (0: a new one)")
	cmd.Flags().IntVar(&speed.Commits, "commits", 4000, "commits awaited on the idle server, by a bare client and through Freshet in turn; 0: no comparison")
	cmd.Flags().Float64Var(&speed.Seconds, "seconds", 3, "seconds of writing in each round")
	cmd.Flags().IntVar(&speed.Rounds, "rounds", 3, "rounds of writing")
	cmd.Flags().IntVar(&speed.Writers, "writers", 8, "connections that write")
	cmd.Flags().BoolVar(&f.apart, "apart", true, "with --dialect: leave the server a core of its own, Freshet sharing the load's")
	return cmd
}

// fresh measures and reports.
func (f *benchFlags) fresh(ctx context.Context, out io.Writer, a *rig.Arena, cfg fresh.Config, speed fresh.SpeedConfig) error {
	report, err := fresh.Run(ctx, cfg)
	if err != nil {
		return err
	}
	if err := f.reportFresh(out, a.Title, report); err != nil || speed.Commits == 0 {
		return err
	}
	speed.Direct, speed.Through, speed.DirectPid, speed.ThroughPid = a.Direct, a.Through, a.DirectPid, a.ThroughPid
	_, speed.Core = rig.Cores()
	compared, err := fresh.Compare(ctx, speed)
	if err != nil {
		return err
	}
	if err := compared.Print(out); err != nil || f.results == "" {
		return err
	}
	var beside []map[string]float64
	for _, race := range compared.Loaded {
		beside = append(beside, race.Summary())
	}
	return versus.AppendLine(f.results, map[string]any{
		"at": time.Now().UTC().Format(time.RFC3339), "bench": "speed", "title": a.Title, "caught_up_ns": compared.CaughtUp, "writing": compared.Writing,
		"idle": compared.Idle.Summary(), "writing_beside": beside,
	})
}

func (f *benchFlags) reportFresh(out io.Writer, title string, r fresh.Report) error {
	if _, err := fmt.Fprintln(out, title); err != nil {
		return err
	}
	if err := r.Print(out); err != nil {
		return err
	}
	if f.results != "" {
		err := versus.AppendLine(f.results, map[string]any{
			"at": time.Now().UTC().Format(time.RFC3339), "bench": "fresh", "title": title, "updates": r.Updates,
			"p50_ns": r.Latency.ValueAtPercentile(50), "p99_ns": r.Latency.ValueAtPercentile(99), "max_ns": r.Latency.Max(),
			"slow": r.Slow, "back": r.Back, "checked": r.Checked, "stale": r.Stale, "untold": r.Untold, "hit_ratio": r.HitRatio,
		})
		if err != nil {
			return err
		}
	}
	if r.Failed() {
		return errors.New("fresh: an answer was older than promised")
	}
	return nil
}

// newBenchIdle measures what connections cost that do nothing.
func newBenchIdle() *cobra.Command {
	f := &benchFlags{}
	cmd := &cobra.Command{
		Use:   "idle {--dialect KIND | --through DSN --direct DSN --pid N}",
		Short: "memory of connections that do nothing",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := f.arena(cmd.Context())
			if err != nil {
				return err
			}
			return errors.Join(f.idle(cmd.Context(), cmd.OutOrStdout(), a), a.Close())
		},
	}
	f.where(cmd.Flags())
	cmd.Flags().IntVar(&f.connections, "connections", 1000, "client connections")
	return cmd
}

func (f *benchFlags) idle(ctx context.Context, out io.Writer, a *rig.Arena) (err error) {
	if a.ThroughPid == 0 {
		return usageError{errors.New("idle needs the proxy's --pid")}
	}
	before, err := cpu.ResidentBytes(a.ThroughPid)
	if err != nil {
		return err
	}
	var clients []*versus.Client
	defer func() {
		for _, c := range clients {
			err = errors.Join(err, c.Close())
		}
	}()
	begun := time.Now()
	for range f.connections {
		c, err := versus.Dial(ctx, a.Through)
		if err != nil {
			return fmt.Errorf("connection %d: %w", len(clients)+1, err)
		}
		clients = append(clients, c)
	}
	took := time.Since(begun)
	after, err := cpu.ResidentBytes(a.ThroughPid)
	if err != nil {
		return err
	}
	each := float64(after-before) / float64(f.connections)
	fmt.Fprintf(out, "idle: %s; %d connections opened in %s, %.1f KiB resident each (%.1f MiB before, %.1f MiB after)\n",
		a.Title, f.connections, took.Round(time.Millisecond), each/1024, float64(before)/(1<<20), float64(after)/(1<<20))
	if sample, err := readHits(ctx, a.HTTP); err != nil {
		return err
	} else if sample != nil {
		fmt.Fprintf(out, "idle: %.0f connections to the upstream\n", sample.Sum("freshet_links"))
	}
	runtime.KeepAlive(clients)
	if f.results == "" {
		return nil
	}
	return versus.AppendLine(f.results, map[string]any{
		"at": time.Now().UTC().Format(time.RFC3339), "bench": "idle", "title": a.Title, "connections": f.connections, "bytes_each": each,
	})
}
