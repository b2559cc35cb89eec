package binlog

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"freshet/cache/feed/row"
)

// builder writes events as a server does.
type builder struct{ bytes.Buffer }

func (b *builder) little(v uint64, n int) *builder {
	for range n {
		b.WriteByte(byte(v))
		v >>= 8
	}
	return b
}

func (b *builder) text(s string) *builder { b.WriteString(s); return b }

func event(t Type, body []byte, checksum bool) []byte {
	var b builder
	size := HeaderSize + len(body)
	if checksum {
		size += 4
	}
	b.little(1, 4).little(uint64(t), 1).little(7, 4).little(uint64(size), 4).little(4711, 4).little(0, 2)
	b.Write(body)
	if checksum {
		b.little(uint64(crc32.ChecksumIEEE(b.Bytes())), 4)
	}
	return b.Bytes()
}

var testFormat = Format{lengths: bytes.Repeat([]byte{8}, 60)}

// testColumn writes a column's type, metadata and values.
type testColumn struct {
	kind  ColumnType
	meta  []byte
	value func(rng *rand.Rand) (stored, raw []byte)
}

func fixed(n int) func(*rand.Rand) ([]byte, []byte) {
	return func(rng *rand.Rand) ([]byte, []byte) {
		v := make([]byte, n)
		for i := range v {
			v[i] = byte(rng.Uint32())
		}
		return v, v
	}
}

func counted(prefix, most int) func(*rand.Rand) ([]byte, []byte) {
	return func(rng *rand.Rand) ([]byte, []byte) {
		v, _ := fixed(rng.IntN(most + 1))(rng)
		var b builder
		b.little(uint64(len(v)), prefix)
		b.Write(v)
		return b.Bytes(), v
	}
}

var testColumns = []testColumn{
	{TypeTiny, nil, fixed(1)}, {TypeShort, nil, fixed(2)}, {TypeInt24, nil, fixed(3)}, {TypeLong, nil, fixed(4)},
	{TypeLongLong, nil, fixed(8)}, {TypeFloat, []byte{4}, fixed(4)}, {TypeDouble, []byte{8}, fixed(8)}, {TypeYear, nil, fixed(1)},
	{TypeDate, nil, fixed(3)}, {TypeTimestamp2, []byte{6}, fixed(7)}, {TypeDatetime2, []byte{3}, fixed(7)}, {TypeTime2, []byte{0}, fixed(3)},
	{TypeNewDecimal, []byte{10, 2}, fixed(5)}, {TypeNewDecimal, []byte{65, 30}, fixed(30)}, {TypeBit, []byte{3, 2}, fixed(3)},
	{TypeVarchar, []byte{20, 0}, counted(1, 20)}, {TypeVarchar, []byte{0x2c, 1}, counted(2, 300)},
	{TypeString, []byte{0xfe, 40}, counted(1, 40)}, {TypeString, []byte{0xee, 0xfc}, counted(2, 500)},
	{TypeString, []byte{byte(TypeEnum), 2}, fixed(2)}, {TypeString, []byte{byte(TypeSet), 3}, fixed(3)},
	{TypeBlob, []byte{1}, counted(1, 200)}, {TypeBlob, []byte{4}, counted(4, 2000)}, {TypeJSON, []byte{4}, counted(4, 90)},
	{TypeGeometry, []byte{4}, counted(4, 90)},
}

func tableMapBody(columns []testColumn) []byte {
	var b, meta builder
	b.little(77, 6).little(1, 2).little(4, 1).text("some\x00").little(5, 1).text("table\x00").little(uint64(len(columns)), 1)
	for _, c := range columns {
		b.WriteByte(byte(c.kind))
		meta.Write(c.meta)
	}
	b.little(uint64(meta.Len()), 1)
	b.Write(meta.Bytes())
	b.Write(make([]byte, (len(columns)+7)/8))
	return b.Bytes()
}

// image writes one row of the columns present and returns what was in it.
func (b *builder) image(rng *rand.Rand, columns []testColumn, present []bool) []row.Value {
	out := make([]row.Value, len(columns))
	var nulls, values builder
	bit, octet := 0, byte(0)
	for i, c := range columns {
		if !present[i] {
			continue
		}
		if rng.IntN(5) == 0 {
			octet |= 1 << (bit % 8)
			out[i] = row.Value{State: row.Null}
		} else {
			stored, raw := c.value(rng)
			values.Write(stored)
			out[i] = row.Value{State: row.Present, Raw: raw}
		}
		if bit++; bit%8 == 0 {
			nulls.WriteByte(octet)
			octet = 0
		}
	}
	if bit%8 != 0 {
		nulls.WriteByte(octet)
	}
	b.Write(nulls.Bytes())
	b.Write(values.Bytes())
	return out
}

func bitmap(set []bool) []byte {
	out := make([]byte, (len(set)+7)/8)
	for i, s := range set {
		if s {
			out[i/8] |= 1 << (i % 8)
		}
	}
	return out
}

func sameValues(a, b []row.Value) bool {
	for i := range a {
		if a[i].State != b[i].State || !bytes.Equal(a[i].Raw, b[i].Raw) {
			return false
		}
	}
	return len(a) == len(b)
}

func TestRowsRoundTrip(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	for round := range 300 {
		columns := make([]testColumn, 1+rng.IntN(40))
		first, second := make([]bool, len(columns)), make([]bool, len(columns))
		for i := range columns {
			columns[i] = testColumns[rng.IntN(len(testColumns))]
			first[i], second[i] = rng.IntN(4) > 0, rng.IntN(4) > 0
		}
		first[0], second[0] = true, true
		m, err := ParseTableMap(&testFormat, tableMapBody(columns))
		if err != nil {
			t.Fatal(err)
		}
		types := []Type{WriteRowsV1, UpdateRowsV1, DeleteRowsV1, WriteRowsV2, UpdateRowsV2, DeleteRowsV2,
			MariaWriteCompressedV1, MariaUpdateCompressedV1, MariaDeleteCompressedV1}
		kind := types[rng.IntN(len(types))]
		var rows builder
		var want [][2][]row.Value
		for range 1 + rng.IntN(4) {
			var pair [2][]row.Value
			pair[0] = rows.image(rng, columns, first)
			if kindOf(kind) == row.Update {
				pair[1] = rows.image(rng, columns, second)
			}
			want = append(want, pair)
		}
		body := rowsBody(kind, len(columns), first, second, rows.Bytes())
		n := 0
		if err := eachRow(kind, body, m, func(images *row.Images) {
			old, fresh := images.Old, images.New
			if kindOf(kind) == row.Insert {
				old = fresh
			}
			if !sameValues(old, want[n][0]) || kindOf(kind) == row.Update && !sameValues(fresh, want[n][1]) {
				t.Fatalf("row %d is not what was written", n)
			}
			n++
		}); err != nil {
			t.Fatal(err)
		}
		if n != len(want) {
			t.Fatalf("%d rows of %d", n, len(want))
		}
		if round > 20 {
			continue
		}
		for cut := range body {
			got := 0
			if err := eachRow(kind, body[:cut], m, func(*row.Images) { got++ }); err == nil && got >= n {
				t.Fatalf("type %d: %d bytes of %d are enough", kind, cut, len(body))
			}
		}
	}
}

func rowsBody(kind Type, columns int, first, second []bool, rows []byte) []byte {
	var b builder
	b.little(77, 6).little(1, 2)
	if hasExtra(kind) {
		b.little(5, 2).text("abc")
	}
	b.little(uint64(columns), 1)
	b.Write(bitmap(first))
	if kindOf(kind) == row.Update {
		b.Write(bitmap(second))
	}
	if compressed(kind) {
		rows = deflateMaria(rows)
	}
	b.Write(rows)
	return b.Bytes()
}

func deflateMaria(plain []byte) []byte {
	var b builder
	b.little(2, 1).little(uint64(len(plain)>>8), 1).little(uint64(len(plain)), 1)
	w := zlib.NewWriter(&b)
	if _, err := w.Write(plain); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func eachRow(kind Type, body []byte, m *TableMap, do func(*row.Images)) error {
	r, err := ParseRows(&testFormat, kind, body, 1<<20)
	if err != nil {
		return err
	}
	var images row.Images
	return r.Each(m, &images, func() error { do(&images); return nil })
}

// TestPrefixesFail cuts every kind of event short.
func TestPrefixesFail(t *testing.T) {
	var gtid, maria, xa, rotate, query, tagged, format builder
	gtid.little(0, 1).text(strings.Repeat("u", 16)).little(5, 8)
	maria.little(5, 8).little(1, 4).little(1, 1)
	xa.little(0, 1).little(1, 4).little(1, 4).little(2, 4).text("abc")
	rotate.little(4, 8).text("f")
	query.little(1, 4).little(0, 4).little(2, 1).little(0, 2).little(14, 2).little(0, 1).little(0, 4).little(1, 1).little(4, 8).text("db\x00")
	tagged.Write([]byte{2, 120, 0, 0, 2, 2})
	for i := range 16 {
		tagged.WriteByte(byte(i << 1))
	}
	tagged.Write([]byte{4, 20, 6, 6, 't', 'a', 'g'})
	format.little(4, 2).text(strings.Repeat("v", 50)).little(0, 4).little(19, 1).little(1, 1).little(0, 4)
	parsers := map[string]struct {
		body  []byte
		parse func([]byte) error
	}{
		"gtid":      {gtid.Bytes(), func(p []byte) error { _, err := ParseGTID(GTIDEvent, p); return err }},
		"tagged":    {tagged.Bytes(), func(p []byte) error { _, err := ParseGTID(TaggedGTIDEvent, p); return err }},
		"maria":     {maria.Bytes(), func(p []byte) error { _, err := ParseMariaGTID(p); return err }},
		"xa":        {xa.Bytes(), func(p []byte) error { _, err := ParseXAPrepare(p); return err }},
		"rotate":    {rotate.Bytes(), func(p []byte) error { _, err := ParseRotate(p); return err }},
		"query":     {query.Bytes(), func(p []byte) error { _, err := ParseQuery(QueryEvent, p, 99); return err }},
		"format":    {format.Bytes(), func(p []byte) error { _, err := ParseFormat(p); return err }},
		"table map": {tableMapBody(testColumns), func(p []byte) error { _, err := ParseTableMap(&testFormat, p); return err }},
		"event":     {event(QueryEvent, query.Bytes(), true), func(p []byte) error { _, err := Parse(p, true); return err }},
	}
	for name, p := range parsers {
		if err := p.parse(p.body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for cut := range p.body {
			if p.parse(p.body[:cut]) == nil {
				t.Errorf("%s: %d bytes of %d are enough", name, cut, len(p.body))
			}
		}
	}
	g, err := ParseGTID(TaggedGTIDEvent, tagged.Bytes())
	if err != nil || g.Number != 5 || g.Source != "000102030405060708090a0b0c0d0e0f:tag" {
		t.Errorf("tagged: %v, %v", g, err)
	}
	q, err := ParseQuery(QueryEvent, append(query.Bytes(), "TRUNCATE t"...), 99)
	if err != nil || q.Schema != "db" || string(q.Text) != "TRUNCATE t" || !q.SQLModeKnown || q.SQLMode != 4 {
		t.Errorf("query: %+v, %v", q, err)
	}
}

func TestChecksumIsVerified(t *testing.T) {
	e := event(QueryEvent, []byte("body"), true)
	e[HeaderSize] ^= 1
	if _, err := Parse(e, true); err == nil {
		t.Error("a changed event passed")
	}
}

// TestDecimals compares with the same number written by big arithmetic's
// simplest form: digits in groups of nine.
func TestDecimals(t *testing.T) {
	for _, c := range []struct {
		precision, scale byte
		raw              []byte
		want             string
	}{
		{10, 2, []byte{0x80, 0, 0, 1, 19}, "00000001.19"},
		{10, 2, []byte{0x7f, 0xff, 0xff, 0xfe, ^byte(19)}, "-00000001.19"},
		{4, 0, []byte{0x84, 0xd2}, "1234"},
		{5, 5, []byte{0x80, 0, 1}, "0.00001"},
		{14, 4, []byte{0x81, 0x0d, 0xfb, 0x38, 0xd2, 0x04, 0xd2}, "1234567890.1234"},
	} {
		col := Column{TypeNewDecimal, uint16(c.precision)<<8 | uint16(c.scale)}
		got, ok := col.AppendDecimal(nil, c.raw)
		if !ok || string(got) != c.want {
			t.Errorf("DECIMAL(%d,%d) %x: %q, want %q", c.precision, c.scale, c.raw, got, c.want)
		}
	}
}

func TestDatetimes(t *testing.T) {
	for _, c := range []struct {
		digits uint16
		raw    []byte
		want   Moment
	}{
		{0, []byte{0x99, 0xb2, 0x44, 0x30, 0xc5}, Moment{2024, 1, 2, 3, 3, 5, 0}},
		{2, []byte{0x99, 0xb2, 0x44, 0x30, 0xc5, 99}, Moment{2024, 1, 2, 3, 3, 5, 990_000}},
		{3, []byte{0x99, 0xb2, 0x44, 0x30, 0xc5, 0x26, 0xac}, Moment{2024, 1, 2, 3, 3, 5, 990_000}},
		{6, []byte{0x99, 0xb2, 0x44, 0x30, 0xc5, 0x0f, 0x42, 0x3f}, Moment{2024, 1, 2, 3, 3, 5, 999_999}},
		{0, []byte{0x80, 0, 0, 0, 0}, Moment{}},
	} {
		got, ok := Column{TypeDatetime2, c.digits}.Datetime(c.raw)
		if !ok || got != c.want {
			t.Errorf("DATETIME(%d) %x: %v, %v; want %v", c.digits, c.raw, got, ok, c.want)
		}
		for n := range c.raw {
			if _, ok := (Column{TypeDatetime2, c.digits}).Datetime(c.raw[:n]); ok {
				t.Errorf("DATETIME(%d) %x of %d bytes is one", c.digits, c.raw, n)
			}
		}
	}
	if _, ok := (Column{TypeDatetime, 0}).Datetime(make([]byte, 8)); ok {
		t.Error("the older DATETIME is read as the newer")
	}
}

func payloadOf(t testing.TB, events ...[]byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	plain := bytes.Join(events, nil)
	packed := w.EncodeAll(plain, nil)
	var b builder
	b.little(2, 1).little(1, 1).little(0, 1).little(3, 1).little(3, 1).little(0xfc, 1).little(uint64(len(plain)), 2).
		little(1, 1).little(3, 1).little(0xfc, 1).little(uint64(len(packed)), 2).little(0, 1)
	b.Write(packed)
	return b.Bytes()
}

func TestPayload(t *testing.T) {
	p, err := NewPayloadReader(1 << 12)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	body := payloadOf(t, event(QueryEvent, []byte("one"), false), event(XIDEvent, []byte("8 bytes!"), false))
	var seen []Type
	each := func(body []byte) error {
		seen = nil
		return p.Each(body, func(e Event) error { seen = append(seen, e.Type); return nil })
	}
	if err := each(body); err != nil || fmt.Sprint(seen) != fmt.Sprint([]Type{QueryEvent, XIDEvent}) {
		t.Fatalf("%v, %v", seen, err)
	}
	for cut := range body {
		if err := each(body[:cut]); err == nil && len(seen) == 2 {
			t.Errorf("%d bytes of %d are enough", cut, len(body))
		}
	}
	large := payloadOf(t, event(QueryEvent, make([]byte, 1<<13), false))
	if err := each(large); err != ErrTooLarge {
		t.Errorf("a payload over the limit: %v", err)
	}
}

// TestGTIDSets compares with sets of single numbers.
func TestGTIDSets(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 3))
	sources := []string{strings.Repeat("a", 32), strings.Repeat("b", 32), strings.Repeat("a", 32) + ":tag"}
	random := func() (*GTIDSet, map[GTID]bool) {
		s, err := ParseGTIDSet("")
		if err != nil {
			t.Fatal(err)
		}
		model := map[GTID]bool{}
		for range rng.IntN(60) {
			g := GTID{sources[rng.IntN(3)], 1 + rng.Int64N(30)}
			s.Add(g)
			model[g] = true
		}
		return s, model
	}
	for range 2000 {
		a, inA := random()
		b, inB := random()
		contains := true
		for g := range inB {
			contains = contains && inA[g]
		}
		if a.Contains(b) != contains {
			t.Fatalf("%s contains %s: %v", a, b, !contains)
		}
		again, err := ParseGTIDSet(a.String())
		if err != nil || !again.Contains(a) || !a.Contains(again) {
			t.Fatalf("%s reads as %s (%v)", a, again, err)
		}
		for _, source := range sources {
			for n := int64(1); n <= 31; n++ {
				if g := (GTID{source, n}); a.Has(g) != inA[g] {
					t.Fatalf("%s has %s: %v", a, g, a.Has(g))
				}
			}
		}
	}
	for _, bad := range []string{"x", "x:1", strings.Repeat("a", 32), strings.Repeat("a", 32) + ":0", strings.Repeat("a", 32) + ":5-3", strings.Repeat("a", 32) + ":1-"} {
		if s, err := ParseGTIDSet(bad); err == nil {
			t.Errorf("%q reads as %s", bad, s)
		}
	}
}

// FuzzEvents gives every decoder whatever comes.
func FuzzEvents(f *testing.F) {
	f.Add(event(TableMapEvent, tableMapBody(testColumns), true))
	f.Add(event(WriteRowsV2, rowsBody(WriteRowsV2, 3, []bool{true, true, true}, nil, []byte{0, 1, 2, 3}), false))
	f.Add(event(PayloadEvent, payloadOf(f, event(QueryEvent, []byte("x"), false)), false))
	m, err := ParseTableMap(&testFormat, tableMapBody(testColumns))
	if err != nil {
		f.Fatal(err)
	}
	p, err := NewPayloadReader(1 << 16)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, checksum := range []bool{false, true} {
			e, err := Parse(data, checksum)
			if err != nil {
				continue
			}
			fuzzBody(e, m, p)
		}
		if len(data) > 0 {
			fuzzBody(Event{Header: Header{Type: Type(data[0])}, Body: data[1:]}, m, p)
		}
	})
}

func fuzzBody(e Event, m *TableMap, p *PayloadReader) {
	ignore := func(...any) {}
	ignore(ParseFormat(e.Body))
	ignore(ParseRotate(e.Body))
	ignore(ParseQuery(e.Type, e.Body, 1<<16))
	ignore(ParseGTID(e.Type, e.Body))
	ignore(ParseMariaGTID(e.Body))
	ignore(ParseXAPrepare(e.Body))
	ignore(RowsTable(&testFormat, e.Type, e.Body))
	ignore(p.Each(e.Body, func(Event) error { return nil }))
	tables := []*TableMap{m}
	if own, err := ParseTableMap(&testFormat, e.Body); err == nil {
		tables = append(tables, own)
	}
	var images row.Images
	if r, err := ParseRows(&testFormat, e.Type, e.Body, 1<<16); err == nil {
		for _, table := range tables {
			ignore(r.Each(table, &images, func() error {
				for i, v := range append(images.Old, images.New...) {
					col := table.Columns[i%len(table.Columns)]
					ignore(col.Int(v.Raw, false))
					ignore(col.AppendDate(nil, v.Raw))
					ignore(col.AppendDecimal(nil, v.Raw))
				}
				return nil
			}))
		}
	}
	if len(e.Body) >= 8 {
		ignore(binary.LittleEndian.Uint64(e.Body))
	}
}
