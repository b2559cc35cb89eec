package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"

	"freshet/bench/gate"
	"freshet/bench/rig"
	"freshet/bench/upstream"
)

func newGateCommand() *cobra.Command {
	var cfg gate.Config
	var kind string
	var serve []string
	cmd := &cobra.Command{
		Use:   "gate {--direct DSN --through DSN | --dialect KIND}",
		Short: "Compare every byte of the answers direct and through the proxy, with writes between",
		Long: `Sends the same statements to the server and through the proxy and compares
column metadata, values in text and binary, row order, command tags and affected
rows, errors, warnings and transaction state, while rows change through the
proxy and behind its back. Makes the database (PostgreSQL: the schema)
freshet_gate and drops it again. The same --seed repeats the same run.
With --dialect it starts a throwaway server of that kind and Freshet before it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if kind == "" && (cfg.Direct == "" || cfg.Through == "") {
				return usageError{errors.New("give --direct DSN and --through DSN, or --dialect KIND")}
			}
			if cfg.Seed == 0 {
				cfg.Seed = rand.Uint64()
			}
			cfg.Out = cmd.OutOrStdout()
			if kind == "" {
				return runGate(cmd.Context(), cfg, cmd.OutOrStdout())
			}
			return gateArena(cmd.Context(), cfg, upstream.Kind(kind), serve, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cfg.Direct, "direct", "", "DSN of the server itself")
	flags.StringVar(&cfg.Through, "through", "", "DSN of the same server through the proxy")
	flags.StringVar(&kind, "dialect", "", "start a server of this kind: mariadb, mysql, postgres15, postgres18")
	flags.StringSliceVar(&serve, "serve-flag", nil, "with --dialect: another flag for freshet serve (repeatable)")
	flags.IntVar(&cfg.Calls, "calls", 13500, "calls to make")
	flags.Uint64Var(&cfg.Seed, "seed", 0, "what draws the calls (0: a new one)")
	flags.IntVar(&cfg.Sessions, "sessions", 6, "pairs of sessions")
	flags.DurationVar(&cfg.MaxStaleness, "max-staleness", time.Second, "how long a write by somebody else may stay unseen")
	flags.StringVar(&cfg.HTTP, "http", "", "the proxy's HTTP address, to count its hits")
	return cmd
}

// gateArena starts the servers, compares, and takes them down.
func gateArena(ctx context.Context, cfg gate.Config, kind upstream.Kind, serve []string, out io.Writer) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	a, err := rig.OpenArena(ctx, rig.ArenaConfig{Kind: kind, Program: program, ServerCore: -1, ServeArgs: serve})
	if err != nil {
		return err
	}
	cfg.Direct, cfg.Through, cfg.HTTP = a.Direct, a.Through, a.HTTP
	return errors.Join(runGate(ctx, cfg, out), a.Close())
}

func runGate(ctx context.Context, cfg gate.Config, out io.Writer) error {
	report, err := gate.Run(ctx, cfg)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(out, report); err != nil {
		return err
	}
	if report.Differences > 0 {
		return fmt.Errorf("gate: the answers differ; --seed %d repeats the run", report.Seed)
	}
	return nil
}
