package canon

import "encoding/binary"

// The canonical form of a DateTime or an Instant is eight bytes, big-endian:
// the microseconds since 0001-01-01 00:00:00, of the clock on the wall or of UTC.
const (
	microsPerSecond = 1_000_000
	microsPerDay    = 86_400 * microsPerSecond
	// endOfTime is 10000-01-01: what comes later has no canonical form.
	endOfTime = 3_652_059 * microsPerDay
)

// AppendMoment appends the canonical form of a DateTime if the calendar has
// the day and the clock the time; leap seconds and 24:00 are refused.
func AppendMoment(dst []byte, year, month, day, hour, minute, second, micros int) ([]byte, bool) {
	if !realDay(year, month, day) || uint(hour) > 23 || uint(minute) > 59 || uint(second) > 59 || uint(micros) >= microsPerSecond {
		return dst, false
	}
	seconds := int64(hour*60+minute)*60 + int64(second)
	return appendMicros(dst, daysSince1(year, month, day)*microsPerDay+seconds*microsPerSecond+int64(micros))
}

func appendMicros(dst []byte, micros int64) ([]byte, bool) {
	if micros < 0 || micros >= endOfTime {
		return dst, false
	}
	return binary.BigEndian.AppendUint64(dst, uint64(micros)), true
}

// momentText accepts YYYY-MM-DD, which is its midnight, and YYYY-MM-DD HH:MM:SS
// with up to six digits of a fraction: the forms that every setting reads alike.
func momentText(dst, text []byte) ([]byte, bool) {
	year, month, day, ok := splitDate(text[:min(10, len(text))])
	if !ok || len(text) == 10 {
		return AppendMoment(dst, year, month, day, 0, 0, 0, 0)
	}
	clock := text[10:]
	if len(clock) < 9 || clock[0] != ' ' && clock[0] != 'T' || clock[3] != ':' || clock[6] != ':' {
		return dst, false
	}
	hour, ok1 := twoDigits(clock[1:])
	minute, ok2 := twoDigits(clock[4:])
	second, ok3 := twoDigits(clock[7:])
	micros, ok4 := fraction(clock[9:])
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return dst, false
	}
	return AppendMoment(dst, year, month, day, hour, minute, second, micros)
}

func twoDigits(text []byte) (int, bool) {
	if len(text) < 2 || text[0] < '0' || text[0] > '9' || text[1] < '0' || text[1] > '9' {
		return 0, false
	}
	return int(text[0]-'0')*10 + int(text[1]-'0'), true
}

// fraction reads "" or a point and one to six digits, as microseconds.
func fraction(text []byte) (micros int, ok bool) {
	if len(text) == 0 {
		return 0, true
	}
	if text[0] != '.' || len(text) == 1 || len(text) > 7 {
		return 0, false
	}
	for i := range 6 {
		digit := byte('0')
		if i+1 < len(text) {
			digit = text[i+1]
		}
		if digit < '0' || digit > '9' {
			return 0, false
		}
		micros = micros*10 + int(digit-'0')
	}
	return micros, true
}

// instantText accepts a moment with its distance from UTC, which PostgreSQL
// writes as +HH, +HH:MM or +HH:MM:SS: without one it would depend on the
// session's time zone. Names of zones, Z among them, can be redefined.
func instantText(dst, text []byte) ([]byte, bool) {
	const shortest = len("0001-01-01 00:00:00")
	at := shortest
	for at < len(text) && text[at] != '+' && text[at] != '-' {
		at++
	}
	if at >= len(text) {
		return dst, false
	}
	var buffer [8]byte
	local, ok := momentText(buffer[:0], text[:at])
	offset, ok2 := zoneSeconds(text[at+1:])
	if !ok || !ok2 {
		return dst, false
	}
	if text[at] == '-' {
		offset = -offset
	}
	return appendMicros(dst, int64(binary.BigEndian.Uint64(local))-int64(offset)*microsPerSecond)
}

// zoneSeconds reads HH, HH:MM or HH:MM:SS, less than 16 hours.
func zoneSeconds(text []byte) (int, bool) {
	total, unit := 0, 3600
	for i := 0; ; i += 3 {
		n, ok := twoDigits(text[min(i, len(text)):])
		if !ok || n > 59 || unit == 0 {
			return 0, false
		}
		total += n * unit
		unit /= 60
		switch {
		case len(text) == i+2:
			return total, total < 16*3600
		case text[i+2] != ':':
			return 0, false
		}
	}
}

// momentBinary decodes PostgreSQL's binary timestamp, with or without time
// zone: microseconds since 2000-01-01, infinity at the ends of int64
// (timestamp_send in src/backend/utils/adt/timestamp.c).
func momentBinary(dst, data []byte) ([]byte, bool) {
	const epoch = 730_119 * microsPerDay // 2000-01-01
	if len(data) != 8 {
		return dst, false
	}
	v := int64(binary.BigEndian.Uint64(data))
	if v < -epoch || v >= endOfTime-epoch {
		return dst, false
	}
	return appendMicros(dst, v+epoch)
}

// mysqlMoment decodes a binary DATE, DATETIME or TIMESTAMP parameter (MySQL
// manual, "Binary Protocol Value"): what is left out of its end is zero.
func mysqlMoment(data []byte) (year, month, day, hour, minute, second, micros int, ok bool) {
	switch len(data) {
	case 11:
		micros = int(binary.LittleEndian.Uint32(data[7:]))
		fallthrough
	case 7:
		hour, minute, second = int(data[4]), int(data[5]), int(data[6])
		fallthrough
	case 4:
		return int(binary.LittleEndian.Uint16(data)), int(data[2]), int(data[3]), hour, minute, second, micros, true
	}
	return 0, 0, 0, 0, 0, 0, 0, false
}
