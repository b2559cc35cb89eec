package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"freshet/bench/precision"
	"freshet/bench/upstream"
	"freshet/bench/versus"
	"freshet/bench/witness"
)

// precisionFlags are those of bench precision.
type precisionFlags struct {
	benchFlags
	cfg           precision.Config
	keys, updates int
	parts         []string
}

// partKeys is the part of bench precision that is no workload.
const partKeys = "keys"

// precisionServe lets nothing but changes take answers away: the machine may be
// busy, and no answer may be dropped to make room.
var precisionServe = []string{"--max-staleness", "20s", "--memory", "512MiB"}

// newBenchPrecision counts how much of the cache changes take away needlessly.
func newBenchPrecision() *cobra.Command {
	f := &precisionFlags{}
	cmd := &cobra.Command{
		Use:   "precision {--dialect KIND|all | --through DSN --direct DSN --http ADDRESS}",
		Short: "answers lost to changes, and those of them lost needlessly",
		Long: `Keeps the answers to many keys, changes some of the rows on the server itself and
counts what is no longer answered from memory. Then plays the statements of
applications: what they read through Freshet, what they write on the server
itself, in turns, each once the feed has passed the one before. A stale answer
that turns out to be what it was, byte for byte, was lost needlessly.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.cfg.Seed == 0 {
				f.cfg.Seed = rand.Uint64()
			}
			for _, part := range f.parts {
				if part != partKeys && !slices.Contains(precision.Workloads, part) {
					return usageError{fmt.Errorf("--part %q is not %s or one of %v", part, partKeys, precision.Workloads)}
				}
			}
			return f.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f.where(cmd.Flags())
	flags := cmd.Flags()
	flags.StringSliceVar(&f.parts, "part", append([]string{partKeys}, precision.Workloads...), "what to play")
	flags.IntVar(&f.keys, "keys", 100_000, "keys: how many answers are kept")
	flags.IntVar(&f.updates, "updates", 10_000, "keys: how many rows are changed")
	flags.IntVar(&f.cfg.Turns, "turns", 2000, "turns of each application")
	flags.IntVar(&f.cfg.Rows, "rows", 10_000, "rows of each application's largest table, TPC-C's aside")
	flags.BoolVar(&f.cfg.DefaultIdentity, "default-identity", false, "PostgreSQL: leave the tables' replica identity as it is, instead of FULL")
	flags.Uint64Var(&f.cfg.Seed, "seed", 0, "what draws everything (0: a new one)")
	return cmd
}

func (f *precisionFlags) run(ctx context.Context, out io.Writer) error {
	kinds := []string{f.kind}
	if f.kind == "all" {
		kinds = nil
		for _, k := range upstream.Kinds {
			kinds = append(kinds, string(k))
		}
	}
	f.serve = append(slices.Clone(precisionServe), f.serve...)
	if slices.Contains(f.parts, "tpcc") {
		var err error
		if f.cfg.GoTPC, err = witness.GoTPC(); err != nil {
			return err
		}
	}
	var errs []error
	for _, kind := range kinds {
		f.kind = kind
		errs = append(errs, f.on(ctx, out))
	}
	return errors.Join(errs...)
}

// on plays every part on one server.
func (f *precisionFlags) on(ctx context.Context, out io.Writer) (err error) {
	a, err := f.arena(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if a.HTTP == "" {
		return usageError{errors.New("precision needs Freshet's --http")}
	}
	f.cfg.Direct, f.cfg.Through, f.cfg.HTTP = a.Direct, a.Through, a.HTTP
	if _, err := fmt.Fprintf(out, "precision: %s, seed %d\n", a.Title, f.cfg.Seed); err != nil {
		return err
	}
	var missed []error
	for _, part := range f.parts {
		report, err := f.part(ctx, part)
		if err != nil {
			return err
		}
		if err := report.Print(out); err != nil {
			return err
		}
		if report.Failed() {
			missed = append(missed, fmt.Errorf("precision: %s: %s: more was lost than promised", a.Title, part))
		}
		if f.results != "" {
			line := map[string]any{"at": time.Now().UTC().Format(time.RFC3339), "bench": "precision", "part": part, "title": a.Title, "seed": f.cfg.Seed, "report": report}
			if err := versus.AppendLine(f.results, line); err != nil {
				return err
			}
		}
	}
	return errors.Join(missed...)
}

// precisionReport is what a part comes to.
type precisionReport interface {
	Print(io.Writer) error
	Failed() bool
}

func (f *precisionFlags) part(ctx context.Context, part string) (precisionReport, error) {
	if part == partKeys {
		return precision.RunKeys(ctx, precision.KeysConfig{Config: f.cfg, Keys: f.keys, Updates: f.updates})
	}
	return precision.Run(ctx, f.cfg, part)
}
