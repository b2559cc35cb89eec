package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/spf13/cobra"

	"freshet/bench/oracle"
	"freshet/bench/upstream"
)

// leastHits is the share of hits below which a run proves too little.
const leastHits = 0.30

type oracleFlags struct {
	cfg   oracle.Config
	kind  string
	serve []string
}

func newOracleCommand() *cobra.Command {
	var f oracleFlags
	cmd := &cobra.Command{
		Use:   "oracle {--dialect KIND|all | --dialect KIND --direct DSN --through DSN}",
		Short: "Check every cached answer against the server's own after every one of many random writes",
		Long: `Makes random tables, rows and SELECTs, and writes of every kind directly on the
server; after each write, once Freshet's feed has passed it, reads every SELECT
through Freshet and from the server, and compares the answers. Makes the
database (PostgreSQL: the schema) freshet_oracle and drops it again and again.
The same --seed repeats the same run, --round one round of it.
Without --direct it starts a throwaway server of the kind, or all four kinds one
after the other, and Freshet before it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.kind == "" || (f.cfg.Direct == "") != (f.cfg.Through == "") {
				return usageError{errors.New("give --dialect KIND or all, and for a server that runs already both --direct DSN and --through DSN")}
			}
			if f.cfg.Checks == 0 && f.cfg.For == 0 {
				f.cfg.Checks = 100_000
			}
			if f.cfg.Seed == 0 {
				f.cfg.Seed = rand.Uint64()
			}
			f.cfg.Out = cmd.OutOrStdout()
			return f.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "dialect", "", "the kind of server: mariadb, mysql, postgres15, postgres18, mariadb11, or all")
	flags.StringVar(&f.cfg.Direct, "direct", "", "DSN of a server that runs already")
	flags.StringVar(&f.cfg.Through, "through", "", "DSN of the same server through Freshet")
	flags.StringSliceVar(&f.serve, "serve-flag", nil, "another flag for the freshet serve that is started (repeatable)")
	flags.IntVar(&f.cfg.Checks, "checks", 0, "answers to check, in all (default 100000 unless --for is given)")
	flags.DurationVar(&f.cfg.For, "for", 0, "end after this time, on each server")
	flags.Uint64Var(&f.cfg.Seed, "seed", 0, "what draws everything (0: a new one)")
	flags.IntVar(&f.cfg.Round, "round", -1, "play this round only")
	flags.BoolVar(&f.cfg.Linearizable, "linearizable", false, "serve at that level, and check as soon as a write has returned")
	flags.IntVar(&f.cfg.Reads, "reads", 0, "statements of a round's working set (default 200)")
	flags.IntVar(&f.cfg.Writes, "writes", 0, "writes of a round (default 30)")
	flags.StringVar(&f.cfg.Focus, "focus", "", "what to have in every round: families, policies, extension or frozen (PostgreSQL)")
	flags.IntVar(&f.cfg.Lanes, "lanes", 0, "pairs of sessions that check side by side (default 5)")
	flags.IntVar(&f.cfg.Most, "most", 0, "wrong answers after which a run ends (default 10)")
	return cmd
}

// run checks on the server given, or on throwaway ones.
func (f *oracleFlags) run(ctx context.Context, out io.Writer) error {
	kinds := []upstream.Kind{upstream.Kind(f.kind)}
	if f.kind == "all" {
		kinds = upstream.Kinds
	}
	f.cfg.Checks = (f.cfg.Checks + len(kinds) - 1) / len(kinds)
	var errs []error
	checks, wrong := 0, 0
	for _, kind := range kinds {
		report, err := f.on(ctx, kind)
		fmt.Fprint(out, report, report.Detail())
		checks, wrong = checks+report.Checks, wrong+report.Differences
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("oracle: %s: %w", kind, err))
		case report.Hindered > 0:
			errs = append(errs, fmt.Errorf("oracle: %s: Freshet's publication made the server refuse writes; --seed %d repeats the run", kind, report.Seed))
		case report.Differences > 0:
			errs = append(errs, fmt.Errorf("oracle: %s: wrong answers; --seed %d repeats the run", kind, report.Seed))
		case f.cfg.Round < 0 && report.HitShare() < leastHits:
			errs = append(errs, fmt.Errorf("oracle: %s: %.1f %% hits: too few to prove anything", kind, 100*report.HitShare()))
		}
	}
	fmt.Fprintf(out, "oracle: %d checked answers in all, %d wrong, seed %d\n", checks, wrong, f.cfg.Seed)
	return errors.Join(errs...)
}

func (f *oracleFlags) on(ctx context.Context, kind upstream.Kind) (report oracle.Report, err error) {
	cfg := f.cfg
	cfg.Kind = kind
	if cfg.Direct != "" {
		return oracle.Run(ctx, cfg)
	}
	program, err := os.Executable()
	if err != nil {
		return report, err
	}
	server, err := oracle.StartServer(ctx, kind)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	serve := f.serve
	if cfg.Linearizable {
		serve = append(serve, oracle.LinearizableFlag)
	}
	a, err := oracle.OpenArena(ctx, server, program, serve...)
	if err != nil {
		return report, err
	}
	if cfg.Linearizable {
		err = a.Linearize(ctx)
	}
	if err == nil {
		report, err = a.Check(ctx, cfg)
	}
	return report, errors.Join(err, a.Close())
}
