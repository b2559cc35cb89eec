package oracle

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"freshet/bench/upstream"
)

func TestMain(m *testing.M) {
	code := upstream.Main(m)
	if built.folder != "" {
		if err := os.RemoveAll(built.folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// built is the Freshet that the tests start, made when first needed.
var built struct {
	once   sync.Once
	folder string
	err    error
}

// program is FRESHET_BIN, or a Freshet made from this source.
func program(t *testing.T) string {
	t.Helper()
	if p := os.Getenv("FRESHET_BIN"); p != "" {
		return p
	}
	built.once.Do(func() {
		if built.folder, built.err = os.MkdirTemp("", "freshet-oracle-"); built.err == nil {
			built.err = build(filepath.Join(built.folder, "freshet"))
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.folder, "freshet")
}

func build(to string, more ...string) error {
	cmd := exec.Command("go", append(append([]string{"build", "-o", to}, more...), "freshet/cmd/freshet")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

// seed is the same for every run, so that a change to the code is what a
// failure speaks of. FRESHET_ORACLE_SEED takes another; `freshet oracle` draws one.
func seed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("FRESHET_ORACLE_SEED")
	if text == "" {
		return 20
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("FRESHET_ORACLE_SEED=%q: want a number", text)
	}
	return n
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
			a := arena(t, kind, program(t))
			var out strings.Builder
			report, err := a.Check(context.Background(), Config{Seed: seed(t), For: 12 * time.Second, Round: -1, Out: &out})
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
				a := arena(t, kind, program(t))
				var out strings.Builder
				report, err := a.Check(context.Background(), Config{Seed: seed(t), Focus: focus, For: 6 * time.Second, Round: -1, Out: &out})
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
