package pgoutput

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"freshet/cache/feed/row"
)

type builder struct{ bytes.Buffer }

func (b *builder) big(v uint64, n int) *builder {
	var word [8]byte
	binary.BigEndian.PutUint64(word[:], v)
	b.Write(word[8-n:])
	return b
}

func (b *builder) text(s string) *builder { b.WriteString(s); b.WriteByte(0); return b }

func (b *builder) tuple(values []row.Value) *builder {
	b.big(uint64(len(values)), 2)
	for _, v := range values {
		switch v.State {
		case row.Null:
			b.WriteByte('n')
		case row.Unchanged:
			b.WriteByte('u')
		default:
			b.WriteByte('t')
			b.big(uint64(len(v.Raw)), 4)
			b.Write(v.Raw)
		}
	}
	return b
}

func relationBody(keys []bool, identity byte) []byte {
	var b builder
	b.big(16400, 4).text("public").text("t").WriteByte(identity)
	b.big(uint64(len(keys)), 2)
	for i, key := range keys {
		flag := uint64(0)
		if key {
			flag = 1
		}
		b.big(flag, 1).text(string(rune('a'+i))).big(23, 4).big(0xffffffff, 4)
	}
	return b.Bytes()
}

func randomTuple(rng *rand.Rand, n int) []row.Value {
	out := make([]row.Value, n)
	for i := range out {
		switch rng.IntN(4) {
		case 0:
			out[i] = row.Value{State: row.Null}
		case 1:
			out[i] = row.Value{State: row.Unchanged}
		default:
			out[i] = row.Value{State: row.Present, Raw: []byte{byte(rng.Uint32()), 'x'}[:1+rng.IntN(2)]}
		}
	}
	return out
}

func same(a, b row.Value) bool { return a.State == b.State && bytes.Equal(a.Raw, b.Raw) }

// TestChanges writes random changes and checks what the rules of replica
// identity make of them.
func TestChanges(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 4))
	for range 3000 {
		n := 1 + rng.IntN(6)
		keys := make([]bool, n)
		identity := "dfi"[rng.IntN(3)]
		for i := range keys {
			keys[i] = identity == 'f' || rng.IntN(2) == 0
		}
		rel, err := ParseRelation(relationBody(keys, identity))
		if err != nil {
			t.Fatal(err)
		}
		old, fresh := randomTuple(rng, n), randomTuple(rng, n)
		for i := range old {
			if old[i].State == row.Unchanged { // old rows are whole
				old[i] = row.Value{State: row.Null}
			}
		}
		id := "IUD"[rng.IntN(3)]
		part := "KO-"[rng.IntN(3)]
		var b builder
		b.big(16400, 4)
		switch {
		case id == 'D' && part == '-':
			part = 'K'
			fallthrough
		case id != 'I' && part != '-':
			b.WriteByte(part)
			b.tuple(old)
		default:
			part = '-'
		}
		if id != 'D' {
			b.WriteByte('N')
			b.tuple(fresh)
		}
		ch, err := ParseChange(id, b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		var images row.Images
		if err := ch.Read(rel, &images); err != nil {
			t.Fatal(err)
		}
		for i := range keys {
			wantOld, wantNew := row.Value{}, row.Value{}
			if part == 'O' || part == 'K' && keys[i] {
				wantOld = old[i]
			}
			if id != 'D' {
				wantNew = fresh[i]
			}
			if id == 'U' {
				if fresh[i].State == row.Unchanged && wantOld.State == row.Present {
					wantNew = wantOld
				}
				if part == '-' && keys[i] && identity != 'f' && fresh[i].State != row.Unchanged {
					wantOld = fresh[i]
				}
			}
			if !same(images.Old[i], wantOld) || !same(images.New[i], wantNew) {
				t.Fatalf("%c %c column %d: old %v want %v, new %v want %v", id, part, i, images.Old[i], wantOld, images.New[i], wantNew)
			}
		}
		for cut := range b.Len() {
			ch, err := ParseChange(id, b.Bytes()[:cut])
			if err == nil {
				err = ch.Read(rel, &images)
			}
			if err == nil {
				t.Fatalf("%d bytes of %d are enough", cut, b.Len())
			}
		}
	}
}

func TestPrefixesFail(t *testing.T) {
	var begin, commit, truncate, keepalive builder
	begin.big(1, 8).big(2, 8).big(3, 4)
	commit.big(0, 1).big(1, 8).big(2, 8).big(3, 8)
	truncate.big(2, 4).big(0, 1).big(7, 4).big(8, 4)
	keepalive.big(1, 8).big(2, 8).big(1, 1)
	for name, p := range map[string]struct {
		body  []byte
		parse func([]byte) error
	}{
		"begin":     {begin.Bytes(), func(d []byte) error { _, err := ParseBegin(d); return err }},
		"commit":    {commit.Bytes(), func(d []byte) error { _, err := ParseCommit(d); return err }},
		"truncate":  {truncate.Bytes(), func(d []byte) error { _, err := ParseTruncate(d); return err }},
		"keepalive": {keepalive.Bytes(), func(d []byte) error { _, err := ParseKeepalive(d); return err }},
		"relation":  {relationBody([]bool{true, false}, 'd'), func(d []byte) error { _, err := ParseRelation(d); return err }},
		"data":      {make([]byte, 25), func(d []byte) error { _, err := ParseData(d); return err }},
	} {
		if err := p.parse(p.body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for cut := range p.body {
			if p.parse(p.body[:cut]) == nil {
				t.Errorf("%s: %d bytes of %d are enough", name, cut, len(p.body))
			}
		}
	}
}

func FuzzMessages(f *testing.F) {
	f.Add([]byte("I"), relationBody([]bool{true, false}, 'd'))
	f.Fuzz(func(t *testing.T, message, relation []byte) {
		ignore := func(...any) {}
		ignore(ParseBegin(message))
		ignore(ParseCommit(message))
		ignore(ParseTruncate(message))
		ignore(ParseKeepalive(message))
		ignore(ParseData(message))
		rel, err := ParseRelation(relation)
		if err != nil || len(message) == 0 {
			return
		}
		var images row.Images
		for _, id := range []byte{'I', 'U', 'D', message[0]} {
			if ch, err := ParseChange(id, message[1:]); err == nil {
				ignore(ch.Read(rel, &images))
			}
		}
	})
}
