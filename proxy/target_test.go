package proxy

import (
	"strings"
	"testing"
	"time"
)

func TestParseTarget(t *testing.T) {
	got, err := ParseTarget("mariadb://app:p%40ss@db.example/shop?timeout=2s")
	if err != nil {
		t.Fatal(err)
	}
	if got.Dialect != "mysql" || got.Address() != "db.example:3306" || got.Password != "p@ss" || got.Database != "shop" || got.ConnectTimeout != 2*time.Second {
		t.Errorf("%+v", got)
	}
	got, err = ParseTarget("postgresql://app@[::1]:6000?connect_timeout=3")
	if err != nil {
		t.Fatal(err)
	}
	if got.Dialect != "postgres" || got.Address() != "[::1]:6000" || got.Database != "app" || got.ConnectTimeout != 3*time.Second {
		t.Errorf("%+v", got)
	}
}

// A mistake in a DSN is told without repeating its password.
func TestParseTargetMistakes(t *testing.T) {
	for dsn, want := range map[string]string{
		"oracle://app:secret@h/d":                        "want mysql://",
		"mysql://h/d":                                    "no user",
		"mysql://app:secret@h:port/d":                    "invalid port",
		"postgres://app:secret@h/d?connect_timeout=soon": "want seconds",
	} {
		_, err := ParseTarget(dsn)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %s", dsn, err, want)
		}
	}
}
