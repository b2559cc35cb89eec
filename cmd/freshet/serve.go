package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"freshet/proxy"
	"freshet/proxy/mysql"
	"freshet/proxy/postgres"
)

func newServeCommand() *cobra.Command {
	f := &serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve --upstream DSN [--listen ADDRESS]",
		Short: "Serve clients, answering repeated reads from memory",
		Long: `Serve accepts clients and answers what it can from memory; everything else is
forwarded to the upstream.

--upstream may be given more than once, each followed by its --listen and, if
its change stream is to come from a replica, its --feed-from. Every flag is also
a key of the --config file (YAML; upstreams is a list of dsn, listen and
feed-from) and an environment variable: --max-staleness is FRESHET_MAX_STALENESS.

SIGTERM and SIGINT let transactions end, for up to 10 seconds; a second one ends
the process at once.`,
		Example: `  freshet serve --upstream mysql://app:secret@db.example:3306/shop
  freshet serve --upstream postgres://app:secret@db.example:5432/shop --listen 127.0.0.1:5433 --memory 2GiB
  freshet serve --config freshet.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.config(cmd)
			if err != nil {
				return usageError{err}
			}
			return serve(cmd.Context(), c, f.logger(cmd.ErrOrStderr()), cmd.OutOrStdout())
		},
	}
	f.register(cmd)
	return cmd
}

func serve(ctx context.Context, c proxy.Config, log *slog.Logger, out io.Writer) error {
	if err := c.Validate(); err != nil {
		return usageError{err}
	}
	// A busy loop keeps its processor: the feed and the side connections get
	// room beside the loops, or changes would wait for the scheduler's turn.
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), c.Loops+2))
	s, err := proxy.Open(ctx, c, proxy.Protocols{"mysql": mysql.New(), "postgres": postgres.New()}, log)
	if err != nil {
		return err
	}
	return s.Serve(ctx, func() {
		for _, line := range s.Listeners() {
			fmt.Fprintln(out, "freshet:", line)
		}
		if a := s.HTTPAddress(); a != "" {
			fmt.Fprintf(out, "freshet: http://%s/health and /metrics\n", a)
		}
	})
}

const (
	defaultMySQLListen    = "127.0.0.1:3307"
	defaultPostgresListen = "127.0.0.1:5433"
	defaultHTTP           = "127.0.0.1:6034"
	defaultStaleness      = time.Second
)
