package rig

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"freshet/bench/load"
	"freshet/bench/upstream"
	"freshet/bench/versus"
	"freshet/bench/wire"
)

// ArenaConfig says what takes part. With Kind, the arena starts the server and
// the proxy itself; otherwise they run already.
type ArenaConfig struct {
	Kind       upstream.Kind // "": use Direct and Through
	Program    string        // this program, for the children
	ServerCore int           // where what the arena starts runs; negative: anywhere
	ProxyCore  *int          // where the proxy runs, if elsewhere
	ServeArgs  []string      // more arguments for `serve`

	Direct, Through       string // DSNs
	DirectPid, ThroughPid int    // 0: not to be seen
	HTTP                  string // the proxy's metrics; may be empty
}

// Arena is a server, a proxy before it and perhaps a floor.
type Arena struct {
	ArenaConfig
	Title string // what runs, in words
	stops []func() error
}

// Cores are the one for servers and the one for the load: apart when the
// machine has two.
func Cores() (server, load int) {
	if runtime.NumCPU() < 2 {
		return 0, 0
	}
	return 0, 1
}

// OpenArena starts what is to be started.
func OpenArena(ctx context.Context, cfg ArenaConfig) (*Arena, error) {
	a := &Arena{ArenaConfig: cfg}
	if cfg.Kind == "" {
		a.Title = "the servers given"
		return a, nil
	}
	var options []upstream.Option
	if cfg.ServerCore >= 0 {
		options = append(options, upstream.WithCPUs(cfg.ServerCore))
	}
	s, err := upstream.Start(ctx, cfg.Kind, options...)
	if err != nil {
		return nil, err
	}
	a.stops = append(a.stops, s.Stop)
	a.Direct, a.DirectPid = s.DSN(), s.Pid()
	a.Title = fmt.Sprintf("%s %s", cfg.Kind, s.Version)
	core := cfg.ServerCore
	if cfg.ProxyCore != nil {
		core = *cfg.ProxyCore
	}
	p, err := StartProxy(ctx, cfg.Program, a.Direct, core, cfg.ServeArgs...)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	a.stops = append(a.stops, p.Stop)
	a.ThroughPid, a.HTTP = p.Pid(), p.HTTP
	if a.Through, err = p.DSN(a.Direct); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// Floor starts the canned floor for a workload, recorded from the server
// itself, and returns it as a side.
func (a *Arena) Floor(ctx context.Context, w load.Workload) (versus.Side, error) {
	rec, err := w.Sample(ctx, a.Direct)
	if err != nil {
		return versus.Side{}, fmt.Errorf("recording the floor's answers: %w", err)
	}
	f, err := StartFloor(ctx, a.Program, rec, a.ServerCore)
	if err != nil {
		return versus.Side{}, err
	}
	a.stops = append(a.stops, f.Stop)
	dsn, err := f.DSN(a.Direct)
	return versus.Side{Name: "floor", DSN: dsn, Pid: f.Pid()}, err
}

// Sides are the proxy and the server, as far as they are known.
func (a *Arena) Sides() []versus.Side {
	var out []versus.Side
	if a.Through != "" {
		out = append(out, versus.Side{Name: "through", DSN: a.Through, Pid: a.ThroughPid})
	}
	if a.Direct != "" {
		out = append(out, versus.Side{Name: "direct", DSN: a.Direct, Pid: a.DirectPid})
	}
	return out
}

// Dialect is the servers'.
func (a *Arena) Dialect() (string, error) {
	dsn := a.Direct
	if dsn == "" {
		dsn = a.Through
	}
	t, err := wire.Parse(dsn)
	return t.Dialect, err
}

// Close stops what was started, the newest first.
func (a *Arena) Close() error {
	var errs []error
	for i := len(a.stops) - 1; i >= 0; i-- {
		errs = append(errs, a.stops[i]())
	}
	a.stops = nil
	return errors.Join(errs...)
}
