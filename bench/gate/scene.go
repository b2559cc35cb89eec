package gate

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// scene makes calls that belong together and leave the session without an open
// transaction. A settled scene begins with a write by both sessions, so that
// what others wrote before must show from its first call on (its calls cannot be
// repeated until they do), and that both have the same last statement behind them.
type scene struct {
	name    string
	weight  int
	settled bool
	make    func(r *runner, p *pair) []call
}

// pick draws a scene for p.
func (r *runner) pick(p *pair) []call {
	total := 0
	for _, s := range r.d.scenes {
		total += s.weight
	}
	n := r.rng.IntN(total)
	for _, s := range r.d.scenes {
		if n < s.weight {
			calls := s.make(r, p)
			if s.settled {
				calls = append([]call{settle}, calls...)
			}
			return calls
		}
		n -= s.weight
	}
	return nil
}

// settle is a write that both sessions make.
var settle = call{sql: "UPDATE freshet_gate.marker SET n = n + 1", settles: true}

// sceneReads repeats one read, cold and then warm, in one mode or in several:
// the answers of different modes must not be mixed up.
func sceneReads(r *runner, _ *pair) []call {
	c := r.readOf(r.d.reads[r.rng.IntN(len(r.d.reads))])
	var calls []call
	for n := 2 + r.rng.IntN(5); n > 0; n-- {
		calls = append(calls, c)
		if r.rng.IntN(5) == 0 {
			c = r.inSomeMode(c, nil)
		}
	}
	return calls
}

// sceneMixed asks several reads in turn, then all of them again.
func sceneMixed(r *runner, _ *pair) []call {
	var calls []call
	for n := 2 + r.rng.IntN(4); n > 0; n-- {
		calls = append(calls, r.readOf(r.d.reads[r.rng.IntN(len(r.d.reads))]))
	}
	return append(calls, calls...)
}

// sceneWrite warms reads of a table, changes it, and asks them again.
func sceneWrite(r *runner, p *pair) []call {
	w := r.d.writes[r.rng.IntN(len(r.d.writes))]
	var reads []call
	for range 1 + r.rng.IntN(3) {
		if t, ok := r.readOn(w.table); ok {
			reads = append(reads, r.readOf(t))
		}
	}
	calls := slices.Clone(reads)
	calls = append(calls, r.writeOf(w, writer(r.rng.IntN(3))))
	calls = append(calls, reads...)
	return append(calls, reads...)
}

// sceneOpenWrite changes rows in a transaction of the session through, reads
// there what it has not committed, and ends it either way: what it read must
// never be told to anybody else, nor to itself after a rollback.
func sceneOpenWrite(r *runner, p *pair) []call {
	w := r.writeOf(r.d.writes[0], byThrough)
	w.mode = []mode{text, prepared}[r.rng.IntN(2)]
	w.open, w.inside = true, true
	t, ok := r.readOn(r.d.writes[0].table)
	if !ok {
		return nil
	}
	inside := r.readOf(t)
	outside := inside
	inside.class, inside.open, inside.inside = write, true, true
	begin := call{sql: "BEGIN", class: write, open: true}
	calls := []call{outside, outside, begin, w, inside, inside}
	if r.rng.IntN(2) == 0 {
		calls = append(calls, call{sql: "ROLLBACK", class: write, open: true, inside: true})
	} else {
		calls = append(calls, call{sql: "COMMIT", class: write, inside: true})
	}
	return append(calls, outside, outside)
}

func (r *runner) readOn(table string) (template, bool) {
	var fitting []template
	for _, t := range r.d.reads {
		if t.table == table {
			fitting = append(fitting, t)
		}
	}
	if len(fitting) == 0 {
		return template{}, false
	}
	return fitting[r.rng.IntN(len(fitting))], true
}

func (r *runner) readOf(t template) call {
	return r.inSomeMode(call{sql: t.sql, args: t.draw(r.rng), class: read}, t.modes)
}

func (r *runner) writeOf(t template, by writer) call {
	c := r.inSomeMode(call{sql: t.sql, args: t.draw(r.rng), class: write, by: by}, t.modes)
	if c.mode == cursor || c.mode == longData {
		c.mode = prepared
	}
	c.binary = false
	return c
}

// inSomeMode draws how a call goes over the wire, from modes or the dialect's.
func (r *runner) inSomeMode(c call, modes []mode) call {
	if modes == nil {
		modes = r.d.modes
	}
	c.mode = modes[r.rng.IntN(len(modes))]
	if c.mode == cursor {
		c.rows = uint32(1 + r.rng.IntN(4))
	}
	c.binary = r.d.binary && c.mode != text && r.rng.IntN(2) == 0
	return c
}

// texts makes calls of plain texts that both sides run.
func texts(sql ...string) []call {
	out := make([]call, len(sql))
	for i, s := range sql {
		out[i] = call{sql: s}
	}
	return out
}

// oneText draws one of the scripts. They leave variables, locks and the like,
// for which a proxy may rightly keep a session to its own connection: mostly
// the session is reset, or little would be answered from memory.
func oneText(scripts [][]string, reset call) func(r *runner, _ *pair) []call {
	return func(r *runner, _ *pair) []call {
		calls := texts(scripts[r.rng.IntN(len(scripts))]...)
		if r.rng.IntN(4) > 0 {
			calls = append(calls, reset)
		}
		return calls
	}
}

// shuffledSettings draws some of the settings and reads under them. They stay
// set: the scenes that follow run under them too, until a reset is drawn.
func shuffledSettings(settings []string, resets []call) func(r *runner, p *pair) []call {
	return func(r *runner, p *pair) []call {
		if r.rng.IntN(2) == 0 {
			return append([]call{resets[r.rng.IntN(len(resets))]}, sceneReads(r, p)...)
		}
		var calls []call
		for range 1 + r.rng.IntN(2) {
			s := settings[r.rng.IntN(len(settings))]
			calls = append(calls, call{sql: s, resets: remembered(s)})
		}
		calls = append(calls, sceneReads(r, p)...)
		return append(calls, sceneReads(r, p)...)
	}
}

// remembered says whether MySQL keeps a setting's value in a prepared
// statement's metadata: those must be prepared again, or they would depend on
// when each side did it.
func remembered(setting string) bool {
	return strings.Contains(setting, "group_concat_max_len") || strings.Contains(setting, "div_precision_increment")
}

// laneCalls draws statements on the lane table.
func laneCalls(r *rand.Rand, statements []template, modes []mode, n int) []call {
	out := make([]call, n)
	for i := range out {
		t := statements[r.IntN(len(statements))]
		m := t.modes
		if m == nil {
			m = modes
		}
		out[i] = call{sql: t.sql, args: t.draw(r), mode: m[r.IntN(len(m))]}
	}
	return out
}
