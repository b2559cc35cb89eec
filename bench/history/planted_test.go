package history

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
)

// planted are mistakes that break a promise, each with the server and the level
// at which it must show. The mistake is in a copy that one build alone sees (go
// build -overlay).
var planted = []struct {
	name, file, old, new string
	kind                 upstream.Kind
	level                Level
}{
	{"a lease has no end", "proxy/level.go", "p.now >= p.lease", "p.lease == 0", upstream.MySQL, Linearizable},
	{"commits are acknowledged too soon", "cache/feed/pgstream.go", "at := l.confirmable()\n\tdata :=", "at := l.confirmable() + 300\n\tdata :=", upstream.Postgres15, Linearizable},
	{"a write raises no barrier", "proxy/session.go", "s.barrier = f.Ticket()", "s.barrier = 0", upstream.Postgres15, Session},
	{"the bound is not kept", "proxy/level.go", "p.now-p.at > int64(bound)", "p.now-p.at > 8*int64(bound)", upstream.MariaDB, Bounded},
}

// TestFindsFaults: each is found within a minute.
func TestFindsFaults(t *testing.T) {
	if !full() {
		t.Skip("a program and a minute for each fault: make histories")
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range planted {
		t.Run(strings.ReplaceAll(f.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			source := filepath.Join(strings.TrimSpace(string(root)), f.file)
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), f.old); n != 1 {
				t.Fatalf("%s has %q %d times: give the fault another place", f.file, f.old, n)
			}
			changed, list := filepath.Join(folder, "changed.go"), filepath.Join(folder, "overlay.json")
			if err := os.WriteFile(changed, []byte(strings.Replace(string(text), f.old, f.new, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			replace, err := json.Marshal(map[string]map[string]string{"Replace": {source: changed}})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(list, replace, 0o600); err != nil {
				t.Fatal(err)
			}
			faulty := filepath.Join(folder, "freshet")
			if out, err := exec.Command("go", "build", "-overlay", list, "-o", faulty, "freshet/cmd/freshet").CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			report, err := Run(context.Background(), Config{
				Server:  upstream.Own(t, f.kind, upstream.WithSettings(ServerSettings(f.kind, f.level)...)),
				Program: faulty, Level: f.level, For: time.Minute, Longest: 5 * time.Second, Seed: seed(t),
				only: []fault{holding(streamOnly), holding(feedAll), losing(feedAll)}})
			t.Log(report)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range report.Violations {
				if v.Level == f.level {
					return
				}
			}
			t.Error("not found")
		})
	}
}
