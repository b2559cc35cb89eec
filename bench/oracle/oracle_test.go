package oracle

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"freshet/bench/program"
	"freshet/bench/seed"
	"freshet/bench/upstream"
)

func TestMain(m *testing.M) { os.Exit(program.Clean(upstream.Main(m))) }

// drawn is FRESHET_ORACLE_SEED, or the same for every run; `freshet oracle` draws
// one.
func drawn(t *testing.T) uint64 {
	t.Helper()
	return seed.Of(t, "FRESHET_ORACLE_SEED", 20)
}

// arena opens a server and a Freshet for one test.
func arena(t *testing.T, kind upstream.Kind, program string, serve ...string) *Arena {
	t.Helper()
	s := upstream.Own(t, kind, upstream.WithSettings(ServerSettings(kind)...))
	a, err := OpenArena(context.Background(), s, program, serve...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// leastChecks is what the busiest machine checks in the time of TestOracle, and
// leastShare the part of hits among them: PostgreSQL's schemas with types of
// users' own have the fewest.
const (
	leastChecks = 500
	leastShare  = 0.15
)

// TestOracle is the short form of `freshet oracle`.
func TestOracle(t *testing.T) {
	for _, kind := range upstream.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			if testing.Short() {
				t.Skip("needs a server")
			}
			a := arena(t, kind, program.Path(t))
			var out strings.Builder
			report, err := a.Check(context.Background(), Config{Seed: drawn(t), For: 12 * time.Second, Round: -1, Out: &out})
			if err != nil {
				t.Fatalf("%v\n%s%s", err, report, out.String())
			}
			if report.Differences > 0 || report.Hindered > 0 {
				t.Errorf("%s%s%s", report, report.Detail(), out.String())
			}
			if report.Checks < leastChecks || report.HitShare() < leastShare {
				t.Errorf("it proves too little: %s%s", report, report.Detail())
			}
			t.Log(report.String() + report.Detail())
		})
	}
}

// TestFocused has what PostgreSQL knows of families, policies and operators of
// an extension in every round.
func TestFocused(t *testing.T) {
	for _, kind := range []upstream.Kind{upstream.Postgres15, upstream.Postgres18} {
		for _, focus := range []string{"families", "policies", "extension"} {
			t.Run(string(kind)+"/"+focus, func(t *testing.T) {
				if testing.Short() {
					t.Skip("needs a server")
				}
				a := arena(t, kind, program.Path(t))
				var out strings.Builder
				report, err := a.Check(context.Background(), Config{Seed: drawn(t), Focus: focus, For: 6 * time.Second, Round: -1, Out: &out})
				if err != nil {
					t.Fatalf("%v\n%s%s", err, report, out.String())
				}
				if report.Differences > 0 || report.Hindered > 0 || report.Checks < leastChecks {
					t.Errorf("%s%s%s", report, report.Detail(), out.String())
				}
				t.Log(report.String())
			})
		}
	}
}

// TestDrawsTheSame: a seed is a run, on every dialect.
func TestDrawsTheSame(t *testing.T) {
	for _, kind := range append([]upstream.Kind{upstream.MariaDB11}, upstream.Kinds...) {
		for round := range 20 {
			var texts []string
			for range 2 {
				cfg := Config{Kind: kind, Seed: 7, Reads: 50, Writes: 30, Gaps: 5}
				r := &runner{cfg: cfg, d: dialectOf(kind), report: newReport(cfg)}
				sc := r.draw(round)
				var b strings.Builder
				for _, s := range sc.setup {
					fmt.Fprintln(&b, s.sql)
				}
				for _, q := range sc.reads {
					fmt.Fprintln(&b, q)
				}
				for i := range sc.writes {
					fmt.Fprintln(&b, &sc.writes[i])
				}
				texts = append(texts, b.String())
			}
			if texts[0] != texts[1] {
				t.Fatalf("%s: round %d is not the same when drawn again", kind, round)
			}
		}
	}
}

// TestParametersFit: each parameter has its place, and no literal has a ?.
func TestParametersFit(t *testing.T) {
	for _, kind := range upstream.Kinds {
		r := &runner{cfg: Config{Kind: kind, Seed: 3, Reads: 400, Writes: 1}, d: dialectOf(kind)}
		for round := range 10 {
			for _, q := range r.draw(round).reads {
				if n := strings.Count(q.sql, "?"); n != len(q.args) {
					t.Errorf("%s: %d places for %d parameters", q, n, len(q.args))
				}
			}
		}
	}
}
