package demo

import (
	"context"
	"os"
	"testing"
	"time"

	"freshet/bench/upstream"
	"freshet/bench/versus"
)

func TestMain(m *testing.M) { os.Exit(upstream.Main(m)) }

// TestShop: the script is understood by both dialects and makes what it says.
func TestShop(t *testing.T) {
	for _, kind := range []upstream.Kind{upstream.MariaDB, upstream.Postgres15} {
		t.Run(string(kind), func(t *testing.T) {
			s := upstream.Need(t, kind)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := versus.Exec(ctx, s.DSN(), shop()...); err != nil {
				t.Fatal(err)
			}
			c, err := versus.Dial(ctx, s.DSN())
			if err != nil {
				t.Fatal(err)
			}
			for sql, want := range map[string]string{"SELECT COUNT(*) FROM shop_items": "10000", "SELECT COUNT(*) FROM shop_orders": "20000"} {
				if got, err := one(c, sql); err != nil || got != want {
					t.Errorf("%s is %s, %v", sql, got, err)
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if err := versus.Exec(ctx, s.DSN(), "DROP TABLE shop_orders", "DROP TABLE shop_items"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestClip(t *testing.T) {
	for s, want := range map[string]string{"short": "short", "a  b\n c": "a b c", "äöüäöü": "äöüä…"} {
		if got := clip(s, 5); got != want {
			t.Errorf("clip(%q) = %q, want %q", s, got, want)
		}
	}
}
