package postgres_test

import (
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"freshet/proxy"
)

// BenchmarkHit measures a hit without the cost of its system calls: many are
// sent in one write. Allocations are those of the whole process.
func BenchmarkHit(b *testing.B) {
	r := newRig(b, proxy.Config{Loops: 1})
	admin := r.peer(b, false)
	admin.ask(wireSetUp)
	for _, bc := range []struct {
		name    string
		prepare []pgproto3.FrontendMessage
		unit    []pgproto3.FrontendMessage
	}{
		{"simple", nil, []pgproto3.FrontendMessage{q("select name from wire where id = 1")}},
		{"unnamed", nil, []pgproto3.FrontendMessage{parse("", "select name from wire where id = $1"), bind("", "", "1"), descP(""), execute("", 0), sync}},
		{"prepared", []pgproto3.FrontendMessage{parse("s", "select name from wire where id = $1"), sync},
			[]pgproto3.FrontendMessage{bind("", "s", "1"), execute("", 0), sync}},
	} {
		b.Run(bc.name, func(b *testing.B) {
			p := r.peer(b, true)
			if bc.prepare != nil {
				p.play(script{groups: []group{g(bc.prepare...)}})
			}
			p.untilHit(bc.name, g(bc.unit...))
			hitsInBatches(b, p, bc.unit)
		})
	}
}

func hitsInBatches(b *testing.B, p *peer, unit []pgproto3.FrontendMessage) {
	const batch = 64
	var one []byte
	for _, m := range unit {
		var err error
		if one, err = m.Encode(one); err != nil {
			b.Fatal(err)
		}
	}
	var many []byte
	for range batch {
		many = append(many, one...)
	}
	answer := answerLen(b, p, one)
	got := make([]byte, answer*batch)
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += batch {
		if _, err := p.line.Write(many); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(p.line, got); err != nil {
			b.Fatal(err)
		}
	}
}

// answerLen is how many bytes the answer to one unit has.
func answerLen(b *testing.B, p *peer, one []byte) int {
	if _, err := p.line.Write(one); err != nil {
		b.Fatal(err)
	}
	n := 0
	head := make([]byte, 5)
	for {
		if _, err := io.ReadFull(p.line, head); err != nil {
			b.Fatal(err)
		}
		size := int(head[1])<<24 | int(head[2])<<16 | int(head[3])<<8 | int(head[4]) - 4
		if _, err := io.CopyN(io.Discard, p.line, int64(size)); err != nil {
			b.Fatal(err)
		}
		n += 5 + size
		if head[0] == 'Z' {
			return n
		}
	}
}
