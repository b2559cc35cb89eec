package cache

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// model is the store as a map: nothing is evicted, nothing shared.
type model struct {
	t       *testing.T
	s       *Store
	r       *Reader
	rng     *rand.Rand
	roomy   bool // nothing needs to be evicted, so what the model has, the store has
	at      Position
	visible Position
	epoch   int
	changed map[Dep]Position
	entries map[string]modelEntry
	leads   map[string]*modelFill // the fill that a claim may join
	fills   []*modelFill
	serial  int
	repeat  int // how long the pieces of an answer may be

	found, needless, lost int
}

type modelEntry struct {
	value    string
	filledAt Position
	epoch    int
	deps     []Dep
	meta     [2]uint64
}

type modelFill struct {
	f *Fill
	modelEntry
	key       string
	displaced bool
	waiters   []*recorder
}

const modelKeys = 300

func (m *model) key() string { return fmt.Sprintf("key %d", m.rng.IntN(modelKeys)) }

// depsOf gives each key up to four dependencies, each shared with others.
func (m *model) depsOf(key string) (deps []Dep) {
	n := 0
	fmt.Sscanf(key, "key %d", &n)
	for i := range n % 5 {
		deps = append(deps, spread((n*7+i*i*13)%150+1))
	}
	return deps
}

func (m *model) valid(e modelEntry) bool {
	if e.epoch != m.epoch {
		return false
	}
	for _, d := range e.deps {
		if m.changed[d] > e.filledAt {
			return false
		}
	}
	return true
}

func (m *model) get(key string) {
	m.r.Enter()
	defer m.r.Leave()
	hit, l := m.r.Get([]byte(key))
	e, there := m.entries[key]
	switch {
	case l == Found && (!there || !m.valid(e)):
		m.t.Fatalf("%q is served: %.40q filled at %d; the model has %v %+v", key, hit.Value, hit.FilledAt, there, e)
	case l == Found:
		m.found++
		if string(hit.Value) != e.value || hit.FilledAt != e.filledAt || hit.Meta != e.meta {
			m.t.Fatalf("%q: got %.40q at %d %v, want %.40q at %d %v", key, hit.Value, hit.FilledAt, hit.Meta, e.value, e.filledAt, e.meta)
		}
	case l == Stale && there && m.valid(e):
		m.t.Fatalf("%q is called stale but valid", key)
	case l == Stale && !there:
		m.t.Fatalf("%q is called stale but was never stored", key)
	case there && m.valid(e):
		if m.lost++; m.roomy {
			m.t.Fatalf("%q is lost", key)
		}
	}
}

func (m *model) claim(key string) {
	m.serial++
	deps := m.depsOf(key)
	since := Position(0)
	if m.rng.IntN(4) == 0 {
		since = m.at - min(m.at, Position(m.rng.IntN(5)))
	}
	canJoin := m.rng.IntN(3) > 0
	meta := [2]uint64{uint64(m.serial), m.rng.Uint64()}
	w := &recorder{}
	f, c := m.s.Claim([]byte(key), deps, since, meta, canJoin, w)

	e := modelEntry{filledAt: m.visible, epoch: m.epoch, deps: deps, meta: meta}
	run := m.leads[key]
	mayJoin := canJoin && run != nil && m.valid(run.modelEntry) && run.filledAt >= since
	timeless := len(deps) == 0 && since == 0
	mayLead := timeless || m.visible != 0 && m.visible >= since && m.valid(e)
	switch {
	case c == Joined != mayJoin:
		m.t.Fatalf("%q: claim %d, may join: %v", key, c, mayJoin)
	case c == Joined:
		run.waiters = append(run.waiters, w)
	case c == Leader && !mayLead:
		m.t.Fatalf("%q leads with dependencies changed after visible %d", key, m.visible)
	case c == Leader:
		if f.FilledAt() != m.visible {
			m.t.Fatalf("%q: filledAt %d, visible %d", key, f.FilledAt(), m.visible)
		}
		if run != nil {
			run.displaced = true
		}
		lf := &modelFill{f: f, key: key, modelEntry: e}
		m.leads[key] = lf
		m.fills = append(m.fills, lf)
	case mayLead:
		m.needless++
	}
}

// step moves one running fill on.
func (m *model) step() {
	if len(m.fills) == 0 {
		return
	}
	i := m.rng.IntN(len(m.fills))
	lf := m.fills[i]
	switch m.rng.IntN(5) {
	case 0, 1:
		p := strings.Repeat(fmt.Sprintf("%s/%d ", lf.key, m.serial), 1+m.rng.IntN(m.repeat))
		if lf.f.Append([]byte(p)) {
			lf.value += p
			return
		}
		if m.roomy {
			m.t.Fatal("append refused")
		}
		m.end(i, "", false)
	case 2:
		lf.f.Abandon()
		m.end(i, "", false)
	default:
		should := m.valid(lf.modelEntry) && !lf.displaced
		stored := lf.f.Finish()
		if stored && !should || !stored && should && m.roomy {
			m.t.Fatalf("%q: stored %v, should be %v", lf.key, stored, should)
		}
		if stored {
			m.entries[lf.key] = lf.modelEntry
		}
		m.end(i, lf.value, true)
	}
}

func (m *model) end(i int, value string, ok bool) {
	lf := m.fills[i]
	for _, w := range lf.waiters {
		w.want(m.t, value, ok)
	}
	if m.leads[lf.key] == lf {
		delete(m.leads, lf.key)
	}
	m.fills = append(m.fills[:i], m.fills[i+1:]...)
}

func (m *model) run(steps int) {
	for range steps {
		switch n := m.rng.IntN(1000); {
		case n < 350:
			m.get(m.key())
		case n < 550:
			m.claim(m.key())
		case n < 900:
			m.step()
		case n < 950:
			m.at += Position(1 + m.rng.IntN(3))
			d := spread(m.rng.IntN(150) + 1)
			m.s.Mark(d, m.at)
			m.changed[d] = m.at
		case n < 997:
			m.visible = max(m.visible, m.at-min(m.at, Position(m.rng.IntN(4))))
			m.s.SetVisible(m.visible)
		case n == 997:
			m.s.SetVisible(0)
			m.visible = 0
		default:
			if m.rng.IntN(10) == 0 {
				m.s.Flush()
				m.epoch++
			}
		}
	}
	running := make([]*Fill, len(m.fills))
	for i, lf := range m.fills {
		running[i] = lf.f
	}
	check(m.t, m.s, running...)
	for len(m.fills) > 0 {
		m.fills[0].f.Abandon()
		m.end(0, "", false)
	}
	for i := range modelKeys {
		m.get(fmt.Sprintf("key %d", i))
	}
	check(m.t, m.s)
}

func TestModel(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit int64
		steps int
		roomy bool
	}{{"roomy", 64 << 20, 60000, true}, {"tight", 2 << 20, 60000, false}} {
		for range 3 {
			seed := rand.Uint64()
			t.Run(fmt.Sprintf("%s/%d", c.name, seed), func(t *testing.T) {
				s := newTestStore(t, Options{LimitBytes: c.limit})
				m := &model{t: t, s: s, r: s.NewReader(), rng: rand.New(rand.NewPCG(seed, 5)), roomy: c.roomy, repeat: 20,
					at: 1, visible: 1, changed: map[Dep]Position{}, entries: map[string]modelEntry{}, leads: map[string]*modelFill{}}
				if c.roomy {
					m.run(c.steps)
				} else {
					m.repeat = 1000
					m.pressure(c.steps)
				}
				t.Logf("%d found, %d needless refusals, %d evicted", m.found, m.needless, m.lost)
				if m.found < c.steps/30 || m.needless > c.steps/50 || m.lost > 0 == m.roomy {
					t.Fatal("the run did not do what it is for")
				}
			})
		}
	}
}

// pressure runs the model between bursts of other answers that fill the store.
func (m *model) pressure(steps int) {
	value := strings.Repeat("x", 2000)
	for i := range 60 {
		m.run(steps / 60)
		for j := range 200 {
			if f, c := m.s.Claim([]byte(keyOf(i*1000+j)), nil, 0, [2]uint64{}, false, nil); c == Leader {
				f.Append([]byte(value))
				f.Finish()
			}
		}
	}
	check(m.t, m.s)
}
