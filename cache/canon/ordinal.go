package canon

import "encoding/binary"

// Ordinal maps the canonical form of an integer, a date (days), or a moment
// (microseconds) to a number in the database's own order, in steps of one:
// neighbours differ by 1. ok is false for kinds without one, for integers from 2^63 on, which have no place beside
// the negative ones, and for bytes that are no canonical form.
//
// Ranges are tracked by blocks of ordinals: a value of a row and the bounds of
// a query must come to the same number, whichever form they were read from.
func Ordinal(kind Kind, canonical []byte) (uint64, bool) {
	switch kind {
	case Int:
		if len(canonical) != 9 {
			return 0, false
		}
		v := binary.BigEndian.Uint64(canonical[1:])
		if canonical[0] == signPositive && v >= 1<<63 {
			return 0, false
		}
		return v ^ 1<<63, true
	case Date:
		year, month, day, ok := splitDate(canonical)
		return uint64(daysSince1(year, month, day)), ok
	case DateTime, Instant:
		if len(canonical) != 8 {
			return 0, false
		}
		micros := binary.BigEndian.Uint64(canonical)
		return micros, micros < endOfTime
	}
	return 0, false
}

// daysSince1 counts the days from 0001-01-01, day 0, in the proleptic
// Gregorian calendar. The year is counted from March on, so that the leap day
// is its last one.
func daysSince1(year, month, day int) int64 {
	if month <= 2 {
		year, month = year-1, month+12
	}
	y := int64(year)
	return y*365 + y/4 - y/100 + y/400 + int64(153*(month-3)+2)/5 + int64(day) - 307
}
