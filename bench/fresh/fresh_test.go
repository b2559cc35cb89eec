package fresh

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
)

func TestMain(m *testing.M) { os.Exit(upstream.Main(m)) }

func TestPosition(t *testing.T) {
	for _, c := range []struct {
		row  []string
		want uint64
		ok   bool
	}{
		{[]string{"16/B374D848"}, 0x16_B374D848, true},
		{[]string{"0/0"}, 0, true},
		{[]string{"mysqld-bin.000012", "345", ""}, 12<<40 | 345, true},
		{[]string{"a.b.000001", "4"}, 1<<40 | 4, true},
		{[]string{"nothing"}, 0, false},
		{[]string{"1/2/3"}, 0, false},
		{[]string{"mysqld-bin.x", "4"}, 0, false},
		{[]string{"mysqld-bin.000001", "-4"}, 0, false},
		{[]string{"FFFFFFFFF/0"}, 0, false},
	} {
		var row [][]byte
		for _, s := range c.row {
			row = append(row, []byte(s))
		}
		got, err := position(row)
		if (err == nil) != c.ok || got != c.want && c.ok {
			t.Errorf("position(%v) = %d, %v", c.row, got, err)
		}
	}
}

// TestServerIsFreshWithItself: read from the server itself, every change shows
// in the first read after its commit.
func TestServerIsFreshWithItself(t *testing.T) {
	for _, kind := range []upstream.Kind{upstream.MariaDB, upstream.Postgres15} {
		t.Run(string(kind), func(t *testing.T) {
			s := upstream.Need(t, kind)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			report, err := Run(ctx, Config{Direct: s.DSN(), Through: s.DSN(), Updates: 40, Rows: 5, Seed: 3})
			if err != nil {
				t.Fatal(err)
			}
			if report.Failed() || report.Updates != 40 || report.Latency.TotalCount() != 40 || report.Reads != 40*3 {
				t.Errorf("%+v", report)
			}
			var out strings.Builder
			if err := report.Print(&out); err != nil || !strings.Contains(out.String(), "40 updates") {
				t.Errorf("%v: %s", err, out.String())
			}
		})
	}
}
