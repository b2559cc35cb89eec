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

// checkFlags are check's flags.
type checkFlags struct {
	dsn, from, level string
}

func newCheckCommand() *cobra.Command {
	var flags checkFlags
	cmd := &cobra.Command{
		Use:   "check --upstream DSN",
		Short: "Say what the upstream lacks for exact caching, and the statement that mends it",
		Long: `Check looks at the upstream's settings, privileges and tables, and prints the exact
statement that mends each thing that is missing. It changes nothing.
With --feed-from it looks as well at the replica that the change stream is to come from.
With --consistency linearizable it looks as well at what that level alone needs, and
says what it means for the upstream.
Exit status 0 only if every table can be followed exactly.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if flags.dsn == "" {
				return usageError{errors.New("give --upstream DSN: see freshet check --help")}
			}
			t, err := proxy.ParseTarget(flags.dsn)
			if err != nil {
				return usageError{err}
			}
			switch flags.level {
			case "bounded", "session", levelLinearizable:
			default:
				return usageError{fmt.Errorf("--consistency %q: want bounded, session or linearizable", flags.level)}
			}
			if flags.from != "" && flags.level == levelLinearizable {
				return usageError{errors.New("--consistency linearizable cannot be had with --feed-from: see docs/linearizable.md")}
			}
			from, err := proxy.ParseFeedFrom(flags.from, t)
			if err != nil {
				return usageError{err}
			}
			return check(cmd, t, from, flags.level)
		},
	}
	cmd.Flags().StringVar(&flags.dsn, "upstream", "", "the database's DSN")
	cmd.Flags().StringVar(&flags.from, "feed-from", "", "a replica to take the change stream from (default the upstream)")
	cmd.Flags().StringVar(&flags.level, "consistency", "session", "the level that is wanted: bounded, session or linearizable")
	return cmd
}

// levelLinearizable is the one level that needs the upstream set up for it.
const levelLinearizable = "linearizable"

func check(cmd *cobra.Command, t proxy.Target, from, level string) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
	defer cancel()
	findings := feed.CheckFrom(ctx, t.URL.String(), from)
	if len(findings) == 1 && !findings[0].OK { // not connected
		findings[0].What = t.Explain(ctx, errors.New(findings[0].What)).Error()
	} else if level == levelLinearizable {
		findings = append(findings, feed.CheckSynchronous(ctx, t.URL.String())...)
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 4, 2, ' ', 0)
	missing := 0
	for _, f := range findings {
		state := "ok"
		switch {
		case !f.OK:
			state = "MISSING"
			missing++
		case f.Note:
			state = "note"
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
		return errors.New("some of what is needed is missing: see the lines marked MISSING")
	}
	return nil
}
