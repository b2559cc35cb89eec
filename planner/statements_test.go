package planner

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

type gone = atomic.Bool

// TestFlood keeps the memory of a hundred thousand distinct texts bounded, and
// every ID new.
func TestFlood(t *testing.T) {
	p, _, _ := recorded(t, 0)
	scope := p.Scope(dialects[0].scope)
	seen := make(map[uint64]bool)
	filler := strings.Repeat("x", 900)
	for i := range 100_000 {
		st := p.Statement(scope, fmt.Appendf(nil, "SELECT %d AS %s", i, filler), nil)
		if seen[st.ID] {
			t.Fatalf("ID %d twice", st.ID)
		}
		seen[st.ID] = true
	}
	if s := p.Stats(); s.Statements > maxStatements || s.StatementBytes > maxStatementBytes {
		t.Errorf("%+v", s)
	}
}

// TestHotStatementStays keeps a statement that is used through a flood.
func TestHotStatementStays(t *testing.T) {
	p, _, _ := recorded(t, 0)
	scope := p.Scope(dialects[0].scope)
	hot := p.Statement(scope, []byte("SELECT * FROM users WHERE id = 1"), nil)
	for i := range 200_000 {
		p.Statement(scope, fmt.Appendf(nil, "SELECT %d", i), nil)
		if i%500 == 0 {
			if st := p.Statement(scope, []byte("SELECT * FROM users WHERE id = 1"), nil); st != hot {
				t.Fatalf("the hot statement was dropped after %d others", i)
			}
		}
	}
}

// TestScopesKeepApart gives one text in two scopes, or with other declared
// types, two statements.
func TestScopesKeepApart(t *testing.T) {
	p, _, _ := recorded(t, 1)
	a, b := p.Scope(Scope{Database: "a"}), p.Scope(Scope{Database: "b"})
	if a == b || a != p.Scope(Scope{Database: "a"}) {
		t.Fatal("scopes are not interned")
	}
	text := []byte("SELECT $1")
	ids := map[uint64]bool{}
	for _, st := range []*Statement{
		p.Statement(a, text, nil), p.Statement(b, text, nil), p.Statement(a, text, []uint32{23}),
		p.Statement(a, text, []uint32{20}), p.Statement(a, text, []uint32{23, 0}),
	} {
		if ids[st.ID] || st.Text != "SELECT $1" {
			t.Errorf("statement %d: %q", st.ID, st.Text)
		}
		ids[st.ID] = true
	}
	if p.Statement(a, text, nil) != p.Statement(a, []byte("SELECT $1"), nil) {
		t.Error("a text is not interned")
	}
}

// TestLongText passes through without a parse, by the class of its first words.
func TestLongText(t *testing.T) {
	for _, c := range []struct {
		text string
		want Class
	}{
		{"INSERT INTO t VALUES ('" + strings.Repeat("x", maxTextBytes) + "')", ClassWrite},
		{"INSERT INTO t VALUES ('" + strings.Repeat("x", maxTextBytes) + "'); SET x = 1", ClassSession},
		{"SELECT '" + strings.Repeat("x", maxTextBytes) + "'", ClassOther},
		{"SELECT " + strings.Repeat("1+", maxTextBytes) + "1", ClassOther},
	} {
		for corpus := range dialects {
			p, _, _ := recorded(t, corpus)
			plan := planned(t, p, dialects[corpus].scope, c.text, nil)
			if plan.Class != c.want || plan.Cacheable || plan.Reason == "" {
				t.Errorf("%.30s…: %v, %v, %q", c.text, plan.Class, plan.Cacheable, plan.Reason)
			}
		}
	}
}

// TestAtOnce has many goroutines intern, plan and outdate the same statements.
func TestAtOnce(t *testing.T) {
	for corpus, d := range dialects {
		p, _, _ := recorded(t, corpus)
		texts := corpusStatements(t, corpus)
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := range 300 {
					text := texts[(i*7+g*13)%len(texts)]
					st := p.Statement(p.Scope(d.scope), []byte(text), nil)
					done := make(chan struct{})
					p.Make(st, func() { close(done) })
					<-done
					if plan := st.Plan(); plan != nil {
						plan.Deps(nil, make([]Param, plan.Params))
					}
					if i%50 == 0 {
						p.SchemaChanged("", "users")
					}
				}
			}()
		}
		wg.Wait()
	}
}

// BenchmarkNewLiteral is a text with a literal never seen before.
func BenchmarkNewLiteral(b *testing.B) {
	for corpus, d := range dialects {
		b.Run(d.name, func(b *testing.B) {
			p, _, _ := recorded(b, corpus)
			planned(b, p, d.scope, "SELECT id, name FROM users WHERE id = 1", nil)
			scope := p.Scope(d.scope)
			b.ReportAllocs()
			text := []byte("SELECT id, name FROM users WHERE id = ")
			for i := 0; b.Loop(); i++ {
				if st := p.Statement(scope, fmt.Append(text[:len(text):len(text)], i+2), nil); st.Plan() == nil {
					b.Fatal("no plan at once")
				}
			}
		})
	}
}

// BenchmarkDeps is what a miss asks of its plan.
func BenchmarkDeps(b *testing.B) {
	p, _, _ := recorded(b, 1)
	plan := planned(b, p, dialects[1].scope, "SELECT id, name FROM users WHERE id = $1", nil)
	params := []Param{{Data: []byte("12345")}}
	deps, _, _ := plan.Deps(nil, params)
	b.ReportAllocs()
	for b.Loop() {
		deps, _, _ = plan.Deps(deps[:0], params)
	}
}
