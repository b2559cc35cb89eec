package floor

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"freshet/bench/load"
	"freshet/bench/upstream"
)

func TestMain(m *testing.M) { os.Exit(upstream.Main(m)) }

var point = load.Statement{SQL: "SELECT ?, 'something to send back'", Args: func(n int64) []int64 { return []int64{n % 10} }}

// TestFloorAnswersLikeTheRecording: the load finds every request answered, in
// every mode, closed and open loop, by the floor as by the server itself.
func TestFloorAnswersLikeTheRecording(t *testing.T) {
	for _, kind := range []upstream.Kind{upstream.MariaDB, upstream.MySQL, upstream.Postgres15} {
		for _, mode := range []load.Mode{load.Text, load.Prepared, load.Pipelined} {
			if mode == load.Pipelined && kind != upstream.Postgres15 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s", kind, mode), func(t *testing.T) {
				s := upstream.Need(t, kind)
				w := load.Workload{Mode: mode, Statements: []load.Statement{point}, Distinct: 10}
				if s.Dialect == upstream.DialectPostgres {
					w.Statements[0].SQL = "SELECT ?::int8, 'something to send back'"
				}
				if mode == load.Pipelined {
					w.Depth = 8
				}
				rec, err := w.Sample(context.Background(), s.DSN())
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Contains(rec.Reply, []byte("something to send back")) {
					t.Fatalf("recorded %q", rec.Reply)
				}
				f, err := Start(rec)
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := f.Stop(context.Background()); err != nil {
						t.Error(err)
					}
				}()
				floorDSN := s.Dialect + "://u:p@" + f.Addr + "/d?" + map[string]string{"postgres": "sslmode=disable"}[s.Dialect]
				for _, dsn := range []string{floorDSN, s.DSN()} {
					for _, rate := range []float64{0, 2000} {
						check(t, load.Config{Workload: w, DSN: dsn, Connections: 5, Seconds: 0.2, Warmup: 0.05, Rate: rate, Core: -1})
					}
				}
			})
		}
	}
}

func check(t *testing.T, cfg load.Config) {
	t.Helper()
	begun, ended := 0, 0
	cfg.Begin = func() error { begun++; return nil }
	cfg.End = func() error { ended++; return nil }
	r, err := load.Run(context.Background(), cfg)
	if err != nil {
		t.Fatalf("rate %g at %.30s…: %v", cfg.Rate, cfg.DSN, err)
	}
	if r.Calls < 50 || r.Errors != 0 || begun != 1 || ended != 1 {
		t.Errorf("rate %g: %d calls, %d errors, begun %d, ended %d", cfg.Rate, r.Calls, r.Errors, begun, ended)
	}
	if r.Latency.TotalCount() != r.Calls || r.Percentile(50) <= 0 || r.Percentile(50) > time.Second {
		t.Errorf("rate %g: %d latencies of %d calls, p50 %s", cfg.Rate, r.Latency.TotalCount(), r.Calls, r.Percentile(50))
	}
	// What was due in the warm-up and came late counts among what is measured.
	if due := cfg.Rate * (cfg.Warmup + r.Elapsed.Seconds()); cfg.Rate > 0 && float64(r.Calls) > due*1.2 {
		t.Errorf("%d calls at a rate of %g, by which %.0f were due", r.Calls, cfg.Rate, due)
	}
}

// TestServeEndsWithItsInput: a floor in a child process ends with its parent.
func TestServeEndsWithItsInput(t *testing.T) {
	in, out := io.Pipe()
	done := make(chan error, 1)
	var address strings.Builder
	go func() { done <- Serve(load.Recording{Dialect: "mysql", Version: "8"}, in, &address) }()
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil || !strings.HasPrefix(address.String(), "127.0.0.1:") {
			t.Errorf("address %q, error %v", address.String(), err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the floor did not end")
	}
}
