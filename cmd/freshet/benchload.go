package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"freshet/bench/load"
	"freshet/bench/metrics"
	"freshet/bench/rig"
	"freshet/bench/versus"
)

// newBenchLoad is a bench that puts one workload on every server in turn.
func newBenchLoad(name, short string, workload func(*benchFlags, load.Mode, int) load.Workload) *cobra.Command {
	f := &benchFlags{}
	cmd := &cobra.Command{
		Use:   name + " {--dialect KIND | --through DSN --direct DSN}",
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			mode, depth, err := f.modeAndDepth()
			if err != nil {
				return err
			}
			a, err := f.arena(cmd.Context())
			if err != nil {
				return err
			}
			f.withFloor = f.withFloor && name == "hit"
			err = f.compare(cmd.Context(), cmd.OutOrStdout(), a, name, workload(f, mode, depth))
			return errors.Join(err, a.Close())
		},
	}
	f.where(cmd.Flags())
	f.load(cmd.Flags())
	return cmd
}

// compare makes the table, measures and reports.
func (f *benchFlags) compare(ctx context.Context, out io.Writer, a *rig.Arena, name string, w load.Workload) (err error) {
	if err := versus.LoadTable(ctx, a.Direct); err != nil {
		return fmt.Errorf("direct: loading the table: %w", err)
	}
	defer func() { err = errors.Join(err, versus.DropTable(context.WithoutCancel(ctx), a.Direct)) }()
	sides := a.Sides()
	if name != "hit" && a.Through != "" {
		sides[0].Also = a.DirectPid // what it forwards costs the server, too
	}
	peers, err := f.peerSides()
	if err != nil {
		return err
	}
	sides = append(sides, peers...)
	if f.withFloor {
		floor, err := a.Floor(ctx, w)
		if err != nil {
			return err
		}
		sides = append([]versus.Side{floor}, sides...)
	}
	before, err := readHits(ctx, a.HTTP)
	if err != nil {
		return err
	}
	_, core := rig.Cores()
	cfg := versus.Config{
		Name: name, Title: a.Title, Workload: w, Connections: f.connections, Seconds: f.seconds, Warmup: min(1, f.seconds/3),
		Rate: f.rate, Rounds: f.rounds, Core: core,
	}
	if err := warm(ctx, cfg, sides); err != nil {
		return err
	}
	outcome, err := versus.Run(ctx, cfg, sides, nil)
	if err != nil {
		return err
	}
	if err := outcome.Print(out); err != nil {
		return err
	}
	after, err := readHits(ctx, a.HTTP)
	if err != nil {
		return err
	}
	if after != nil {
		queries := after.Sum("freshet_queries_total") - before.Sum("freshet_queries_total")
		fmt.Fprintf(out, "through: %.2f %% of %.0f statements answered from memory, by its own count\n",
			100*float64(after.Hits()-before.Hits())/max(1, queries), queries)
	}
	if f.results == "" {
		return nil
	}
	return outcome.Append(f.results, time.Now())
}

// warm lets every side answer for a second before the first round, so that a
// cold cache, an unplanned statement or an empty buffer pool is not measured.
func warm(ctx context.Context, cfg versus.Config, sides []versus.Side) error {
	cfg.Seconds, cfg.Warmup, cfg.Rounds, cfg.Rate = 1, 0, 1, 0
	cfg.Workload.Round = 255
	_, err := versus.Run(ctx, cfg, sides, nil)
	return err
}

// readHits reads the proxy's counters; nil when it has none to ask.
func readHits(ctx context.Context, addr string) (metrics.Sample, error) {
	if addr == "" {
		return nil, nil
	}
	return metrics.Read(ctx, addr)
}
