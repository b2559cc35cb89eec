package canon

import (
	"encoding/binary"
	"time"
)

// dateText accepts exactly YYYY-MM-DD of a day that exists, years 1 to 9999:
// the one form that every DateStyle and sql_mode reads alike. Its canonical
// form is the same text.
func dateText(dst, text []byte) ([]byte, bool) {
	if len(text) != 10 || text[4] != '-' || text[7] != '-' {
		return dst, false
	}
	number := func(digits []byte) int {
		v := 0
		for _, c := range digits {
			if c < '0' || c > '9' {
				return -1 << 20
			}
			v = v*10 + int(c-'0')
		}
		return v
	}
	return appendDate(dst, number(text[:4]), number(text[5:7]), number(text[8:]))
}

// appendDate appends year-month-day if the calendar has it.
func appendDate(dst []byte, year, month, day int) ([]byte, bool) {
	if year < 1 || year > 9999 || month < 1 || month > 12 || day < 1 || day > 31 {
		return dst, false
	}
	t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if t.Day() != day {
		return dst, false
	}
	return t.AppendFormat(dst, "2006-01-02"), true
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
