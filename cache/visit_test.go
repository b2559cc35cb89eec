package cache

import "testing"

// Visit sees each entry once, and none that was flushed.
func TestVisit(t *testing.T) {
	s, err := New(Options{LimitBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const n = 1000
	fill := func(meta uint64) {
		f, claim := s.Claim([]byte{byte(meta), byte(meta >> 8)}, nil, 0, [2]uint64{meta}, false, nil)
		if claim != Leader || !f.Append(make([]byte, 100)) || !f.Finish() {
			t.Fatalf("entry %d was not stored", meta)
		}
	}
	count := func() (entries map[uint64]int, bytes int) {
		entries = map[uint64]int{}
		s.Visit(func(meta [2]uint64, size int) { entries[meta[0]]++; bytes += size })
		return entries, bytes
	}
	for i := range uint64(n) {
		fill(i)
	}
	entries, bytes := count()
	if len(entries) != n || bytes < n*100 || bytes > n*200 {
		t.Fatalf("%d entries of %d bytes", len(entries), bytes)
	}
	for meta, times := range entries {
		if times != 1 {
			t.Fatalf("entry %d was seen %d times", meta, times)
		}
	}
	s.Flush()
	if entries, _ := count(); len(entries) != 0 {
		t.Fatalf("%d entries after Flush", len(entries))
	}
}
