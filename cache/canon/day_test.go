package canon

import "testing"

func TestDayOf(t *testing.T) {
	for text, want := range map[string]int{"1970-01-01": 0, "1970-01-02 23:59:59.5": 1, "2024-10-27 02:30:00": 20023, "1969-12-31": -1} {
		if got, ok := DayOf([]byte(text)); !ok || got != want {
			t.Errorf("%s is day %d, %v, want %d", text, got, ok, want)
		}
		for n := range text[:10] {
			if _, ok := DayOf([]byte(text[:n])); ok {
				t.Errorf("%q has a day", text[:n])
			}
		}
	}
	moment := []byte{0xe8, 7, 10, 27, 2, 30, 0}
	for n := range len(moment) + 1 {
		day, ok := DayOfParam(typeDateTime, moment[:n])
		if ok != (n == 4 || n == 7) || ok && day != 20023 {
			t.Errorf("%d bytes are day %d, %v", n, day, ok)
		}
	}
	if _, ok := DayOfParam(typeLongLong, make([]byte, 8)); ok {
		t.Error("a number has a day")
	}
}
