// Command freshet is a wire-protocol caching proxy for MySQL, MariaDB and
// PostgreSQL. Each subcommand has a small file of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit statuses: 2 for bad usage, 1 for a failure.
const (
	exitFailure = 1
	exitUsage   = 2
)

// usageError is a mistake in how the command was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal then ends the process at once
	root := newRootCommand()
	err := root.ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "freshet:", oneLine(err.Error()))
	stop()
	var usage usageError
	if errors.As(err, &usage) {
		os.Exit(exitUsage)
	}
	os.Exit(exitFailure)
}

// oneLine keeps a driver's many-lined error to the one line that is promised.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\t' }), " ")
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "freshet",
		Short: "A caching proxy for MySQL, MariaDB and PostgreSQL that follows their change stream",
		Long: `Freshet stands between an application and its database. Point the application's
DSN at it and change nothing else: repeated reads are answered from memory, and
stay right because Freshet follows the database's own change stream.

  freshet serve --upstream mysql://user:pass@host:3306/db
  freshet serve --upstream postgres://user:pass@host:5432/db`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q: see freshet --help", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(newServeCommand(), newCheckCommand(), newVersionCommand(),
		newDemoCommand(), newGateCommand(), newOracleCommand(), newBenchCommand())
	forUsage(root)
	return root
}

// forUsage makes every command's flag and argument mistakes exit with 2.
func forUsage(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w: see %s --help", err, c.CommandPath())}
	})
	if check := cmd.Args; check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			err := check(c, args)
			var usage usageError
			if err != nil && !errors.As(err, &usage) {
				err = usageError{fmt.Errorf("%w: see %s --help", err, c.CommandPath())}
			}
			return err
		}
	}
	for _, sub := range cmd.Commands() {
		forUsage(sub)
	}
}
