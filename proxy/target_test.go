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

// What an application's driver knows is taken; what is passed on to the parts
// that read the DSN themselves is what was understood.
func TestDSNParameters(t *testing.T) {
	t.Setenv("PGPORT", "1")
	t.Setenv("PGDATABASE", "elsewhere")
	for dsn, want := range map[string]string{
		"mysql://app:s@h/shop?parseTime=true&charset=utf8mb4&loc=UTC&tls=1": "mysql://app:s@h:3306/shop?tls=true",
		"mysql://app:s@/shop": "mysql://app:s@127.0.0.1:3306/shop?",
		"postgres://app:s@h?sslmode=disable&keepalives=1&gssencmode=prefer":    "postgres://app:s@h:5432/app?sslmode=disable",
		"postgres://app:s@h/shop?application_name=web&connect_timeout=1500ms":  "postgres://app:s@h:5432/shop?application_name=web&connect_timeout=2",
		"postgresql://app:p%40s@h:99/a%20b?options=-c%20statement_timeout%3D5": "postgresql://app:p%40s@h:99/a%20b?options=-c+statement_timeout%3D5",
	} {
		got, err := ParseTarget(dsn)
		if err != nil || strings.TrimSuffix(got.URL.String(), "?") != strings.TrimSuffix(want, "?") {
			t.Errorf("%s: %v, %v, want %s", dsn, got.URL, err, want)
		}
	}
}

// A mistake in a DSN is told without repeating its password.
func TestParseTargetMistakes(t *testing.T) {
	for dsn, want := range map[string]string{
		"oracle://app:secret@h/d":                        "want mysql://",
		"mysql://h/d":                                    "no user",
		"mysql://app:secret@h:port/d":                    "invalid port",
		"mysql://app:secret@h:99999/d":                   "port 99999: want 1 to 65535",
		"postgres://app:secret@h:0/d":                    "port 0: want 1 to 65535",
		"postgres://app:secret@h,i/d":                    "want one host",
		"postgres://app:secret@h/d?connect_timeout=soon": "want seconds",
		"postgres://app:secret@h/d?sslmode=bogus":        "sslmode is invalid",
		"postgres://app:secret@h/d?host=/tmp":            `parameter "host" is not taken`,
		"postgres://app:secret@h/d?replication=database": `parameter "replication" is not taken`,
		"mysql://app:secret@h/d?sslmode=require":         `unknown parameter "sslmode": want tls`,
		"mysql://app:secret@h/d?tls=maybe":               `tls="maybe": want true`,
		"mysql://app:secret@h/d?parsetime=true":          `unknown parameter "parsetime"`,
		"mysql://app:secret@h/d?timeout=x":               "want seconds",
	} {
		_, err := ParseTarget(dsn)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", dsn, err, want)
		}
	}
}
