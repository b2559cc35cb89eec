package precision

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"freshet/bench/program"
	"freshet/bench/rig"
	"freshet/bench/upstream"
)

func TestMain(m *testing.M) { os.Exit(program.Clean(upstream.Main(m))) }

// arena is a Freshet before a server.
func arena(t *testing.T, kind upstream.Kind) Config {
	s := upstream.Need(t, kind)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := rig.StartProxy(ctx, program.Path(t), s.DSN(), -1, "--max-staleness", "20s", "--memory", "256MiB")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	through, err := p.DSN(s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	return Config{Direct: s.DSN(), Through: through, HTTP: p.HTTP, Seed: 1, Rows: 2000}
}

// TestPrecision is bench precision in short. What it counts does not hang on
// the machine: the feed has passed every write before anything is read.
func TestPrecision(t *testing.T) {
	for _, kind := range upstream.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			cfg := arena(t, kind)
			keys, err := RunKeys(t.Context(), KeysConfig{Config: cfg, Keys: 2000, Updates: 200})
			if err != nil {
				t.Fatal(err)
			}
			if keys.Failed() || keys.Misses != 200 {
				t.Errorf("%+v: want as many misses as updates", keys)
			}
			spread := play(t, cfg, "sysbench-spread", 150)
			if ranges := spread.Targets[0]; ranges.Failed() || ranges.Ideal < 40 {
				t.Errorf("ranges keep %.2f of %d possible hits", ranges.HitShare(), ranges.Ideal)
			}
			if points := spread.Statements[0]; points.Needless > 0 || points.HitShare() < 1 {
				t.Errorf("point reads were lost needlessly: %+v", points)
			}
			blog := play(t, cfg, "blog", 150)
			for _, name := range []string{"count of comments", "tags of a post", "a user", "posts of a user"} {
				if s := statement(t, blog, name); s.Needless > s.Stale/5 || s.HitShare() < 0.9 {
					t.Errorf("%s: %d of %d stale answers were lost needlessly, %.2f of the possible hits kept", name, s.Needless, s.Stale, s.HitShare())
				}
			}
		})
	}
}

func play(t *testing.T, cfg Config, name string, turns int) *Outcome {
	t.Helper()
	cfg.Turns = turns
	out, err := Run(t.Context(), cfg, name)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := out.Print(&text); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + text.String())
	return out
}

func statement(t *testing.T, o *Outcome, name string) *Tally {
	t.Helper()
	for _, s := range o.Statements {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("%s: no statement %q", o.Workload, name)
	return nil
}

func TestTally(t *testing.T) {
	var tally Tally
	for _, c := range []struct {
		o           outcome
		known, same bool
	}{{cold, false, false}, {hit, true, true}, {hit, true, true}, {stale, true, true}, {stale, true, false}, {stale, false, false}, {forwarded, true, true}, {cold, true, false}} {
		tally.count(c.o, c.known, c.same)
	}
	if tally.Reads() != 8 || tally.Hits != 2 || tally.Cold != 2 || tally.Stale != 3 || tally.Forwarded != 1 || tally.Needless != 1 || tally.Ideal != 4 {
		t.Errorf("%+v", tally)
	}
	if tally.HitShare() != 0.5 || tally.NeedlessShare() != 1./3 {
		t.Errorf("hits of possible %g, needless %g", tally.HitShare(), tally.NeedlessShare())
	}
	if (Target{tally, 0.6}).Failed() == false || (Target{tally, 0.5}).Failed() {
		t.Error("half of the possible hits: 0.6 is missed, 0.5 is kept")
	}
}

func TestKeysFailed(t *testing.T) {
	good := Keys{Keys: 1000, Updates: 100, Kept: 1000, Misses: 101}
	for _, c := range []struct {
		change func(*Keys)
		want   bool
	}{
		{func(*Keys) {}, false},
		{func(k *Keys) { k.Misses = 102 }, true},
		{func(k *Keys) { k.Misses = 99 }, true},
		{func(k *Keys) { k.Kept = 999 }, true},
		{func(k *Keys) { k.Wrong = 1 }, true},
	} {
		k := good
		c.change(&k)
		if k.Failed() != c.want {
			t.Errorf("%+v: failed %v", k, k.Failed())
		}
	}
}

func TestText(t *testing.T) {
	seen := map[string]int{}
	for i, rows := range [][][][]byte{nil, {{}}, {{nil}}, {{[]byte{}}}, {{[]byte("1:a "), nil}}, {{[]byte("a"), []byte("b")}}, {{[]byte("a")}, {[]byte("b")}}, {{[]byte("a 1:b")}}} {
		key := text(rows)
		if other, ok := seen[key]; ok {
			t.Errorf("answers %d and %d are written alike: %q", i, other, key)
		}
		seen[key] = i
	}
}
