package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"freshet/bench/program"
	"freshet/bench/seed"
	"freshet/bench/upstream"
)

func TestMain(m *testing.M) { os.Exit(program.Clean(upstream.Main(m))) }

// full says that FRESHET_HISTORY asks for the long form.
func full() bool { return os.Getenv("FRESHET_HISTORY") == "full" }

// drawnSeed is the same for every short run; the long form draws one.
// FRESHET_HISTORY_SEED gives another.
func drawnSeed(t *testing.T) uint64 {
	t.Helper()
	fixed := uint64(7)
	if full() {
		fixed = rand.Uint64()
	}
	return seed.Of(t, "FRESHET_HISTORY_SEED", fixed)
}

// record runs a history on a server of each kind, side by side as -parallel
// allows.
func record(t *testing.T, kind upstream.Kind, cfg Config) Report {
	t.Helper()
	cfg.Server = upstream.Own(t, kind, upstream.WithSettings(ServerSettings(kind, cfg.Level)...))
	cfg.Program, cfg.Seed = program.Path(t), drawnSeed(t)
	t.Logf("seed %d", cfg.Seed)
	report, err := Run(context.Background(), cfg)
	t.Log(report)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestHistories is the whole: every promise, on every server, under every
// fault. The short form has readers at all levels before a server that holds its
// commits, and deals the faults out to the two servers of each dialect.
func TestHistories(t *testing.T) {
	levels, length, longest := []Level{Linearizable}, time.Duration(0), 600*time.Millisecond
	if full() {
		levels, length, longest = []Level{Linearizable, Session, Bounded}, fullLength(t), 5*time.Second
	}
	for _, level := range levels {
		for i, kind := range upstream.Kinds {
			t.Run(fmt.Sprintf("%s/%s", level, kind), func(t *testing.T) {
				t.Parallel()
				cfg := Config{Level: level, For: length, Longest: longest}
				for n, f := range allFaults {
					if full() || n%2 == i%2 {
						cfg.only = append(cfg.only, f)
					}
				}
				report := record(t, kind, cfg)
				if n := len(report.Violations); n > 0 {
					t.Errorf("%d promises broken; FRESHET_HISTORY_SEED=%d draws the same faults", n, report.Config.Seed)
				}
				if why := report.Short(); why != "" {
					t.Errorf("it proves too little: %s", why)
				}
			})
		}
	}
}

// fullLength is how long a history of the long form is; FRESHET_HISTORY_FOR
// gives another.
func fullLength(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("FRESHET_HISTORY_FOR")
	if text == "" {
		return 2 * time.Minute
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("FRESHET_HISTORY_FOR: %v", err)
	}
	return d
}

// TestFindsWhatIsNotKept serves answers that are up to twenty seconds old while
// the feed is held, and claims every promise for them. Each must be found to be broken.
func TestFindsWhatIsNotKept(t *testing.T) {
	for _, kind := range []upstream.Kind{upstream.MariaDB, upstream.Postgres15} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			busy := habit{name: "busy", level: Bounded, writes: 10, think: 4 * time.Millisecond}
			strict, own := busy, busy
			strict.claim, own.claim = Linearizable, Session
			past := habit{name: "writer past Freshet", level: Direct, writes: 100, think: 40 * time.Millisecond}
			report := record(t, kind, Config{Level: Bounded, Staleness: 20 * time.Second, Bound: 200 * time.Millisecond,
				Longest: 800 * time.Millisecond, crew: []habit{busy, strict, own, past},
				only: []fault{holding(feedAll), holding(streamOnly)}})
			found := make(map[Level]int)
			for _, v := range report.Violations {
				found[v.Level]++
			}
			for _, level := range []Level{Bounded, Session, Linearizable} {
				if found[level] == 0 {
					t.Errorf("%s is not found to be broken", level)
				}
			}
			if found[""] > 0 {
				t.Error("what was read was never written")
			}
		})
	}
}
