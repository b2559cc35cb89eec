package fresh

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"freshet/bench/upstream"
	"freshet/bench/versus"
)

// TestCompareServerWithItself: read from the server itself, everything that
// Compare awaits comes. How fast is no test's business.
func TestCompareServerWithItself(t *testing.T) {
	for _, kind := range upstream.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			s := upstream.Need(t, kind)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			report, err := Compare(ctx, SpeedConfig{Direct: s.DSN(), Through: s.DSN(), DirectPid: s.Pid(), ThroughPid: s.Pid(),
				Commits: 30, Seconds: 0.3, Rounds: 1, Writers: 2, Core: -1})
			if err != nil {
				t.Fatal(err)
			}
			idle := &report.Idle
			if idle.Bare.TotalCount() != 10 || idle.Own.TotalCount() != 10 || idle.Fresh.TotalCount() != 10 || len(report.Loaded) != 2 || report.Loaded[0].PerSecond <= 0 || report.Loaded[1].PerSecond <= 0 {
				t.Errorf("%d and %d commits, beside %+v", idle.Bare.TotalCount(), idle.Fresh.TotalCount(), report.Loaded)
			}
			for _, w := range report.Writing {
				if w.Rows == 0 || w.Server != w.Proxy {
					t.Errorf("%+v: want rows, and one process seen twice", w)
				}
			}
			var out strings.Builder
			for _, race := range append(report.Loaded, report.Idle) {
				if race.Older != 0 {
					t.Errorf("the server itself answered %d times with what was before the commit", race.Older)
				}
			}
			if err := report.Print(&out); err != nil || !strings.Contains(out.String(), "20 shapes") {
				t.Errorf("%v: %s", err, out.String())
			}
		})
	}
}

// TestAimIsHeldAgainstTheRow: the aim stands beside the ratio to a bare client
// that has the row, and the one to its seeing the commit stands there too.
func TestAimIsHeldAgainstTheRow(t *testing.T) {
	report := Speed{Idle: newRace()}
	report.Idle.Older = 1
	for h, took := range map[*hdrhistogram.Histogram]time.Duration{
		report.Idle.Bare: 100 * time.Microsecond, report.Idle.Own: 200 * time.Microsecond, report.Idle.Fresh: 310 * time.Microsecond} {
		for range 4 {
			if err := h.RecordValue(int64(took)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var out strings.Builder
	if err := report.Print(&out); err != nil {
		t.Fatal(err)
	}
	// The histogram keeps three digits of a latency.
	row, sight := report.Idle.Ratio(report.Idle.Own, 99), report.Idle.Ratio(report.Idle.Bare, 99)
	if math.Abs(row-1.55) > 0.01 || math.Abs(sight-3.1) > 0.02 {
		t.Errorf("%.3f times the row and %.3f times the sight, want 1.55 and 3.1", row, sight)
	}
	for _, want := range []string{fmt.Sprintf("%.2f, %.2f times until the bare client has the row (aim: 1.5)", row, row),
		fmt.Sprintf("%.2f, %.2f times until it has seen the commit", sight, sight), "25 % had an older answer served"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("not said: %s\n%s", want, &out)
		}
	}
}

// TestBareStreamSeesOnlyWhatIsCommitted: not another value, not a change that
// is rolled back.
func TestBareStreamSeesOnlyWhatIsCommitted(t *testing.T) {
	for _, kind := range upstream.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			s := upstream.Need(t, kind)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			const name = "bare_stream"
			exec := func(statements ...string) {
				t.Helper()
				if err := versus.Exec(ctx, s.DSN(), statements...); err != nil {
					t.Fatal(err)
				}
			}
			exec("CREATE TABLE "+name+" (id INT PRIMARY KEY, v BIGINT NOT NULL)", "INSERT INTO "+name+" VALUES (1, 0)")
			defer exec("DROP TABLE " + name)
			bare, err := openStream(ctx, s.DSN(), name)
			if err != nil {
				t.Fatal(err)
			}
			set := func(v int64) string { return fmt.Sprintf("UPDATE %s SET v = %d WHERE id = 1", name, v) }
			bare.expect(valueBase + 2)
			exec(set(valueBase+1), "BEGIN", set(valueBase+2), "ROLLBACK", set(valueBase+3))
			before := time.Now()
			exec(set(valueBase + 2))
			seen, err := bare.await(ctx)
			if err != nil || seen.Before(before) {
				t.Errorf("seen %s before it was committed, %v", before.Sub(seen), err)
			}
			if err := bare.close(); err != nil {
				t.Error(err)
			}
		})
	}
}
