// Package load generates load that costs less than the servers it measures:
// one thread, one epoll, requests encoded beforehand, replies framed but not
// decoded. Closed loop (each connection asks again once it is answered) or open
// loop at a fixed rate, where latency counts from the moment at which a request
// should have been sent, so that a stall is paid by every request it delays.
package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"freshet/bench/cpu"
)

// Mode is how a statement goes over the wire.
type Mode string

// The modes. Pipelined is prepared, Depth executes in one write (PostgreSQL).
const (
	Text      Mode = "text"
	Prepared  Mode = "prepared"
	Pipelined Mode = "pipelined"
)

// Config is one measurement of one server.
type Config struct {
	Workload    Workload
	DSN         string
	Connections int
	Seconds     float64
	Warmup      float64 // seconds before, not counted
	Rate        float64 // calls/s over all connections; 0: closed loop
	Core        int     // the core the load runs on; negative: any
	// Begin and End are called on the load's thread around what is counted.
	Begin, End func() error
}

// Result is what was counted. Latencies are in nanoseconds.
type Result struct {
	Calls   int64
	Errors  int64 // replies that were errors
	Elapsed time.Duration
	Latency *hdrhistogram.Histogram
}

// PerSecond is calls per second.
func (r Result) PerSecond() float64 { return float64(r.Calls) / r.Elapsed.Seconds() }

// Percentile is a latency.
func (r Result) Percentile(p float64) time.Duration {
	return time.Duration(r.Latency.ValueAtPercentile(p))
}

// drainSeconds bounds the wait for the last replies.
const drainSeconds = 5

// Run connects, warms up, measures and disconnects.
func Run(ctx context.Context, cfg Config) (Result, error) {
	if cfg.Connections < 1 || cfg.Seconds <= 0 {
		return Result{}, fmt.Errorf("%d connections for %g seconds is no load", cfg.Connections, cfg.Seconds)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	unbind := func() error { return nil }
	if cfg.Core >= 0 {
		var err error
		if unbind, err = cpu.Bind(cfg.Core); err != nil {
			return Result{}, err
		}
	}
	result, err := run(ctx, cfg)
	return result, errors.Join(err, unbind())
}

func run(ctx context.Context, cfg Config) (result Result, err error) {
	e, err := newEngine(cfg)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	for i := range cfg.Connections {
		if err := e.open(ctx, i); err != nil {
			return Result{}, fmt.Errorf("connection %d: %w", i+1, err)
		}
	}
	start := time.Now()
	warm := start.Add(seconds(cfg.Warmup))
	if err := e.until(ctx, warm); err != nil {
		return Result{}, err
	}
	if cfg.Begin != nil {
		if err := cfg.Begin(); err != nil {
			return Result{}, err
		}
	}
	e.latency.Reset()
	e.calls, e.errors = 0, 0
	begun := time.Now()
	if err := e.until(ctx, begun.Add(seconds(cfg.Seconds))); err != nil {
		return Result{}, err
	}
	result = Result{Calls: e.calls, Errors: e.errors, Elapsed: time.Since(begun), Latency: e.latency}
	if cfg.End != nil {
		if err := cfg.End(); err != nil {
			return result, err
		}
	}
	result.Latency = hdrhistogram.Import(e.latency.Export())
	return result, e.drain(ctx)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
