package canon

import (
	"encoding/binary"
	"time"
)

// dateText accepts exactly YYYY-MM-DD of a day that exists, years 1 to 9999:
// the one form that every DateStyle and sql_mode reads alike. Its canonical
// form is the same text.
func dateText(dst, text []byte) ([]byte, bool) {
	if _, _, _, ok := splitDate(text); !ok {
		return dst, false
	}
	return append(dst, text...), true
}

// splitDate reads what dateText accepts.
func splitDate(text []byte) (year, month, day int, ok bool) {
	if len(text) != 10 || text[4] != '-' || text[7] != '-' {
		return 0, 0, 0, false
	}
	ok = true
	number := func(digits []byte) int {
		v := 0
		for _, c := range digits {
			ok = ok && c >= '0' && c <= '9'
			v = v*10 + int(c-'0')
		}
		return v
	}
	year, month, day = number(text[:4]), number(text[5:7]), number(text[8:])
	return year, month, day, ok && realDay(year, month, day)
}

var monthDays = [13]int{0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// realDay tells whether the calendar has the day, in years 1 to 9999.
func realDay(year, month, day int) bool {
	if year < 1 || year > 9999 || month < 1 || month > 12 || day < 1 {
		return false
	}
	if month == 2 && day == 29 {
		return year%4 == 0 && (year%100 != 0 || year%400 == 0)
	}
	return day <= monthDays[month]
}

// appendDate appends year-month-day if the calendar has it.
func appendDate(dst []byte, year, month, day int) ([]byte, bool) {
	if !realDay(year, month, day) {
		return dst, false
	}
	digit := func(n int) byte { return byte('0' + n%10) }
	return append(dst, digit(year/1000), digit(year/100), digit(year/10), digit(year), '-',
		digit(month/10), digit(month), '-', digit(day/10), digit(day)), true
}

// postgresEpochDays is 2000-01-01 counted from 1970-01-01.
const postgresEpochDays = 10957

// dateBinary decodes PostgreSQL's binary date: days since 2000-01-01, infinity
// at the ends of int32 (date_send in src/backend/utils/adt/date.c).
func dateBinary(dst, data []byte) ([]byte, bool) {
	if len(data) != 4 {
		return dst, false
	}
	days := int64(int32(binary.BigEndian.Uint32(data))) + postgresEpochDays
	t := time.Unix(days*86400, 0).UTC()
	return appendDate(dst, t.Year(), int(t.Month()), t.Day())
}
