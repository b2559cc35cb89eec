package canon

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// same says whether two (canonical, ok) results are both given and equal.
func text(t *testing.T, kind Kind, s string) string {
	t.Helper()
	out, ok := AppendText(kind, nil, []byte(s))
	if !ok {
		return "refused"
	}
	return fmt.Sprintf("%x", out)
}

func TestTextEquality(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		a, b string
		same bool
	}{
		{Int, "12", "012", true},
		{Int, "-0", "0", true},
		{Int, "-1", "18446744073709551615", false},
		{Decimal, "1.19", "1.190", true},
		{Decimal, "0", "-0.00", true},
		{Decimal, ".5", "0.50", true},
		{Decimal, "10", "1", false},
		{Decimal, "100", "0.01", false},
		{Bytes, "a", "a ", false},
		{BytesTrim, "a", "a  ", true},
		{BytesTrim, "a\x00\x00", "a", true},
		{FoldASCII, "Abc ", "aBC", true},
		{FoldASCII, " a", "a", false},
		{UUID, "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "{a0eebc999c0b4ef8bb6d6bb9bd380a11}", true},
		{Bool, "t", "true", true},
		{Bool, "t", "f", false},
		{Date, "2024-02-29", "2024-02-29", true},
		{Bytea, `\xDEAD`, `\xdead`, true},
		{DateTime, "2024-01-02", "2024-01-02T00:00:00.0", true},
		{DateTime, "2024-01-02 03:04:05.12", "2024-01-02 03:04:05.120000", true},
		{DateTime, "2024-01-02 03:04:05", "2024-01-02 03:04:05.000001", false},
		{Instant, "2024-01-02 03:04:05+00", "2024-01-02 08:34:05+05:30", true},
		{Instant, "2024-01-02 03:04:05.5-08", "2024-01-02T11:04:05.50+00:00:00", true},
		{Instant, "1800-01-01 00:00:00-00:01:15", "1800-01-01 00:01:15+00", true},
	} {
		a, b := text(t, c.kind, c.a), text(t, c.kind, c.b)
		if a == "refused" || b == "refused" {
			t.Errorf("%v %q, %q: refused", c.kind, c.a, c.b)
		} else if (a == b) != c.same {
			t.Errorf("%v %q, %q: same = %v, want %v", c.kind, c.a, c.b, a == b, c.same)
		}
	}
}

func TestTextRefused(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		text string
	}{
		{Int, ""}, {Int, "-"}, {Int, " 1"}, {Int, "1 "}, {Int, "1.0"}, {Int, "0x10"}, {Int, "1_000"}, {Int, "1e3"},
		{Int, "18446744073709551616"}, {Int, "-9223372036854775809"}, {Int, "000000000000000000001"},
		{Decimal, ""}, {Decimal, "."}, {Decimal, "NaN"}, {Decimal, "1e2"}, {Decimal, "Infinity"}, {Decimal, "1.2.3"},
		{FoldASCII, "é"}, {FoldASCII, "a\tb"}, {FoldASCII, "a\x7f"},
		{UUID, "a0eebc99"}, {UUID, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1g"}, {UUID, "a0eebc99_9c0b-4ef8-bb6d-6bb9bd380a11"},
		{Bool, "yes"}, {Bool, "1"},
		{Date, "2024-02-30"}, {Date, "0000-00-00"}, {Date, "2024-2-3"}, {Date, "now"}, {Date, "infinity"}, {Date, "today     "},
		{Bytea, "abc"}, {Bytea, `\x0`}, {Bytea, `\x0g`}, {None, "x"},
		{DateTime, "2024-01-02 03:04:05.1234567"}, {DateTime, "2024-01-02 03:04:60"}, {DateTime, "2024-01-02 24:00:00"}, {DateTime, "2024-01-02 03:04"},
		{DateTime, "2024-01-02 03:04:05."}, {DateTime, "2024-01-02 03:04:05+00"}, {DateTime, "2024-01-02 03:04:05 BC"}, {DateTime, "now"},
		{DateTime, "2024-01-02 "}, {DateTime, "infinity"}, {DateTime, "12024-01-02 03:04:05"}, {DateTime, "2024-01-0203:04:05"},
		{Instant, "2024-01-02 03:04:05"}, {Instant, "2024-01-02 03:04:05Z"}, {Instant, "2024-01-02+00"}, {Instant, "2024-01-02 03:04:05+16"},
		{Instant, "2024-01-02 03:04:05+0"}, {Instant, "2024-01-02 03:04:05+00:"}, {Instant, "2024-01-02 03:04:05+00:00:00:00"},
		{Instant, "0001-01-01 00:00:00+01"}, {Instant, "9999-12-31 23:59:59-01"}, {Instant, "2024-01-02 03:04:05+00:60"},
	} {
		if got := text(t, c.kind, c.text); got != "refused" {
			t.Errorf("%v %q: got %s, want it refused", c.kind, c.text, got)
		}
	}
}

func TestRefusalKeepsDst(t *testing.T) {
	for kind := range Kind(len(kindNames)) {
		out, ok := AppendText(kind, []byte("kept"), []byte("\xff bad"))
		if !ok && string(out) != "kept" {
			t.Errorf("%v: a refused value left %q behind", kind, out)
		}
	}
}

func seeded(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, seed))
}

// TestIntForms holds the text and both binary forms of one integer to one
// canonical value.
func TestIntForms(t *testing.T) {
	r := seeded(t)
	for range 20000 {
		v := int64(r.Uint64() >> r.UintN(64))
		if r.IntN(2) == 0 {
			v = -v
		}
		want := AppendInt(nil, v)
		check := func(form string, got []byte, ok bool) {
			if !ok || !bytes.Equal(got, want) {
				t.Fatalf("%s of %d: got %x, %v; want %x", form, v, got, ok, want)
			}
		}
		got, ok := AppendText(Int, nil, fmt.Append(nil, v))
		check("text", got, ok)
		got, ok = AppendBinary(Int, nil, OIDInt8, binary.BigEndian.AppendUint64(nil, uint64(v)))
		check("PostgreSQL binary", got, ok)
		got, ok = AppendMySQLParam(MySQLColumn{Kind: Int}, nil, typeLongLong, binary.LittleEndian.AppendUint64(nil, uint64(v)), false)
		check("MySQL parameter", got, ok)
	}
}

// numericWire encodes an unscaled integer and a scale as numeric_send does.
func numericWire(unscaled *big.Int, scale int) []byte {
	digits := new(big.Int).Abs(unscaled).String()
	for len(digits) <= scale {
		digits = "0" + digits
	}
	whole, fraction := digits[:len(digits)-scale], digits[len(digits)-scale:]
	whole = strings.Repeat("0", (4-len(whole)%4)%4) + whole
	fraction += strings.Repeat("0", (4-len(fraction)%4)%4)
	all := whole + fraction
	out := binary.BigEndian.AppendUint16(nil, uint16(len(all)/4))
	out = binary.BigEndian.AppendUint16(out, uint16(len(whole)/4-1))
	sign := uint16(0)
	if unscaled.Sign() < 0 {
		sign = 0x4000
	}
	out = binary.BigEndian.AppendUint16(out, sign)
	out = binary.BigEndian.AppendUint16(out, uint16(scale))
	for ; all != ""; all = all[4:] {
		var d uint16
		for i := range 4 {
			d = d*10 + uint16(all[i]-'0')
		}
		out = binary.BigEndian.AppendUint16(out, d)
	}
	return out
}

func TestNumericForms(t *testing.T) {
	r := seeded(t)
	for range 20000 {
		unscaled := new(big.Int).SetUint64(r.Uint64() >> r.UintN(64))
		if r.IntN(2) == 0 {
			unscaled.Neg(unscaled)
		}
		scale := r.IntN(12)
		s := new(big.Rat).SetFrac(unscaled, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)).FloatString(scale + r.IntN(3))
		want, ok := AppendText(Decimal, nil, []byte(s))
		if !ok {
			t.Fatalf("%q refused", s)
		}
		wire := numericWire(unscaled, scale)
		got, ok := AppendBinary(Decimal, nil, OIDNumeric, wire)
		if !ok || !bytes.Equal(got, want) {
			t.Fatalf("%s: binary %q, %v; text %q", s, got, ok, want)
		}
		if scale == 0 && unscaled.IsInt64() {
			got, ok = AppendBinary(Decimal, nil, OIDInt8, binary.BigEndian.AppendUint64(nil, uint64(unscaled.Int64())))
			if !ok || !bytes.Equal(got, want) {
				t.Fatalf("%s: int8 %q, %v; text %q", s, got, ok, want)
			}
		}
		for n := range wire {
			if _, ok := AppendBinary(Decimal, nil, OIDNumeric, wire[:n]); ok {
				t.Fatalf("the first %d bytes of %x were taken for a whole numeric", n, wire)
			}
		}
	}
}

func TestDateForms(t *testing.T) {
	r := seeded(t)
	for range 5000 {
		days := r.IntN(800000) - 700000
		s := time.Date(2000, 1, 1+days, 0, 0, 0, 0, time.UTC)
		if s.Year() < 1 || s.Year() > 9999 {
			continue
		}
		want, _ := AppendText(Date, nil, []byte(s.Format("2006-01-02")))
		got, ok := AppendBinary(Date, nil, OIDDate, binary.BigEndian.AppendUint32(nil, uint32(int32(days))))
		if !ok || !bytes.Equal(got, want) {
			t.Fatalf("%v: binary %q, %v; text %q", s, got, ok, want)
		}
		my := binary.LittleEndian.AppendUint16(nil, uint16(s.Year()))
		my = append(my, byte(s.Month()), byte(s.Day()))
		got, ok = AppendMySQLParam(MySQLColumn{Kind: Date}, nil, typeDate, my, false)
		if !ok || !bytes.Equal(got, want) {
			t.Fatalf("%v: MySQL binary %q, %v; text %q", s, got, ok, want)
		}
	}
	for range 20000 {
		m := time.UnixMicro(r.Int64N(251e15) - 62e15).UTC()
		s := m.Format("2006-01-02 15:04:05.999999")
		want, ok := AppendText(DateTime, nil, []byte(s))
		if !ok {
			t.Fatalf("%s is refused", s)
		}
		if n, _ := Ordinal(DateTime, want); int64(n) != m.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).Microseconds()+730119*microsPerDay && m.Year() > 1900 && m.Year() < 2200 {
			t.Fatalf("%s: ordinal %d", s, n)
		}
		zone := time.FixedZone("", 60*(r.IntN(1600)-800))
		zoned := m.In(zone).Format("2006-01-02 15:04:05.999999-07:00:00")
		at, ok := AppendText(Instant, nil, []byte(zoned))
		if year := m.In(zone).Year(); year > 0 && year < 10000 && (!ok || !bytes.Equal(at, want)) {
			t.Fatalf("%s is %s: %x, %v; want %x", s, zoned, at, ok, want)
		}
		pg := binary.BigEndian.AppendUint64(nil, uint64(m.UnixMicro()-time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()))
		got, ok := AppendBinary(DateTime, nil, OIDTimestamp, pg)
		if !ok || !bytes.Equal(got, want) {
			t.Fatalf("%s: PostgreSQL's binary %x, %v; text %x", s, got, ok, want)
		}
		my := binary.LittleEndian.AppendUint16(nil, uint16(m.Year()))
		my = append(my, byte(m.Month()), byte(m.Day()), byte(m.Hour()), byte(m.Minute()), byte(m.Second()))
		my = binary.LittleEndian.AppendUint32(my, uint32(m.Nanosecond()/1000))
		got, ok = AppendMySQLParam(MySQLColumn{Kind: DateTime, Digits: 6}, nil, typeDateTime, my, false)
		if !ok || !bytes.Equal(got, want) {
			t.Fatalf("%s: MySQL's binary %x, %v; text %x", s, got, ok, want)
		}
	}
	for _, data := range []string{"\x7f\xff\xff\xff\xff\xff\xff\xff", "\x80\x00\x00\x00\x00\x00\x00\x00", "\x80\x00\x00\x00\x00\x00\x00\x01", "1234567", ""} {
		if _, ok := AppendBinary(Instant, nil, OIDTimestamptz, []byte(data)); ok {
			t.Errorf("binary timestamp %x was taken", data)
		}
	}
	for _, data := range []string{"\x7f\xff\xff\xff", "\x80\x00\x00\x00", "\x00", ""} {
		if _, ok := AppendBinary(Date, nil, OIDDate, []byte(data)); ok {
			t.Errorf("binary date %x was taken", data)
		}
	}
}

func TestMySQLComparisons(t *testing.T) {
	str := func(c MySQLColumn, s string) bool {
		_, ok := AppendMySQLString(c, nil, []byte(s), false)
		return ok
	}
	for _, c := range []struct {
		column MySQLColumn
		text   string
		want   bool
	}{
		{MySQLColumn{Kind: Int}, "9007199254740991", true},
		{MySQLColumn{Kind: Int}, "9007199254740992", false}, // equals 9007199254740993 as a double
		{MySQLColumn{Kind: Int}, "12abc", false},
		{MySQLColumn{Kind: DateTime}, "2024-01-01 00:00:00", true},
		{MySQLColumn{Kind: DateTime}, "2024-01-01 00:00:00.5", false}, // an index may find 00:00:00
		{MySQLColumn{Kind: DateTime, Digits: 3}, "2024-01-01 00:00:00.5", true},
		{MySQLColumn{Kind: DateTime, Digits: 3}, "2024-01-01 00:00:00.5001", false},
		{MySQLColumn{Kind: DateTime, Digits: 6}, "2024-01-01 00:00:00.500001", true},
		{MySQLColumn{Kind: Decimal, Digits: 10}, "1.190", true},
		{MySQLColumn{Kind: Decimal, Digits: 30}, "1.190", false}, // 1.19000000000000000001 equals it
		{MySQLColumn{Kind: Decimal, Digits: 10}, "1.190000000000000001", false},
		{MySQLColumn{Kind: Bytes}, "é", false}, // character set not known to be the column's
		{MySQLColumn{Kind: Bytes}, "e", true},
	} {
		if got := str(c.column, c.text); got != c.want {
			t.Errorf("%v column = %q: taken = %v, want %v", c.column.Kind, c.text, got, c.want)
		}
	}
	if _, ok := AppendMySQLInt(MySQLColumn{Kind: Bytes}, nil, 123, false); ok {
		t.Error("varchar = number was taken as exact")
	}
	if _, ok := AppendMySQLParam(MySQLColumn{Kind: Int}, nil, 0x05, make([]byte, 8), false); ok {
		t.Error("a double was taken as exact")
	}
}

func TestParamLengths(t *testing.T) {
	types := []uint32{typeTiny, typeShort, typeLong, typeLongLong, typeInt24, typeDate}
	sizes := map[uint32]int{typeTiny: 1, typeShort: 2, typeLong: 4, typeLongLong: 8, typeInt24: 4, typeDate: 4}
	for _, typ := range types {
		kind := Int
		if typ == typeDate {
			kind = Date
		}
		for n := range 12 {
			data := bytes.Repeat([]byte{1}, n)
			_, ok := AppendMySQLParam(MySQLColumn{Kind: kind}, nil, typ, data, true)
			if want := n == sizes[typ]; ok != want {
				t.Errorf("type %#x with %d bytes: taken = %v, want %v", typ, n, ok, want)
			}
		}
	}
}

func TestPostgresComparisons(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		oid  uint32
		want bool
	}{
		{Int, 0, true}, {Int, OIDInt2, true}, {Int, OIDNumeric, false}, {Int, OIDText, false}, {Int, 701, false},
		{Decimal, OIDInt4, true}, {Bytes, OIDVarchar, true}, {Bytes, OIDBpchar, false}, {BytesTrim, OIDText, true},
		{UUID, OIDUUID, true}, {UUID, OIDText, false}, {Bytea, OIDText, false}, {None, 0, false},
	} {
		if got := Compares(c.kind, c.oid); got != c.want {
			t.Errorf("Compares(%v, %d) = %v, want %v", c.kind, c.oid, got, c.want)
		}
	}
}

func FuzzBinary(f *testing.F) {
	f.Add(uint8(Decimal), OIDNumeric, []byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, kind uint8, oid uint32, data []byte) {
		dst := []byte("x")
		out, _ := AppendBinary(Kind(kind), dst, oid, data)
		if len(out) < 1 || out[0] != 'x' {
			t.Fatal("dst was lost")
		}
		out, _ = AppendMySQLParam(MySQLColumn{Kind: Kind(kind), Digits: 10}, dst, oid, data, true)
		if len(out) < 1 || out[0] != 'x' {
			t.Fatal("dst was lost")
		}
	})
}
