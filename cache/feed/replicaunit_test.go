package feed

import (
	"maps"
	"slices"
	"testing"
)

// TestMariaReadable goes through what probes tell of a log and of snapshots.
func TestMariaReadable(t *testing.T) {
	var m mariaReadable
	for i, step := range []struct {
		logged, snapshot, end uint64 // the domain's number; places
		want                  uint64 // can be read
	}{
		{logged: 5, snapshot: 100, end: 100, want: 5},
		{logged: 7, snapshot: 110, end: 120, want: 5}, // 6 and 7 may be after 110
		{logged: 9, snapshot: 119, end: 140, want: 5},
		{logged: 9, snapshot: 120, end: 150, want: 7}, // what was logged before 120
		{logged: 12, snapshot: 149, end: 200, want: 7},
		{logged: 12, snapshot: 150, end: 200, want: 9},
		{logged: 12, snapshot: 200, end: 200, want: 12},
	} {
		before := maps.Clone(m.domains)
		kept := m.domains
		if err := m.sighted(nil, mariaPlace{raw: step.snapshot, domains: map[uint32]uint64{0: step.logged}}, step.end); err != nil {
			t.Fatal(err)
		}
		if got := m.domains[0]; got != step.want {
			t.Errorf("step %d: readable up to %d, want %d", i, got, step.want)
		}
		if !maps.Equal(kept, before) {
			t.Errorf("step %d changed what an earlier sighting holds", i)
		}
	}
}

// TestMariaSightingByName compares probes with what came from a replica.
func TestMariaSightingByName(t *testing.T) {
	s := mariaGTIDSighting{logged: map[uint32]uint64{0: 9, 3: 2}, readable: map[uint32]uint64{0: 7}, gate: map[uint32]uint64{0: 8}}
	if !s.sees(&commit{domain: 0, sequence: 7}) || s.sees(&commit{domain: 0, sequence: 8}) || s.sees(&commit{domain: 3, sequence: 1}) {
		t.Error("it sees what cannot be read, or not what can")
	}
	for _, c := range []struct {
		received map[uint32]uint64
		want     bool
	}{{nil, false}, {map[uint32]uint64{0: 9}, false}, {map[uint32]uint64{0: 8, 3: 2}, false}, {map[uint32]uint64{0: 9, 3: 2, 4: 1}, true}} {
		if got := s.covered(&ledger{domains: c.received}); got != c.want {
			t.Errorf("covered by %v: %v, want %v", c.received, got, c.want)
		}
	}
	if s.opens() {
		t.Error("it opens before what the replica had can be read")
	}
	if s.readable = map[uint32]uint64{0: 8}; !s.opens() {
		t.Error("it does not open")
	}
}

// TestStandbyIsVouchedFor has a stream pass the primary's end on its own.
func TestStandbyIsVouchedFor(t *testing.T) {
	s := pgSighting{end: 100, standby: true}
	for _, c := range []struct {
		raw, vouched uint64
		want         bool
	}{{99, 200, false}, {200, 0, false}, {200, 99, false}, {100, 100, true}} {
		if got := s.covered(&ledger{raw: c.raw, vouched: c.vouched}); got != c.want {
			t.Errorf("stream at %d, replayed up to %d: covered %v, want %v", c.raw, c.vouched, got, c.want)
		}
	}
}

// TestFiltersOf takes every column of that name, whatever the version has.
func TestFiltersOf(t *testing.T) {
	got := filtersOf([]map[string]string{
		{"Replicate_Do_DB": "", "Replicate_Wild_Ignore_Table": "a.%", "Skip_Counter": "0", "Source_Host": "h"},
		{"Replicate_Do_Domain_Ids": "1", "Skip_Counter": "2", "Replicate_Ignore_DB": ""},
	})
	if want := []string{"Replicate_Do_Domain_Ids=1", "Replicate_Wild_Ignore_Table=a.%", "Skip_Counter=2"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestMariaOrigins keeps servers apart and takes the newest of each.
func TestMariaOrigins(t *testing.T) {
	got, err := parseMariaOrigins("0-1-5, 0-2-7,,0-1-4,3-1-1")
	want := map[mariaOrigin]uint64{{0, 1}: 5, {0, 2}: 7, {3, 1}: 1}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
	for _, bad := range []string{"0-1", "0-x-1", "a-1-1", "0-1-1-1", "0-4294967296-1"} {
		if _, err := parseMariaOrigins(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
