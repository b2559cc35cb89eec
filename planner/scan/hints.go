package scan

import (
	"strconv"
	"strings"
)

// Hints are what a comment /*+ freshet: … */ asks for.
type Hints struct {
	NoCache   bool
	TTLMillis int64
	// SetVar tells of MySQL's SET_VAR hint, which changes a setting for one
	// statement.
	SetVar bool
}

// ReadHints reads the insides of hint comments. A hint of ours that is not
// understood asks for no-cache: that is the safe half of what it may mean.
func ReadHints(insides []string) Hints {
	var h Hints
	for _, inside := range insides {
		fields := strings.Fields(strings.Replace(strings.ToLower(inside), "freshet:", "freshet: ", 1))
		switch {
		case len(fields) == 0:
		case fields[0] != "freshet:":
			h.SetVar = h.SetVar || strings.Contains(strings.ToLower(inside), "set_var")
		case len(fields) == 2 && fields[1] == "no-cache":
			h.NoCache = true
		case len(fields) == 3 && fields[1] == "ttl":
			ms, ok := parseMillis(fields[2])
			h.TTLMillis, h.NoCache = ms, h.NoCache || !ok
		default:
			h.NoCache = true
		}
	}
	return h
}

var units = []struct {
	suffix string
	millis int64
}{{"ms", 1}, {"s", 1000}, {"m", 60_000}, {"h", 3_600_000}, {"d", 86_400_000}}

// parseMillis reads a whole number with a unit: 500ms, 10s, 5m, 2h, 1d.
func parseMillis(s string) (int64, bool) {
	for _, u := range units {
		digits, found := strings.CutSuffix(s, u.suffix)
		if !found {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 32)
		if err != nil || n <= 0 {
			return 0, false
		}
		return n * u.millis, true
	}
	return 0, false
}
