package versus

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"freshet/bench/load"
	"freshet/bench/upstream"
)

func TestMain(m *testing.M) { os.Exit(upstream.Main(m)) }

func outcome() Outcome {
	round := func(rate, micros float64) Round {
		return Round{PerSecond: rate, MicrosPerCall: micros, P50: time.Millisecond, P95: 20 * time.Millisecond, P99: 11 * time.Second, Calls: 10}
	}
	return Outcome{
		Config: Config{Name: "hit", Title: "a server", Rounds: 3, Seconds: 1, Connections: 2, Workload: load.Workload{Mode: load.Text}},
		Sides:  []string{"floor", "through", "direct", "unseen"},
		Rounds: map[string][]Round{
			"floor":   {round(300, 10), round(100, 30), round(200, 20)},
			"through": {round(100, 25), round(100, 25)},
			"direct":  {round(10, 100)},
			"unseen":  {round(10, 0)},
		},
	}
}

func TestMediansAndRatios(t *testing.T) {
	o := outcome()
	if o.Micros("floor") != 20 || o.PerSecond("floor") != 200 || o.Micros("through") != 25 || o.Micros("nobody") != 0 {
		t.Errorf("floor %g µs, %g/s; through %g µs", o.Micros("floor"), o.PerSecond("floor"), o.Micros("through"))
	}
	want := []Ratio{{"CPU through/floor", 1.25}, {"CPU direct/through", 4}, {"calls/s through/direct", 10}}
	got := o.Ratios()
	if len(got) != len(want) {
		t.Fatalf("%v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%v, want %v", got[i], want[i])
		}
	}
}

func TestPrintAndAppend(t *testing.T) {
	var b strings.Builder
	o := outcome()
	if err := o.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"hit: a server; text, 2 connections, closed loop", "200 (100-300)", "20.00 µs (10.00-30.00)", "1000 µs", "20.0 ms", "11s", "CPU through/floor 1.25"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("%q is not in\n%s", part, b.String())
		}
	}
	path := filepath.Join(t.TempDir(), "results.jsonl")
	for range 2 {
		if err := o.Append(path, time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var l line
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &l); err != nil || len(lines) != 2 || l.At != "1970-01-01T00:00:00Z" || len(l.Sides["floor"]) != 3 {
		t.Errorf("%d lines, %+v, %v", len(lines), l, err)
	}
}

// TestWorkloadsRun: every workload is understood by both dialects, and every
// call is answered with what it asked for.
func TestWorkloadsRun(t *testing.T) {
	for _, kind := range []upstream.Kind{upstream.MariaDB, upstream.Postgres15} {
		s := upstream.Need(t, kind)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := LoadTable(ctx, s.DSN()); err != nil {
			t.Fatal(err)
		}
		for name, w := range map[string]load.Workload{
			"hit": PointReads(load.Prepared, 1, 50), "hit text": PointReads(load.Text, 1, 50), "miss": FreshReads(load.Prepared, 1),
			"miss text": FreshReads(load.Text, 1), "mixed": Mixed(load.Prepared, 1, 50, 10),
		} {
			t.Run(string(kind)+"/"+name, func(t *testing.T) {
				rec, err := w.Sample(ctx, s.DSN())
				if err != nil || !strings.Contains(string(rec.Reply), "sku-000001") {
					t.Fatalf("the first call answered %q, %v", rec.Reply, err)
				}
				o, err := Run(ctx, Config{Name: name, Workload: w, Connections: 2, Seconds: 0.1, Rounds: 2, Core: -1}, []Side{{Name: "direct", DSN: s.DSN(), Pid: s.Pid()}}, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range o.Rounds["direct"] {
					if r.Errors != 0 || r.Calls == 0 {
						t.Errorf("%+v", r)
					}
				}
			})
		}
		if err := DropTable(ctx, s.DSN()); err != nil {
			t.Error(err)
		}
	}
}
