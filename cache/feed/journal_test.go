package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// lines is a slog.Handler that keeps what is logged, a line a record.
type lines struct {
	mu   sync.Mutex
	all  []string
	show func(level slog.Level, line string) // may be nil
}

func (l *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelDebug }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *lines) WithGroup(string) slog.Handler                    { return l }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Level >= slog.LevelInfo {
		l.all = append(l.all, line)
	}
	if l.show != nil {
		l.show(r.Level, line)
	}
	return nil
}

// take returns the lines since it was last called.
func (l *lines) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}

// withJournal runs a test on a journal, on a clock that does not wait.
func withJournal(t *testing.T, body func(t *testing.T, j *journal, l *lines)) {
	synctest.Test(t, func(t *testing.T) {
		l := &lines{}
		body(t, &journal{log: slog.New(l)}, l)
	})
}

func wantLines(t *testing.T, when string, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n%s\nwant:\n%s", when, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestOutage is a server that is away for a while: two causes, two lines, and
// one when it is back.
func TestOutage(t *testing.T) {
	withJournal(t, func(t *testing.T, j *journal, l *lines) {
		j.following("binlog.000001:4", false)
		wantLines(t, "at the beginning", l.take())
		j.ended(errors.New("read 127.0.0.1:40001: reset"))
		for port := range 20 {
			time.Sleep(200 * time.Millisecond)
			j.ended(fmt.Errorf("dial from port %d: refused", 40002+port))
		}
		wantLines(t, "while it is away", l.take(), "WARN feed: the change stream ended error=read 127.0.0.1:40001: reset",
			"WARN feed: the change stream ended error=dial from port 40002: refused")
		j.following("binlog.000002:4", true)
		j.following("binlog.000003:4", true)
		wantLines(t, "when it is back", l.take(), "INFO feed following again position=binlog.000002:4 resumed=true")
		time.Sleep(2 * troubleOver)
		j.ended(errors.New("dial from port 7: refused"))
		j.following("binlog.000003:9", false)
		wantLines(t, "the next time", l.take(), "WARN feed: the change stream ended error=dial from port 7: refused",
			"INFO feed following again position=binlog.000003:9 resumed=false")
		if at, err := j.latest(); err == nil || !strings.HasSuffix(err.Error(), "port 7: refused") || !at.Equal(time.Now()) {
			t.Errorf("the latest is %v at %v", err, at)
		}
	})
}

// TestLongOutage fails every five seconds for a day.
func TestLongOutage(t *testing.T) {
	withJournal(t, func(t *testing.T, j *journal, l *lines) {
		for range 24 * 60 * 12 {
			j.ended(errors.New("refused"))
			time.Sleep(5 * time.Second)
		}
		got := l.take()
		if len(got) < 100 || len(got) > 24*6+10 {
			t.Errorf("%d lines in a day", len(got))
		}
		if last := got[len(got)-1]; !strings.HasSuffix(last, " times=120") {
			t.Errorf("the last line does not say how often it came: %s", last)
		}
	})
}

// TestFlapping comes and goes every second. Ends and returns are logged in
// pairs, and fewer and fewer.
func TestFlapping(t *testing.T) {
	withJournal(t, func(t *testing.T, j *journal, l *lines) {
		for range 3600 {
			j.ended(errors.New("reset"))
			time.Sleep(time.Second / 2)
			j.following("0/1", false)
			time.Sleep(time.Second / 2)
		}
		got := l.take()
		if len(got) < 4 || len(got) > 30 || len(got)%2 != 0 {
			t.Fatalf("%d lines in an hour", len(got))
		}
		for i, line := range got {
			if want := []string{"WARN", "INFO"}[i%2]; !strings.HasPrefix(line, want) {
				t.Errorf("line %d is not %s: %s", i, want, line)
			}
		}
	})
}

// TestManyCauses never says the same twice.
func TestManyCauses(t *testing.T) {
	withJournal(t, func(t *testing.T, j *journal, l *lines) {
		name := func(i int) string { return strings.Repeat("x", i%1000) + string(rune('a'+i%26)) }
		for i := range 5000 {
			j.failed("a table could not be looked up", fmt.Errorf("table %s is odd", name(i)))
			j.failed("a probe failed", fmt.Errorf("odd too: %s", name(i)))
			time.Sleep(time.Millisecond)
		}
		if n := len(l.take()); n > maxTroubles+2 || len(j.troubles) > maxTroubles+2 {
			t.Errorf("%d lines, %d causes kept", n, len(j.troubles))
		}
	})
}
