package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
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

With --tls-cert and --tls-key clients may speak TLS, from 1.2 on. With --users more
users than the DSN's may log in, each as itself upstream. SIGHUP reads certificates
and users again, for the clients that come from then on.

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
	hangups := make(chan os.Signal, 1) // from now on, or one that comes early would end the process
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	// A busy loop keeps its processor: the feed and the side connections get
	// room beside the loops, or changes would wait for the scheduler's turn.
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), c.Loops+2))
	s, err := proxy.Open(ctx, c, proxy.Protocols{"mysql": mysql.New(), "postgres": postgres.New()}, log)
	if err != nil {
		return err
	}
	go reloadOn(ctx, hangups, s, log)
	return s.Serve(ctx, func() {
		for _, line := range s.Listeners() {
			fmt.Fprintln(out, "freshet:", line)
		}
		if a := s.HTTPAddress(); a != "" {
			fmt.Fprintf(out, "freshet: http://%s/health and /metrics\n", a)
		}
	})
}

// reloadOn has each hangup read again what may be read again, until ctx ends.
func reloadOn(ctx context.Context, hangups <-chan os.Signal, s *proxy.Server, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
		}
		if err := s.Reload(); err != nil {
			log.Error("not reloaded: what was read before stays", "cause", err)
		}
	}
}

const (
	defaultMySQLListen    = "127.0.0.1:3307"
	defaultPostgresListen = "127.0.0.1:5433"
	defaultHTTP           = "127.0.0.1:6034"
	defaultStaleness      = time.Second
)
