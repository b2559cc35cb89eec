package history

import (
	"context"
	"strings"
	"testing"
	"time"

	"freshet/bench/program"
	"freshet/bench/upstream"
)

// planted are mistakes that break a promise, each with the server and the level
// at which it must show.
var planted = []struct {
	program.Fault
	kind  upstream.Kind
	level Level
}{
	{program.Fault{Name: "a lease has no end", In: "proxy", Fn: "(*Session).fresh", Old: "p.now >= p.lease", New: "p.lease == 0"}, upstream.MySQL, Linearizable},
	{program.Fault{Name: "commits are acknowledged too soon", In: "cache/feed", Fn: "(*pgLine).status", Old: "at := l.confirmable()", New: "at := l.confirmable() + 300"}, upstream.Postgres15, Linearizable},
	{program.Fault{Name: "a write raises no barrier", In: "proxy", Fn: "(*Session).Wrote", Old: "s.raise(f.Ticket(), nil)", New: "s.raise(0, nil)"}, upstream.Postgres15, Session},
	{program.Fault{Name: "an answer from upstream raises no barrier", In: "proxy", Fn: "(*Session).shown", Old: "s.raise(f.Ticket(), key)", New: "s.raise(0, key)"}, upstream.MariaDB, Session},
	{program.Fault{Name: "a hit on what is not proven raises no barrier", In: "proxy", Fn: "(*Session).hitOn", Old: "ticket > p.ticket", New: "ticket > p.ticket+1<<60"}, upstream.Postgres15, Session},
	{program.Fault{Name: "the bound is not kept", In: "proxy", Fn: "(*Session).fresh", Old: "p.now-p.at > int64(bound)", New: "p.now-p.at > 8*int64(bound)"}, upstream.MariaDB, Bounded},
}

// TestFindsFaults: each is found within a minute.
func TestFindsFaults(t *testing.T) {
	if !full() {
		t.Skip("a program and a minute for each fault: make histories")
	}
	for _, f := range planted {
		t.Run(strings.ReplaceAll(f.Name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			report, err := Run(context.Background(), Config{
				Server:  upstream.Own(t, f.kind, upstream.WithSettings(ServerSettings(f.kind, f.level)...)),
				Program: program.Faulty(t, f.Fault), Level: f.level, For: time.Minute, Longest: 5 * time.Second, Seed: drawnSeed(t),
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
