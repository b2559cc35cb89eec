package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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
		if built.folder, built.err = os.MkdirTemp("", "freshet-history-"); built.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-o", filepath.Join(built.folder, "freshet"), "freshet/cmd/freshet")
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%s: %w\n%s", cmd, err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.folder, "freshet")
}

// full says that FRESHET_HISTORY asks for the long form.
func full() bool { return os.Getenv("FRESHET_HISTORY") == "full" }

// seed is the same for every short run, so that a change to the code is what a
// failure speaks of; the long form draws one. FRESHET_HISTORY_SEED gives another.
func seed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("FRESHET_HISTORY_SEED")
	switch {
	case text == "" && full():
		return rand.Uint64()
	case text == "":
		return 7
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("FRESHET_HISTORY_SEED=%q: want a number", text)
	}
	return n
}

// record runs a history on a server of each kind, side by side as -parallel
// allows.
func record(t *testing.T, kind upstream.Kind, cfg Config) Report {
	t.Helper()
	cfg.Server = upstream.Own(t, kind, upstream.WithSettings(ServerSettings(kind, cfg.Level)...))
	cfg.Program, cfg.Seed = program(t), seed(t)
	t.Logf("seed %d", cfg.Seed)
	report, err := Run(context.Background(), cfg)
	t.Log(report)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestHistories is the whole: every promise, on every server, under every
// fault. The short form plays each fault once, with readers at all levels
// before a server that holds its commits.
func TestHistories(t *testing.T) {
	levels, length := []Level{Linearizable}, time.Duration(0)
	longest := 800 * time.Millisecond
	if full() {
		levels, length, longest = []Level{Linearizable, Session, Bounded}, 2*time.Minute, 4*time.Second
	}
	for _, level := range levels {
		for _, kind := range upstream.Kinds {
			t.Run(fmt.Sprintf("%s/%s", level, kind), func(t *testing.T) {
				t.Parallel()
				report := record(t, kind, Config{Level: level, For: length, Longest: longest})
				if len(report.Violations) > 0 {
					t.Errorf("%d promises broken; FRESHET_HISTORY_SEED=%d draws the same faults", len(report.Violations), report.Config.Seed)
				}
				if why := report.Short(); why != "" {
					t.Errorf("it proves too little: %s", why)
				}
			})
		}
	}
}
