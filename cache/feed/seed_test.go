package feed

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// seedOf is the same for every run, so that a change to the code is what a
// failure speaks of; FRESHET_SEED takes another, and "new" one that was not seen
// yet.
func seedOf(t testing.TB) uint64 {
	t.Helper()
	switch text := os.Getenv("FRESHET_SEED"); text {
	case "":
		return 1
	case "new":
		return rand.Uint64()
	default:
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("FRESHET_SEED=%q: want a number, or new", text)
		}
		return seed
	}
}
