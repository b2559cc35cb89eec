package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"freshet/bench/demo"
	"freshet/bench/upstream"
)

func newDemoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo [mysql|postgres]",
		Short: "Show direct and through Freshet side by side on a throwaway server",
		Long: `Starts a throwaway server from the machine's programs, loads data, serves, runs
the same load direct and through Freshet, prints the comparison, shows one write
made behind Freshet's back being seen, and leaves nothing behind. Without an
argument it shows every dialect that the machine has a server for.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !slices.Contains(demo.Dialects, args[0]) {
				return usageError{fmt.Errorf("demo knows mysql and postgres, not %q", args[0])}
			}
			return runDemo(cmd.Context(), cmd.OutOrStdout(), args)
		},
	}
}

// runDemo shows the dialects asked for, or those that there are servers for.
func runDemo(ctx context.Context, out io.Writer, asked []string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	dialects := asked
	if len(asked) == 0 {
		dialects = demo.Dialects
	}
	done := 0
	var missing []error
	for _, d := range dialects {
		err := demo.Run(ctx, out, program, d)
		if errors.Is(err, upstream.ErrUnavailable) {
			missing = append(missing, fmt.Errorf("%s: %w", d, err))
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", d, err)
		}
		done++
	}
	if done == 0 {
		return errors.Join(missing...)
	}
	for _, m := range missing {
		if _, err := fmt.Fprintf(out, "\nnot shown: %v\n", m); err != nil {
			return err
		}
	}
	return nil
}
