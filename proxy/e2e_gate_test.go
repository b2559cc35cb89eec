package proxy_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"freshet/bench/gate"
	"freshet/bench/seed"
	"freshet/bench/upstream"
	"freshet/proxy"
)

// gateSeed is FRESHET_GATE_SEED, or the same for every run; `freshet gate` draws
// one.
func gateSeed(t *testing.T) uint64 {
	t.Helper()
	return seed.Of(t, "FRESHET_GATE_SEED", 103)
}

// gateCalls are several times as many as finding the planted faults takes;
// `freshet gate` makes any number.
const gateCalls = 5000

// runGate compares direct with through until there are enough differences (0: 20);
// the report has the seed.
func runGate(t *testing.T, r *rig, enough int) (gate.Report, string) {
	t.Helper()
	var out strings.Builder
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	report, err := gate.Run(ctx, gate.Config{Direct: r.server.DSN(), Through: r.url(), Calls: gateCalls,
		Seed: gateSeed(t), MaxStaleness: time.Second, HTTP: r.http, Sessions: 6, Enough: enough, Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	return report, out.String()
}

// Every byte that means something to a client is the server's own.
func TestGate(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		report, differences := runGate(t, r, 0)
		if report.Differences != 0 {
			t.Errorf("%s\n%s", report, differences)
		}
		if report.Hits < int64(report.Reads)/20 {
			t.Errorf("only %d of %d reads were hits: the comparison says little", report.Hits, report.Reads)
		}
		t.Log(report)
	})
}

// A gate that cannot fail proves nothing: with every third invalidation
// forgotten it must find wrong answers.
func TestGateFindsForgottenInvalidations(t *testing.T) {
	for _, kind := range []upstream.Kind{upstream.MariaDB, upstream.Postgres15} {
		t.Run(string(kind), func(t *testing.T) {
			proxy.ForgetMarks(t, 3)
			r := newRig(t, upstream.Need(t, kind), proxy.Config{})
			if report, _ := runGate(t, r, 1); report.Differences == 0 {
				t.Errorf("no difference found: %s", report)
			} else {
				t.Log(report)
			}
		})
	}
}
