package history

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// Short words for histories made by hand. Times are in milliseconds.
func writes(session int, value, call, end int64) Op {
	return Op{Client: session, Session: session, Level: Session, Write: true, Value: value, Call: call * ms, Return: end * ms}
}

func open(o Op) Op { o.Open = true; return o }

func by(how string, o Op) Op { o.How = how; return o }

func reads(level Level, session int, value, version, call, end int64) Op {
	return Op{Client: session, Session: session, Level: level, Value: value, Version: version, Call: call * ms, Return: end * ms}
}

const ms = int64(time.Millisecond)

func TestLinearizable(t *testing.T) {
	r := func(session int, value, call, end int64) Op { return reads(Linearizable, session, value, 0, call, end) }
	for name, c := range map[string]struct {
		legal bool
		ops   []Op
	}{
		"nothing":                           {true, nil},
		"read after write":                  {true, []Op{writes(1, 7, 0, 1), r(2, 7, 2, 3)}},
		"old value after write":             {false, []Op{writes(1, 7, 0, 1), r(2, 0, 2, 3)}},
		"either value beside a write":       {true, []Op{writes(1, 7, 0, 9), r(2, 7, 1, 2), r(3, 7, 3, 4)}},
		"back in time beside a write":       {false, []Op{writes(1, 7, 0, 9), r(2, 7, 1, 2), r(3, 0, 3, 4)}},
		"a value of nobody":                 {false, []Op{writes(1, 7, 0, 1), r(2, 8, 2, 3)}},
		"two orders of two writes":          {false, []Op{writes(1, 7, 0, 9), writes(2, 8, 0, 9), r(3, 7, 10, 11), r(4, 8, 12, 13)}},
		"a lost write":                      {false, []Op{writes(1, 7, 0, 1), writes(2, 8, 2, 3), r(3, 7, 4, 5)}},
		"times that touch are concurrent":   {true, []Op{writes(1, 7, 0, 2), r(2, 0, 2, 3)}},
		"open, never seen":                  {true, []Op{open(writes(1, 7, 0, 1)), r(2, 0, 2, 3), r(2, 0, 4, 5)}},
		"open, seen much later":             {true, []Op{open(writes(1, 7, 0, 1)), writes(2, 8, 2, 3), r(2, 8, 4, 5), r(3, 7, 6, 7)}},
		"open, seen before it was asked":    {false, []Op{r(3, 7, 0, 1), open(writes(1, 7, 2, 3))}},
		"open, seen, overwritten, seen":     {false, []Op{open(writes(1, 7, 0, 1)), r(2, 7, 2, 3), writes(3, 8, 4, 5), r(2, 8, 6, 7), r(2, 7, 8, 9)}},
		"open, seen and gone":               {false, []Op{open(writes(1, 7, 0, 1)), r(2, 7, 2, 3), r(2, 0, 4, 5)}},
		"several open, seen in some order":  {true, []Op{open(writes(1, 7, 0, 1)), open(writes(2, 8, 0, 1)), r(3, 8, 2, 3), r(3, 7, 4, 5)}},
		"a failed write is not a confirmed": {false, []Op{writes(1, 7, 0, 1), open(writes(2, 8, 2, 3)), r(3, 0, 4, 5)}},
	} {
		found, err := linearizable(c.ops)
		if err != nil || (len(found) == 0) != c.legal {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}

// TestLevelsCount: reads under a weaker promise are not held to a stronger one,
// those past Freshet are, and so are all writes.
func TestLevelsCount(t *testing.T) {
	w := writes(1, 7, 0, 1)
	for level, legal := range map[Level]bool{Bounded: true, Session: true, Linearizable: false, Direct: false} {
		if found, err := linearizable([]Op{w, reads(level, 2, 0, 0, 2, 3)}); err != nil || (len(found) == 0) != legal {
			t.Errorf("%s: %v, %v", level, found, err)
		}
	}
	two := []Op{w, reads(Linearizable, 2, 7, 1, 2, 3)}
	two = append(two, w, reads(Linearizable, 3, 0, 0, 4, 5))
	two[2].Key, two[3].Key = 1, 1
	if found, err := linearizable(two); err != nil || len(found) != 1 || found[0].Key != 1 {
		t.Errorf("of two keys: %v, %v", found, err)
	}
}

// plainModel is a register without the addition that registerModel has.
var plainModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, _ any) (bool, any) {
		a := input.(action)
		return a.write || state.(int64) == a.value, a.value
	},
}

// TestModelsAgree: the addition changes no verdict, nor does leaving out open
// writes that nobody saw.
func TestModelsAgree(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	verdicts := make(map[porcupine.CheckResult]int)
	for range 5000 {
		ops := randomHistory(rng)
		var all []porcupine.Operation
		for i := range ops {
			o := &ops[i]
			all = append(all, porcupine.Operation{Input: action{write: o.Write, value: o.Value}, Call: o.Call, Return: o.end()})
		}
		want := porcupine.CheckOperationsTimeout(plainModel, all, 0)
		if got := linearizes(ops); got != want {
			t.Fatalf("seed %d: %s, want %s: %v", seed, got, want, ops)
		}
		verdicts[want]++
	}
	if verdicts[porcupine.Ok] < 500 || verdicts[porcupine.Illegal] < 500 {
		t.Errorf("seed %d: verdicts %v", seed, verdicts)
	}
}

// randomHistory has reads that are mostly right.
func randomHistory(rng *rand.Rand) (ops []Op) {
	value := int64(0)
	for at := int64(0); at < 12; at++ {
		o := Op{Level: Linearizable, Call: at, Return: at + rng.Int64N(4)}
		if rng.IntN(2) == 0 {
			value++
			o.Write, o.Value, o.Open = true, value, rng.IntN(4) == 0
		} else {
			o.Value = max(0, value-rng.Int64N(2))
		}
		ops = append(ops, o)
	}
	return ops
}

func TestShortest(t *testing.T) {
	ops := []Op{writes(1, 7, 0, 1), reads(Linearizable, 2, 7, 1, 2, 3), writes(1, 8, 4, 5), reads(Linearizable, 2, 7, 1, 6, 7),
		reads(Linearizable, 2, 8, 2, 8, 9), writes(1, 9, 6, 20)}
	got := shortest(ops)
	if len(got) != 5 || got[3].Value != 7 || got[3].Call != 6*ms || !got[4].Open {
		t.Errorf("%v", got)
	}
}

func TestSessions(t *testing.T) {
	log := commits{0: {7: 1, 8: 2, 9: 3}}
	r := func(session int, value, version, call int64) Op {
		return reads(Session, session, value, version, call, call+1)
	}
	for name, c := range map[string]struct {
		broken int
		ops    []Op
	}{
		"its own write":               {0, []Op{writes(1, 7, 0, 1), r(1, 7, 1, 2)}},
		"not its own write":           {1, []Op{writes(1, 7, 0, 1), r(1, 0, 0, 2)}},
		"another's newer write":       {0, []Op{writes(1, 7, 0, 1), writes(2, 8, 2, 3), r(1, 8, 2, 4)}},
		"another's write is not its":  {0, []Op{writes(2, 7, 0, 1), r(1, 0, 0, 2)}},
		"back in time":                {1, []Op{writes(2, 7, 0, 1), r(1, 7, 1, 2), r(1, 0, 0, 4)}},
		"behind its own lost race":    {1, []Op{writes(2, 8, 0, 1), writes(1, 9, 0, 2), r(1, 8, 2, 4)}},
		"back in time, elsewhere":     {0, []Op{writes(2, 7, 0, 1), r(1, 7, 1, 2), r(3, 0, 0, 4)}},
		"back in time, by another":    {1, []Op{writes(2, 7, 0, 1), r(1, 7, 1, 2), by("x", r(1, 0, 0, 4))}},
		"not its own write, either":   {1, []Op{writes(1, 7, 0, 1), r(1, 7, 1, 2), by("x", r(1, 0, 0, 4))}},
		"an open write of its own":    {0, []Op{open(writes(1, 7, 0, 1)), r(1, 0, 0, 2)}},
		"an open write, once it came": {1, []Op{open(writes(1, 7, 0, 1)), r(1, 7, 1, 2), r(1, 0, 0, 4)}},
	} {
		found, err := sessions(c.ops, log)
		if err != nil || len(found) != c.broken {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}

func TestBounded(t *testing.T) {
	log := commits{0: {7: 1, 8: 2}}
	for name, c := range map[string]struct {
		broken int
		ops    []Op
	}{
		"within":                         {0, []Op{writes(1, 7, 0, 1), reads(Bounded, 2, 0, 0, 10, 30)}},
		"after":                          {1, []Op{writes(1, 7, 0, 1), reads(Bounded, 2, 0, 0, 12, 13)}},
		"seen":                           {0, []Op{writes(1, 7, 0, 1), reads(Bounded, 2, 7, 1, 12, 13)}},
		"an open write is not known":     {0, []Op{open(writes(1, 7, 0, 1)), reads(Bounded, 2, 0, 0, 12, 13)}},
		"but it is once somebody saw it": {1, []Op{open(writes(1, 7, 0, 1)), reads(Direct, 3, 7, 1, 1, 2), reads(Bounded, 2, 0, 0, 13, 14)}},
		"the newest that is due":         {1, []Op{writes(1, 8, 0, 2), writes(1, 7, 0, 3), reads(Session, 2, 7, 1, 20, 21)}},
	} {
		if found := bounded(c.ops, log, 10*time.Millisecond); len(found) != c.broken {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestWhereFrom(t *testing.T) {
	log := commits{0: {7: 1}}
	for name, c := range map[string]struct {
		broken int
		op     Op
	}{
		"what was there first":   {0, reads(Bounded, 1, 0, 0, 0, 1)},
		"committed":              {0, reads(Bounded, 1, 7, 1, 0, 1)},
		"another version":        {1, reads(Bounded, 1, 7, 2, 0, 1)},
		"never committed":        {1, reads(Bounded, 1, 8, 2, 0, 1)},
		"confirmed and lost":     {1, writes(1, 8, 0, 1)},
		"confirmed":              {0, writes(1, 7, 0, 1)},
		"not confirmed and lost": {0, open(writes(1, 8, 0, 1))},
	} {
		if found := whereFrom([]Op{c.op}, log); len(found) != c.broken {
			t.Errorf("%s: %v", name, found)
		}
	}
}
