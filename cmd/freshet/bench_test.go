package main

import (
	"strings"
	"testing"

	"freshet/bench/upstream"
)

// make bench runs every bench, and each prints its table.
func TestBenchAll(t *testing.T) {
	upstream.Need(t, upstream.MariaDB) // leaves out -short
	status, stdout, stderr := run(t, program(t, "bench", "all", "--dialect", "mariadb", "--seconds", "0.2", "--updates", "20", "--results", ""))
	if status != 0 {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	for _, name := range []string{"hit", "miss", "mixed", "fresh", "idle"} {
		if !strings.Contains(stdout, name) {
			t.Errorf("no table of %s in\n%s", name, stdout)
		}
	}
}
