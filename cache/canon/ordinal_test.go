package canon

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// TestOrdinalsOfInts holds differences of ordinals to differences of values.
func TestOrdinalsOfInts(t *testing.T) {
	r := seeded(t)
	ordinal := func(v int64) uint64 {
		n, ok := Ordinal(Int, AppendInt(nil, v))
		if !ok {
			t.Fatalf("%d has no ordinal", v)
		}
		return n
	}
	for range 20000 {
		a, b := int64(r.Uint64())>>r.UintN(64), int64(r.Uint64())>>r.UintN(64)
		if (a < b) != (ordinal(a) < ordinal(b)) || ordinal(a)-ordinal(b) != uint64(a-b) {
			t.Fatalf("%d and %d: ordinals %d and %d", a, b, ordinal(a), ordinal(b))
		}
	}
	if ordinal(math.MinInt64) != 0 || ordinal(math.MaxInt64) != math.MaxUint64 {
		t.Error("the ends are not the ends")
	}
	if v, _ := Ordinal(Int, AppendUint(nil, 77)); v != ordinal(77) {
		t.Error("signed and unsigned differ")
	}
	if _, ok := Ordinal(Int, AppendUint(nil, 1<<63)); ok {
		t.Error("2^63 has an ordinal")
	}
}

// TestOrdinalsOfDates walks the whole calendar, and refuses what is none.
func TestOrdinalsOfDates(t *testing.T) {
	want := uint64(0)
	for day := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 10000; day = day.AddDate(0, 0, 1) {
		canonical, ok := AppendText(Date, nil, day.AppendFormat(nil, "2006-01-02"))
		if !ok {
			t.Fatalf("%v is refused", day)
		}
		if n, ok := Ordinal(Date, canonical); !ok || n != want {
			t.Fatalf("%s: ordinal %d, %v; want %d", canonical, n, ok, want)
		}
		want++
	}
	for year := range 10100 {
		for _, month := range []int{0, 1, 2, 4, 12, 13} {
			for _, day := range []int{0, 1, 28, 29, 30, 31, 32} {
				is := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
				real := year >= 1 && year <= 9999 && int(is.Month()) == month && is.Day() == day
				if _, ok := Ordinal(Date, fmt.Appendf(nil, "%04d-%02d-%02d", year, month, day)); ok != real {
					t.Fatalf("%d-%d-%d: %v", year, month, day, ok)
				}
			}
		}
	}
}

func TestNoOrdinals(t *testing.T) {
	for kind := None; int(kind) < len(kindNames); kind++ {
		for _, canonical := range []string{"", "x", "\x01", "\xff\x00\x00\x00\x00\x00\x00\x00", "2024-13-01", "-infinity "} {
			if n, ok := Ordinal(kind, []byte(canonical)); ok {
				t.Errorf("%v %q has ordinal %d", kind, canonical, n)
			}
		}
	}
}
