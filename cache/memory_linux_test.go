//go:build linux && !race

package cache

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// resident returns the process's resident bytes, from proc(5)'s smaps_rollup.
func resident(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	f, err := os.Open("/proc/self/smaps_rollup")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if rest, ok := strings.CutPrefix(sc.Text(), "Rss:"); ok {
			var kib int64
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no Rss line")
	return 0
}

// alone runs the calling test again in a process of its own, where nothing that
// other tests left behind comes or goes, and reports whether this is that one.
func alone(t *testing.T) bool {
	t.Helper()
	const mark = "FRESHET_TEST_ALONE"
	if os.Getenv(mark) == t.Name() {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), mark+"="+t.Name())
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	return false
}

// The kernel must not count more than LimitBytes for a store that was asked to
// hold many times that, with huge pages (64 MiB) and without (8 MiB); and what
// it counts must come and go with the store.
func TestResidentMemory(t *testing.T) {
	if !alone(t) {
		return
	}
	for _, limit := range []int64{8 << 20, 64 << 20} {
		s, err := New(Options{LimitBytes: limit})
		if err != nil {
			t.Fatal(err)
		}
		s.SetVisible(1)
		before := resident(t)
		value := make([]byte, 300)
		for i := range 3 * int(limit) / 500 {
			fill(t, s, keyOf(i), string(value), spread(i), 1)
		}
		grown := resident(t) - before
		st := s.Stats()
		t.Logf("limit %d: %d resident, %d accounted, %d entries", limit, grown, st.Bytes, st.Entries)
		// The test's own heap may have grown a little.
		if slack := int64(2 << 20); grown > limit+slack || st.Bytes > limit || grown < limit/2 {
			t.Errorf("limit %d: %d resident, %d accounted", limit, grown, st.Bytes)
		}
		check(t, s)
		s.Close()
		if left := resident(t) - before; left > 4<<20 {
			t.Errorf("%d bytes resident after Close", left)
		}
	}
}

// A large limit costs next to nothing until it is used.
func TestMemoryIsLazy(t *testing.T) {
	if !alone(t) {
		return
	}
	before := resident(t)
	s, err := New(Options{LimitBytes: 16 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.SetVisible(1)
	mustFill(t, s, "k", "v", 1)
	if grown := resident(t) - before; grown > 24<<20 {
		t.Fatalf("%d bytes resident for one entry", grown)
	}
}

// An entry costs at most 64 bytes beside its key, its value and the 16 bytes
// that the caller keeps in it, where one dependency of two is its own.
func TestOverhead(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: 256 << 20})
	const n = 200000
	key, value := len(keyOf(0)), strings.Repeat("v", 100)
	before := s.Stats()
	for i := range n {
		mustFill(t, s, keyOf(i), value, spread(i), 1)
	}
	st := s.Stats()
	head := float64(st.LiveBytes)/n - float64(key+len(value)) - 16
	index := float64(st.IndexBytes-before.IndexBytes) / n
	cells := float64(st.CellBytes-before.CellBytes) / n
	t.Logf("bytes an entry: %.1f head and padding, %.1f index, %.1f cells", head, index, cells)
	if sum := head + index + cells; sum > 72 {
		t.Fatalf("%.1f bytes an entry", sum)
	}
}

// The collector must not have more to do with many entries than with none.
func TestNoWorkForCollector(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapObjects
	}
	s := newTestStore(t, Options{LimitBytes: 256 << 20})
	mustFill(t, s, "k", "v", 1)
	before := heap()
	for i := range 100000 {
		mustFill(t, s, keyOf(i), "some value", spread(i), 1)
	}
	if after := heap(); after > before+1000 {
		t.Fatalf("%d objects on the heap for 100000 entries", after-before)
	}
}
