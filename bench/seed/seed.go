// Package seed is where random tests begin.
package seed

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Of is fixed, the same for every run, so that a change to the code is what a
// failure speaks of; or what the environment variable says: a number, or "new"
// for one that was not seen yet.
func Of(t testing.TB, variable string, fixed uint64) uint64 {
	t.Helper()
	switch text := os.Getenv(variable); text {
	case "":
		return fixed
	case "new":
		return rand.Uint64()
	default:
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s=%q: want a number, or new", variable, text)
		}
		return n
	}
}
