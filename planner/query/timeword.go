package query

// timeWords are what PostgreSQL's date and time input reads as a time that
// moves on (manual, 8.5.1.4).
var timeWords = [...]string{"now", "today", "tomorrow", "yesterday"}

// maxTimeText is more than any string has that date input accepts. Arrays and
// ranges of dates may be longer.
const maxTimeText = 128

// TimeWord tells whether a string, read as a date or time, may mean one that
// moves on: 'now', 'today 12:00', ' Tomorrow'. It looks for whole words, and
// errs on the side of yes.
func TimeWord[T string | []byte](s T) bool {
	if len(s) > maxTimeText && !composite(s) {
		return false
	}
	for i := 0; i < len(s); {
		if !isLetter(s[i]) {
			i++
			continue
		}
		start := i
		for i < len(s) && isLetter(s[i]) {
			i++
		}
		for _, w := range timeWords {
			if equalFold(s[start:i], w) {
				return true
			}
		}
	}
	return false
}

// composite tells whether a text may be an array, a range or a record.
func composite[T string | []byte](s T) bool {
	for i := range len(s) {
		switch s[i] {
		case '{', '[', '(':
			return true
		case ' ', '\t', '\n', '\v', '\f', '\r':
		default:
			return false
		}
	}
	return false
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func equalFold[T string | []byte](s T, lower string) bool {
	if len(s) != len(lower) {
		return false
	}
	for i := range len(s) {
		if s[i]|0x20 != lower[i] {
			return false
		}
	}
	return true
}
