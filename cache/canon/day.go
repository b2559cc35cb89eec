package canon

import "encoding/binary"

// DayOf is the day of a moment that every setting reads alike, since 1970-01-01.
func DayOf(text []byte) (day int, ok bool) {
	var buffer [8]byte
	moment, ok := momentText(buffer[:0], text)
	if !ok {
		return 0, false
	}
	return int(int64(binary.BigEndian.Uint64(moment))/microsPerDay - daysSince1(1970, 1, 1)), true
}

// DayOfParam is DayOf for a binary-protocol parameter.
func DayOfParam(fieldType uint32, data []byte) (day int, ok bool) {
	switch fieldType &^ FlagUnsigned {
	case typeDate, typeDateTime, typeTimestamp:
		var buffer [64]byte
		text, ok := appendMomentText(buffer[:0], data)
		if !ok {
			return 0, false
		}
		return DayOf(text)
	}
	if ParamClassOf(fieldType) != ClassString {
		return 0, false
	}
	return DayOf(data)
}
