package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"freshet/cache/feed"
	"freshet/proxy"
)

func newCheckCommand() *cobra.Command {
	var dsn string
	cmd := &cobra.Command{
		Use:   "check --upstream DSN",
		Short: "Say what the upstream lacks for exact caching, and the statement that mends it",
		Long: `Check looks at the upstream's settings, privileges and tables, and prints the exact
statement that mends each thing that is missing. It changes nothing.
Exit status 0 only if every table can be followed exactly.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dsn == "" {
				return usageError{errors.New("give --upstream DSN: see freshet check --help")}
			}
			t, err := proxy.ParseTarget(dsn)
			if err != nil {
				return usageError{err}
			}
			return check(cmd, t)
		},
	}
	cmd.Flags().StringVar(&dsn, "upstream", "", "the database's DSN")
	return cmd
}

func check(cmd *cobra.Command, t proxy.Target) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
	defer cancel()
	findings := feed.Check(ctx, t.URL.String())
	if len(findings) == 1 && !findings[0].OK { // not connected
		findings[0].What = t.Explain(ctx, errors.New(findings[0].What)).Error()
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 4, 2, ' ', 0)
	missing := 0
	for _, f := range findings {
		state := "ok"
		if !f.OK {
			state = "MISSING"
			missing++
		}
		what, _, _ := strings.Cut(f.What, "; mend: ") // said once, below
		fmt.Fprintf(w, "%s\t%s\n", state, oneLine(what))
		if !f.OK && f.Mend != "" {
			fmt.Fprintf(w, "\tmend:  %s\n", f.Mend)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if missing > 0 {
		return errors.New("some of what exact caching needs is missing: see the lines marked MISSING")
	}
	return nil
}
