package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"freshet/bench/upstream"
)

// benchAllFlags bound what every bench of bench all takes.
type benchAllFlags struct {
	kinds   []string
	seconds float64
	updates int
	results string
}

// newBenchAll runs every bench once, short, on every kind of server there is.
func newBenchAll() *cobra.Command {
	f := &benchAllFlags{}
	cmd := &cobra.Command{
		Use:   "all",
		Short: "every bench once and short, on every kind of server that can be had",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	var kinds []string
	for _, k := range upstream.Kinds {
		kinds = append(kinds, string(k))
	}
	cmd.Flags().StringSliceVar(&f.kinds, "dialect", kinds, "the kinds of server")
	cmd.Flags().Float64Var(&f.seconds, "seconds", 1, "seconds a round, of which there is one")
	cmd.Flags().IntVar(&f.updates, "updates", 500, "fresh: rows to change")
	cmd.Flags().StringVar(&f.results, "results", "results.jsonl", "file to append the results to; empty: none")
	return cmd
}

func (f *benchAllFlags) run(ctx context.Context, out io.Writer) error {
	done := 0
	for _, kind := range f.kinds {
		err := f.runKind(ctx, out, kind)
		if errors.Is(err, upstream.ErrUnavailable) {
			fmt.Fprintf(out, "not measured: %s: %v\n\n", kind, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		done++
	}
	if done == 0 {
		return errors.New("bench all: no kind of server could be had")
	}
	return nil
}

func (f *benchAllFlags) runKind(ctx context.Context, out io.Writer, kind string) error {
	load := []string{"--rounds", "1", "--seconds", strconv.FormatFloat(f.seconds, 'f', -1, 64)}
	for _, b := range []struct {
		cmd  *cobra.Command
		args []string
	}{
		{newBenchHit(), load},
		{newBenchMiss(), load},
		{newBenchMixed(), load},
		{newBenchFresh(), append([]string{"--updates", strconv.Itoa(f.updates), "--commits", strconv.Itoa(f.updates)}, load...)},
		{newBenchPrecision(), []string{"--keys", "10000", "--updates", "1000", "--turns", "200"}},
		{newBenchIdle(), nil},
	} {
		forUsage(b.cmd)
		b.cmd.SilenceUsage, b.cmd.SilenceErrors = true, true
		b.cmd.SetOut(out)
		b.cmd.SetArgs(append([]string{"--dialect", kind, "--results", f.results}, b.args...))
		if err := b.cmd.ExecuteContext(ctx); err != nil {
			return fmt.Errorf("bench %s: %w", b.cmd.Name(), err)
		}
		fmt.Fprintln(out)
	}
	return nil
}
