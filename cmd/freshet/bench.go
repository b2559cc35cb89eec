package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"freshet/bench/floor"
	"freshet/bench/load"
	"freshet/bench/rig"
	"freshet/bench/upstream"
	"freshet/bench/versus"
)

// benchFlags are what the bench commands have in common.
type benchFlags struct {
	kind            string
	direct, through string
	directPid, pid  int
	http            string
	results         string
	peers           []string
	withFloor       bool
	connections     int
	seconds         float64
	rounds          int
	rate            float64
	mode            string
	depth           int
	keys            int64
	writeEvery      int64
	serve           []string
	apart           bool // Freshet shares the load's core, so that the server has its own
}

func newBenchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the proxy beside the server itself and the canned floor",
		Long: `Each bench prints one table and appends a line to results.jsonl.
With --dialect it starts a throwaway server of that kind and Freshet before it,
on a core of their own, and the load on another; otherwise it uses the servers
at --direct and --through.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchAll(), newBenchHit(), newBenchMiss(), newBenchMixed(), newBenchFresh(), newBenchPrecision(), newBenchIdle(), newBenchFloor())
	return cmd
}

func newBenchHit() *cobra.Command {
	return newBenchLoad("hit", "point reads that were asked before, answered from memory", hitWorkload)
}

func newBenchMiss() *cobra.Command {
	return newBenchLoad("miss", "point reads that were never asked before", missWorkload)
}

func newBenchMixed() *cobra.Command {
	return newBenchLoad("mixed", "point reads with updates between, on every connection", mixedWorkload)
}

func (f *benchFlags) where(flags *pflag.FlagSet) {
	flags.StringVar(&f.kind, "dialect", "", "start a server of this kind: mariadb, mysql, postgres15, postgres18")
	flags.StringVar(&f.direct, "direct", "", "DSN of the server itself")
	flags.StringVar(&f.through, "through", "", "DSN through the proxy")
	flags.IntVar(&f.pid, "pid", 0, "the proxy's process, for its CPU time")
	flags.IntVar(&f.directPid, "direct-pid", 0, "the server's process, for its CPU time")
	flags.StringVar(&f.http, "http", "", "the proxy's HTTP address, to count its hits")
	flags.StringVar(&f.results, "results", "results.jsonl", "file to append the results to; empty: none")
	flags.StringSliceVar(&f.serve, "serve-flag", nil, "with --dialect: another flag for freshet serve (repeatable)")
}

func (f *benchFlags) load(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.peers, "peer", nil, "NAME=DSN of another proxy to measure (repeatable)")
	flags.IntVar(&f.connections, "connections", 16, "client connections")
	flags.Float64Var(&f.seconds, "seconds", 3, "seconds a round")
	flags.IntVar(&f.rounds, "rounds", 3, "rounds, each over every server in turn")
	flags.Float64Var(&f.rate, "rate", 0, "calls/s to send at whatever the answers do (0: closed loop)")
	flags.StringVar(&f.mode, "mode", "prepared", "text, prepared or pipelined (PostgreSQL)")
	flags.IntVar(&f.depth, "depth", 16, "pipelined: calls a write")
	flags.Int64Var(&f.keys, "keys", 1000, "different keys asked for")
	flags.Int64Var(&f.writeEvery, "write-every", 20, "mixed: one call in so many is an update")
	flags.BoolVar(&f.withFloor, "floor", true, "measure the canned floor, too (hit only)")
}

// arena opens what the flags name.
func (f *benchFlags) arena(ctx context.Context) (*rig.Arena, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if f.kind == "" && (f.through == "" || f.direct == "") {
		return nil, usageError{errors.New("give --dialect KIND, or --through DSN and --direct DSN")}
	}
	server, other := rig.Cores()
	proxy := &server
	if f.apart {
		proxy = &other
	}
	if f.kind != "" {
		fmt.Fprintf(os.Stderr, "starting %s on core %d and Freshet on core %d\n", f.kind, server, *proxy)
	}
	return rig.OpenArena(ctx, rig.ArenaConfig{
		Kind: upstream.Kind(f.kind), Program: program, ServerCore: server, ProxyCore: proxy, ServeArgs: f.serve,
		Direct: f.direct, Through: f.through, DirectPid: f.directPid, ThroughPid: f.pid, HTTP: f.http,
	})
}

func (f *benchFlags) modeAndDepth() (load.Mode, int, error) {
	switch m := load.Mode(f.mode); m {
	case load.Text, load.Prepared:
		return m, 1, nil
	case load.Pipelined:
		return m, max(1, f.depth), nil
	}
	return "", 0, usageError{fmt.Errorf("--mode %q is not text, prepared or pipelined", f.mode)}
}

func hitWorkload(f *benchFlags, m load.Mode, depth int) load.Workload {
	return versus.PointReads(m, depth, f.keys)
}

func missWorkload(_ *benchFlags, m load.Mode, depth int) load.Workload {
	return versus.FreshReads(m, depth)
}

func mixedWorkload(f *benchFlags, m load.Mode, depth int) load.Workload {
	return versus.Mixed(m, depth, f.keys, max(2, f.writeEvery))
}

// peerSides reads NAME=DSN.
func (f *benchFlags) peerSides() ([]versus.Side, error) {
	var out []versus.Side
	for _, p := range f.peers {
		name, dsn, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, usageError{fmt.Errorf("--peer %q is not NAME=DSN", p)}
		}
		out = append(out, versus.Side{Name: name, DSN: dsn})
	}
	return out, nil
}

// newBenchFloor is the canned floor as a child process; rig starts it.
func newBenchFloor() *cobra.Command {
	return &cobra.Command{
		Use:    "floor RECORDING",
		Short:  "Repeat a recorded reply until standard input ends",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			rec, err := rig.ReadRecording(args[0])
			if err != nil {
				return err
			}
			return floor.Serve(rec, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
