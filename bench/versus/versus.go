// Package versus measures a proxy beside the server it stands before, the
// canned floor below it and its peers: the same load on each, in turn, for
// several rounds of one run, so that what the machine does meanwhile falls on
// all of them alike.
package versus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"freshet/bench/cpu"
	"freshet/bench/load"
)

// Side is one server under load.
type Side struct {
	Name string
	DSN  string
	Pid  int // whose CPU time counts, with its children; 0: not to be seen
	Also int // another such process: the server behind a proxy that forwards to it
}

// cpuTime is what the side's processes have used.
func (s Side) cpuTime() (time.Duration, error) {
	var total time.Duration
	for _, pid := range []int{s.Pid, s.Also} {
		if pid == 0 {
			continue
		}
		t, err := cpu.Time(pid)
		if err != nil {
			return 0, err
		}
		total += t
	}
	return total, nil
}

// Config is a comparison.
type Config struct {
	Name        string // hit, miss, mixed
	Title       string // what is compared, in words
	Workload    load.Workload
	Connections int
	Seconds     float64
	Warmup      float64
	Rate        float64 // calls/s; 0: closed loop
	Rounds      int
	Core        int // the load's
}

// Round is what one side did in one round.
type Round struct {
	PerSecond     float64       `json:"calls_per_second"`
	P50           time.Duration `json:"p50_ns"`
	P95           time.Duration `json:"p95_ns"`
	P99           time.Duration `json:"p99_ns"`
	MicrosPerCall float64       `json:"server_cpu_us_per_call"` // 0: not measured
	Calls         int64         `json:"calls"`
	Errors        int64         `json:"errors"`
}

// Outcome is every round of every side.
type Outcome struct {
	Config Config
	Sides  []string
	Rounds map[string][]Round
}

// Run measures every side in every round. between, if any, is called before a
// side's round.
func Run(ctx context.Context, cfg Config, sides []Side, between func(Side) error) (Outcome, error) {
	out := Outcome{Config: cfg, Rounds: make(map[string][]Round)}
	for _, s := range sides {
		out.Sides = append(out.Sides, s.Name)
	}
	for n := range max(1, cfg.Rounds) {
		cfg.Workload.Round = (out.Config.Workload.Round + int64(n)) % 256
		for _, s := range sides {
			if between != nil {
				if err := between(s); err != nil {
					return out, err
				}
			}
			r, err := round(ctx, cfg, s)
			if err != nil {
				return out, fmt.Errorf("%s: %w", s.Name, err)
			}
			out.Rounds[s.Name] = append(out.Rounds[s.Name], r)
		}
	}
	return out, nil
}

func round(ctx context.Context, cfg Config, s Side) (Round, error) {
	var before, after time.Duration
	usage := func(into *time.Duration) func() error {
		return func() (err error) {
			*into, err = s.cpuTime()
			return err
		}
	}
	r, err := load.Run(ctx, load.Config{
		Workload: cfg.Workload, DSN: s.DSN, Connections: cfg.Connections, Seconds: cfg.Seconds, Warmup: cfg.Warmup,
		Rate: cfg.Rate, Core: cfg.Core, Begin: usage(&before), End: usage(&after),
	})
	if err != nil {
		return Round{}, err
	}
	if r.Calls == 0 {
		return Round{}, errors.New("not one call was answered")
	}
	if s.Pid == 0 {
		before = after // the server behind alone would say nothing of the side
	}
	return Round{
		PerSecond: r.PerSecond(), P50: r.Percentile(50), P95: r.Percentile(95), P99: r.Percentile(99),
		MicrosPerCall: float64((after - before).Nanoseconds()) / 1e3 / float64(r.Calls), Calls: r.Calls, Errors: r.Errors,
	}, nil
}
