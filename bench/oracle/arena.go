package oracle

import (
	"context"
	"errors"

	"freshet/bench/rig"
	"freshet/bench/upstream"
	"freshet/bench/wire"
)

// Arena is a server of one's own and a Freshet before it. The server stays its
// owner's.
type Arena struct {
	Server  *upstream.Server
	Proxy   *rig.Proxy
	Through string // DSN
}

// ServerSettings are what a server needs beside what bench/upstream gives it.
func ServerSettings(k upstream.Kind) []string {
	switch k {
	case upstream.Postgres15, upstream.Postgres18:
		return []string{"max_prepared_transactions=10"}
	}
	return []string{"local_infile=ON"}
}

// ServeFlags are those of a Freshet that is checked here: the machine may be
// busy, and a hit that is not served proves nothing. What is checked does not
// hang on the bound: every check waits for a proof first.
var ServeFlags = []string{"--max-staleness", "20s", "--memory", "256MiB", "--log-level", "error"}

// StartServer starts a server with what the oracle needs.
func StartServer(ctx context.Context, k upstream.Kind) (*upstream.Server, error) {
	return upstream.Start(ctx, k, upstream.WithSettings(ServerSettings(k)...))
}

// OpenArena starts program as a Freshet before s.
func OpenArena(ctx context.Context, s *upstream.Server, program string, serve ...string) (*Arena, error) {
	p, err := rig.StartProxy(ctx, program, s.DSN(), -1, append(append([]string(nil), ServeFlags...), serve...)...)
	if err != nil {
		return nil, err
	}
	a := &Arena{Server: s, Proxy: p}
	if a.Through, err = p.DSN(s.DSN()); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// LinearizableFlag is what a Freshet must be served with for Linearize.
const LinearizableFlag = "--consistency=linearizable"

// Linearize makes the server hold its commits until this arena's Freshet has
// acknowledged them (docs/linearizable.md).
func (a *Arena) Linearize(ctx context.Context) error {
	t, err := wire.Parse(a.Server.DSN())
	if err != nil {
		return err
	}
	r := &runner{direct: t}
	switch a.Server.Kind {
	case upstream.MySQL:
		return r.once(ctx, "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'", "SET GLOBAL rpl_semi_sync_source_enabled = ON")
	case upstream.MariaDB, upstream.MariaDB11:
		return r.once(ctx, "SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC'", "SET GLOBAL rpl_semi_sync_master_enabled = ON")
	}
	return r.once(ctx, "ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (freshet)'", "SELECT pg_reload_conf()")
}

// Close stops the Freshet.
func (a *Arena) Close() error { return a.Proxy.Stop() }

// Check plays in the arena.
func (a *Arena) Check(ctx context.Context, cfg Config) (Report, error) {
	cfg.Kind, cfg.Direct, cfg.Through = a.Server.Kind, a.Server.DSN(), a.Through
	if cfg.Gaps = max(cfg.Gaps, defaultGaps); cfg.Linearizable {
		cfg.Gaps = 0 // the commits are held already
	}
	report, err := Run(ctx, cfg)
	report.Kind += " " + a.Server.Version
	return report, err
}
