package planner

import (
	"strconv"
	"strings"
)

// atLeast compares the start of a version text with major.minor.
func atLeast(version string, major, minor int) bool {
	parts := strings.FieldsFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	number := func(i int) int {
		if i >= len(parts) {
			return 0
		}
		n, err := strconv.Atoi(parts[i])
		if err != nil {
			return 0
		}
		return n
	}
	return number(0) > major || number(0) == major && number(1) >= minor
}
