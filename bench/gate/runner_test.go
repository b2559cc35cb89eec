package gate

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"freshet/bench/wire"
)

// fakeLane answers every call with what answer says.
type fakeLane struct {
	answer func() (string, error)
}

func (l *fakeLane) run(c call) ([]wire.Message, error) {
	if c.class == write {
		return []wire.Message{{Kind: wire.KindOK}}, nil
	}
	s, err := l.answer()
	return []wire.Message{{Kind: wire.KindRow, Body: []byte(s)}}, err
}
func (l *fakeLane) hello() []wire.Message { return nil }
func (l *fakeLane) close() error          { return nil }

// fakePair is a runner whose direct side always says "new", and whose other
// side says what through says.
func fakePair(bound time.Duration, through func() (string, error)) (*runner, *pair) {
	p := &pair{
		direct:  &fakeLane{func() (string, error) { return "new", nil }},
		through: &fakeLane{through},
		seen:    make(map[string]int),
	}
	r := &runner{
		cfg: Config{Calls: 1000, MaxStaleness: bound, Out: io.Discard}, rng: rand.New(rand.NewPCG(1, 1)),
		pairs: []*pair{p}, other: p.direct,
	}
	r.d = &dialect{connect: func(_ context.Context, _ int, isThrough bool) (lane, error) {
		if isThrough {
			return p.through, nil
		}
		return p.direct, nil
	}}
	return r, p
}

var (
	aRead        = call{sql: "read", class: read}
	otherWrites  = call{sql: "write", class: write, by: byOther}
	throughWrite = call{sql: "write", class: write, by: byThrough}
)

// inTurn gives each answer once, the last one for ever.
func inTurn(answers ...string) func() (string, error) {
	return func() (string, error) {
		a := answers[0]
		if len(answers) > 1 {
			answers = answers[1:]
		}
		return a, nil
	}
}

func TestFreshnessRules(t *testing.T) {
	for name, c := range map[string]struct {
		bound       time.Duration
		through     func() (string, error)
		calls       []call
		differences int
		retried     int
	}{
		"late within the bound":      {time.Minute, inTurn("old", "old", "new"), []call{otherWrites, aRead, aRead}, 0, 1},
		"late beyond the bound":      {5 * time.Millisecond, inTurn("old"), []call{otherWrites, aRead}, 1, 0},
		"no write, so never late":    {time.Minute, inTurn("old"), []call{aRead}, 1, 0},
		"own write shows at once":    {time.Minute, inTurn("old", "new"), []call{throughWrite, aRead}, 1, 0},
		"own write brings others'":   {time.Minute, inTurn("old", "new"), []call{otherWrites, throughWrite, aRead}, 1, 0},
		"never back":                 {time.Minute, inTurn("new", "old", "new"), []call{otherWrites, aRead, aRead}, 1, 0},
		"late again after a write":   {time.Minute, inTurn("new", "old", "new"), []call{otherWrites, aRead, otherWrites, aRead}, 0, 1},
		"a comparison is not a read": {time.Minute, inTurn("old", "new"), []call{otherWrites, {sql: "SET", class: same}}, 1, 0},
		"broken":                     {time.Minute, func() (string, error) { return "", errors.New("broken") }, []call{otherWrites, aRead, aRead}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, p := fakePair(c.bound, c.through)
			if err := r.play(context.Background(), p, c.calls); err != nil {
				t.Fatal(err)
			}
			if r.report.Differences != c.differences || r.report.Retried != c.retried {
				t.Errorf("%d differences and %d retried, want %d and %d", r.report.Differences, r.report.Retried, c.differences, c.retried)
			}
		})
	}
}

func TestDiff(t *testing.T) {
	row := func(s string) wire.Message { return wire.Message{Kind: "D", Body: []byte(s)} }
	for _, c := range []struct {
		a, b  []wire.Message
		alike bool
	}{
		{nil, nil, true},
		{[]wire.Message{row("a")}, []wire.Message{row("a")}, true},
		{[]wire.Message{row("a")}, []wire.Message{row("b")}, false},
		{[]wire.Message{row("a")}, []wire.Message{row("ab")}, false},
		{[]wire.Message{row("a")}, nil, false},
		{nil, []wire.Message{row("a")}, false},
		{[]wire.Message{row("a")}, []wire.Message{{Kind: "E", Body: []byte("a")}}, false},
	} {
		if got := diff(c.a, c.b); (got == "") != c.alike {
			t.Errorf("diff(%v, %v) = %q", c.a, c.b, got)
		}
	}
}

func TestLiterals(t *testing.T) {
	for _, c := range []struct {
		a               any
		mysql, postgres string
	}{
		{nil, "NULL", "NULL"},
		{int64(-3), "-3", "-3"},
		{uint64(1 << 63), "9223372036854775808", "9223372036854775808"},
		{`it's \`, `'it''s \\'`, `'it''s \'`},
		{[]byte{0, 0xff}, "x'00ff'", `'\x00ff'`},
	} {
		if got := literal(c.a, true); got != c.mysql {
			t.Errorf("MySQL literal of %v is %s, want %s", c.a, got, c.mysql)
		}
		if got := literal(c.a, false); got != c.postgres {
			t.Errorf("PostgreSQL literal of %v is %s, want %s", c.a, got, c.postgres)
		}
	}
	if got := numbered("a = ? AND b = ?", []any{1, 2}); got != "a = $1 AND b = $2" {
		t.Errorf("numbered: %s", got)
	}
}
