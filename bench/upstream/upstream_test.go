package upstream

import (
	"errors"
	"os"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// every runs a test body on every kind that can be had, side by side.
func every(t *testing.T, body func(t *testing.T, kind Kind)) {
	for _, kind := range append(Kinds[:len(Kinds):len(Kinds)], MariaDB11) {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			body(t, kind)
		})
	}
}

func TestServerHasWhatFreshetNeeds(t *testing.T) {
	every(t, func(t *testing.T, kind Kind) {
		s := Need(t, kind)
		db := s.DB(t)
		settings := map[string]string{
			"SELECT @@log_bin": "1", "SELECT @@binlog_format": "ROW", "SELECT @@binlog_row_image": "FULL", "SELECT database()": "freshet_test",
		}
		if s.Dialect == DialectPostgres {
			settings = map[string]string{
				"SHOW wal_level": "logical", "SELECT current_database()": "freshet_test",
				"SELECT (rolsuper AND rolreplication)::text FROM pg_roles WHERE rolname = current_user": "true",
			}
		}
		if kind == MySQL {
			settings["SELECT @@gtid_mode"] = "ON"
		}
		for query, want := range settings {
			var got string
			if err := db.QueryRow(query).Scan(&got); err != nil || got != want {
				t.Errorf("%s: %q, %v; want %q", query, got, err, want)
			}
		}
		t.Logf("%s %s at %s", kind, s.Version, s.DSN())
	})
}

func TestFolderAndProcessAreGoneAfterStop(t *testing.T) {
	every(t, func(t *testing.T, kind Kind) {
		s := Own(t, kind)
		pid, folder := s.Pid(), s.Dir
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("folder %s: %v", folder, err)
		}
		if members, err := family(pid); err != nil || len(members) != 0 {
			t.Errorf("processes left: %v, %v", members, err)
		}
	})
}
