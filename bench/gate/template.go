package gate

import (
	"math/rand/v2"
	"time"
)

// template is one statement with the ways to draw its parameters. The domains
// are small on purpose: most draws must have been asked before.
type template struct {
	table string // what it reads or writes; a read of it follows a write to it
	sql   string
	args  []arg
	modes []mode // nil: all of the dialect's
}

// arg draws one parameter.
type arg func(*rand.Rand) any

// words have what comparisons trip over: case, accents, trailing blanks,
// quotes, wildcards, more than one byte to a letter, nothing at all.
var words = []string{
	"apple", "Apple", "apple ", "äpfel", "pear", "Péar", "", "日本語", "it's", `back\slash`, "50%_off", "zebra", "🦓 striped", "a\tb", "42", "042",
}

var states = []string{"new", "open", "sold", "gone"}

// itemCount and friends are the ids that exist; draws go a little beyond.
const (
	itemCount     = 40
	customerCount = 12
	orderCount    = 120
)

func within(n int) arg { return func(r *rand.Rand) any { return int64(1 + r.IntN(n)) } }
func oneOf(choices ...any) arg {
	return func(r *rand.Rand) any { return choices[r.IntN(len(choices))] }
}
func word(r *rand.Rand) any     { return words[r.IntN(len(words))] }
func state(r *rand.Rand) any    { return states[r.IntN(len(states))] }
func itemID(r *rand.Rand) any   { return int64(1 + r.IntN(itemCount+3)) }
func orderID(r *rand.Rand) any  { return int64(1 + r.IntN(orderCount+3)) }
func customer(r *rand.Rand) any { return int64(1 + r.IntN(customerCount+1)) }
func quantity(r *rand.Rand) any { return int64(r.IntN(8)) }
func price(r *rand.Rand) any {
	return []string{"0", "1.19", "1.190", "9.99", "-3.50", "100"}[r.IntN(6)]
}
func blobOf(r *rand.Rand) any    { return []byte{0, byte(r.IntN(3)), 0xff, '\'', '\\'} }
func floatOf(r *rand.Rand) any   { return []float64{0, 0.5, -1.25, 1e10, 3.5}[r.IntN(5)] }
func newItem(r *rand.Rand) any   { return int64(1000 + r.IntN(20)) }
func newOrder(r *rand.Rand) any  { return int64(5000 + r.IntN(30)) }
func smallID(r *rand.Rand) any   { return int64(1 + r.IntN(6)) }
func rowsOf(r *rand.Rand) any    { return int64(1 + r.IntN(7)) }
func timeOf(r *rand.Rand) any    { return epoch.Add(time.Duration(r.IntN(itemCount)) * 25 * time.Hour) }
func freshWord(r *rand.Rand) any { return words[r.IntN(len(words))] + string(rune('a'+r.IntN(26))) }

// orNull makes one draw in n NULL.
func orNull(n int, a arg) arg {
	return func(r *rand.Rand) any {
		if r.IntN(n) == 0 {
			return nil
		}
		return a(r)
	}
}

// epoch is where the tables' dates begin.
var epoch = time.Date(2024, 2, 27, 22, 30, 15, 123000000, time.UTC)

func (t template) draw(r *rand.Rand) []any {
	if len(t.args) == 0 {
		return nil
	}
	out := make([]any, len(t.args))
	for i, a := range t.args {
		out[i] = a(r)
	}
	return out
}
