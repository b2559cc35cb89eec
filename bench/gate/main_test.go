package gate

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
)

func TestMain(m *testing.M) { os.Exit(upstream.Main(m)) }

// tlog sends differences to the test's log.
type tlog struct{ t *testing.T }

func (l tlog) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// TestDirectAgainstItself: a server does not differ from itself; whatever this
// finds is the gate's own fault.
func TestDirectAgainstItself(t *testing.T) {
	for _, kind := range upstream.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			s := upstream.Need(t, kind)
			ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
			defer cancel()
			const seed = 20 // the same for every run, so that a change to the code is what a failure speaks of
			report, err := Run(ctx, Config{Direct: s.DSN(), Through: s.DSN(), Calls: 1000, Seed: seed, MaxStaleness: time.Second, Out: tlog{t}})
			t.Logf("%s", report)
			if err != nil {
				t.Fatal(err)
			}
			if report.Differences != 0 || report.Retried != 0 {
				t.Errorf("seed %d: %d differences, %d retries of a server with itself", seed, report.Differences, report.Retried)
			}
			if report.Writes == 0 || report.Reads < 200 {
				t.Errorf("seed %d: %d reads and %d writes are too few to mean anything", seed, report.Reads, report.Writes)
			}
		})
	}
}
