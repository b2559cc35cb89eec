package canon

import (
	"encoding/binary"
	"math"
	"testing"
)

func TestHeldValues(t *testing.T) {
	whole, cents := Held{Kind: HeldNumber}, Held{Kind: HeldNumber, Digits: 2}
	seconds, millis, micros := Held{Kind: HeldMoment}, Held{Kind: HeldMoment, Digits: 3}, Held{Kind: HeldMoment, Digits: 6}
	day, clock, stamp := Held{Kind: HeldDay}, Held{Kind: HeldClock}, Held{Kind: HeldMoment, Stamp: true}
	for _, c := range []struct {
		held   Held
		text   string
		number bool
		use    HeldUse
		want   bool
	}{
		{seconds, "2024-01-01 00:00:00", false, HeldUse{}, true},
		{seconds, "2024-01-01T00:00:00.000", false, HeldUse{}, true},
		{seconds, "2024-01-01 00:00:00.5", false, HeldUse{}, false},
		{seconds, "2024-01-01 00:00:00.0000001", false, HeldUse{}, false},
		{millis, "2024-01-01 00:00:00.5", false, HeldUse{}, true},
		{millis, "2024-01-01 00:00:00.123400", false, HeldUse{}, false},
		{micros, "2024-01-01 00:00:00.123456", false, HeldUse{}, true},
		{micros, "2024-01-01 00:00:00.1234567", false, HeldUse{}, false},
		{seconds, "2024-01-01 00:00", false, HeldUse{}, true},
		{seconds, "2024-01-01", false, HeldUse{}, true},
		{seconds, "2024-02-30", false, HeldUse{}, false},
		{seconds, "0000-00-00 00:00:00", false, HeldUse{}, true},
		{seconds, "0000-00-00", false, HeldUse{Inner: true}, false},
		{seconds, "2024-01-01 00:00:00.5abc", false, HeldUse{}, false},
		{seconds, "", false, HeldUse{}, false},
		{seconds, "20240101000000", true, HeldUse{}, true},
		{seconds, "20240101000000.5", true, HeldUse{}, false},
		{stamp, "1960-01-01", false, HeldUse{}, false},
		{stamp, "1960-01-01", false, HeldUse{Ordered: true}, true},
		{day, "2024-01-01 00:00:00", false, HeldUse{}, true},
		{day, "2024-01-01 00:00:01", false, HeldUse{}, false},
		{day, "2024-01-01 00:00:00.000001", false, HeldUse{}, false},
		{day, "20240101", true, HeldUse{}, true},
		{day, "20240101000001", true, HeldUse{}, false},
		{seconds, "2024-01-01 00:00:00.5", false, HeldUse{Ordered: true}, true},
		{seconds, "2024-01-01 00:00:00.5", false, HeldUse{Ordered: true, Extremes: true}, false},
		{seconds, "2024-01-01 00:00:00.5", false, HeldUse{Between: true}, false},
		{day, "2024-01-01 23:59:59", false, HeldUse{Between: true}, true},
		{day, "2024-01-01 23:59:59", false, HeldUse{Between: true, Extremes: true}, false},
		{clock, "10:00", false, HeldUse{}, true},
		{clock, "-838:59:59", false, HeldUse{}, true},
		{clock, "10:00:00.5", false, HeldUse{}, false},
		{clock, "2024-01-01 10:00:00", false, HeldUse{}, false},
		{clock, "1 10:00:00", false, HeldUse{}, false},
		{clock, "100000", true, HeldUse{}, true},
		{clock, "20240101000001", true, HeldUse{}, false},
		{whole, "5", true, HeldUse{}, true},
		{whole, "5.00", true, HeldUse{}, true},
		{whole, "5.5", true, HeldUse{}, false},
		{whole, " 5.5abc", false, HeldUse{}, false},
		{whole, "abc.5", false, HeldUse{}, true}, // is 0
		{whole, "5e-1", false, HeldUse{}, false},
		{Held{Kind: HeldNumber, Unsigned: true}, "-1", true, HeldUse{}, true},
		{Held{Kind: HeldNumber, Unsigned: true}, "-1", true, HeldUse{Extremes: true}, false},
		{cents, "19.99", true, HeldUse{}, true},
		{cents, "19.990", false, HeldUse{}, true},
		{cents, "19.995", true, HeldUse{}, false},
		{cents, "1.5", true, HeldUse{Part: true, Product: true}, false},
		{Held{Kind: HeldSingle}, "1.5", true, HeldUse{}, true},
		{Held{Kind: HeldSingle}, "1.4", true, HeldUse{}, false},
		{Held{Kind: HeldYear}, "2024", true, HeldUse{}, true},
		{Held{Kind: HeldYear}, "24", true, HeldUse{}, false},
		{Held{Kind: HeldYear}, "1900", true, HeldUse{}, false},
		{Held{Kind: HeldBits}, "1", true, HeldUse{}, true},
		{Held{Kind: HeldBits}, "1", false, HeldUse{}, false},
		{Held{Kind: HeldName}, "a", false, HeldUse{}, true},
		{Held{Kind: HeldName}, "1", true, HeldUse{}, false},
		{Held{Kind: HeldText}, "1.5", true, HeldUse{}, true},
		{seconds, "1 00:00", false, HeldUse{Part: true}, true},
		{seconds, "1.5", false, HeldUse{Part: true}, false},
		{day, "10:00", false, HeldUse{Part: true}, false},
	} {
		got := c.held.HoldsText([]byte(c.text), c.use)
		if c.number {
			got = c.held.HoldsNumber([]byte(c.text), c.use)
		}
		if got != c.want {
			t.Errorf("%+v holds %q (number %v, %+v): %v, want %v", c.held, c.text, c.number, c.use, got, c.want)
		}
	}
}

// binaryMoment is a DATETIME parameter on 2024-01-02 at 03:04:05.
func binaryMoment(micros uint32) []byte {
	return binary.LittleEndian.AppendUint32([]byte{0xe8, 7, 1, 2, 3, 4, 5}, micros)
}

// binaryClock is a TIME parameter of a day and 02:03:04.
func binaryClock(micros uint32) []byte {
	return binary.LittleEndian.AppendUint32([]byte{0, 1, 0, 0, 0, 2, 3, 4}, micros)
}

func TestHeldParameters(t *testing.T) {
	double := func(v float64) []byte { return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)) }
	for _, c := range []struct {
		held Held
		typ  uint32
		data []byte
		want bool
	}{
		{Held{Kind: HeldMoment}, typeDateTime, binaryMoment(0), true},
		{Held{Kind: HeldMoment}, typeDateTime, binaryMoment(0)[:7], true},
		{Held{Kind: HeldMoment}, typeDateTime, binaryMoment(0)[:4], true},
		{Held{Kind: HeldMoment}, typeDateTime, nil, true}, // zeros
		{Held{Kind: HeldMoment}, typeDateTime, binaryMoment(500_000), false},
		{Held{Kind: HeldMoment, Digits: 1}, typeDateTime, binaryMoment(500_000), true},
		{Held{Kind: HeldMoment, Digits: 5}, typeTimestamp, binaryMoment(1), false},
		{Held{Kind: HeldMoment, Digits: 6}, typeTimestamp, binaryMoment(1), true},
		{Held{Kind: HeldMoment}, typeDateTime, binaryMoment(0)[:6], false},
		{Held{Kind: HeldMoment}, typeString, []byte("2024-01-01 00:00:00.5"), false},
		{Held{Kind: HeldMoment}, typeVarString, []byte("2024-01-01 00:00:00"), true},
		{Held{Kind: HeldDay}, typeDate, binaryMoment(0)[:4], true},
		{Held{Kind: HeldDay}, typeDateTime, binaryMoment(0)[:7], false},
		{Held{Kind: HeldClock}, typeTime, binaryClock(0)[:8], true},
		{Held{Kind: HeldClock}, typeTime, binaryClock(1), false},
		{Held{Kind: HeldClock, Digits: 6}, typeTime, binaryClock(1), true},
		{Held{Kind: HeldClock}, typeTime, nil, true},
		{Held{Kind: HeldClock}, typeTime, binaryClock(0)[:9], false},
		{Held{Kind: HeldNumber}, typeLongLong, binary.LittleEndian.AppendUint64(nil, 1<<63), true},
		{Held{Kind: HeldNumber}, typeLongLong, make([]byte, 7), false},
		{Held{Kind: HeldNumber}, typeDouble, double(3), true},
		{Held{Kind: HeldNumber}, typeDouble, double(3.5), false},
		{Held{Kind: HeldNumber, Digits: 2}, typeDouble, double(3.25), true},
		{Held{Kind: HeldNumber}, typeDouble, double(math.NaN()), true},
		{Held{Kind: HeldNumber}, typeFloat, binary.LittleEndian.AppendUint32(nil, math.Float32bits(0.1)), false},
		{Held{Kind: HeldNumber, Digits: 1}, typeNewDecimal, []byte("0.10"), true},
		{Held{Kind: HeldBits}, typeTiny, []byte{1}, true},
		{Held{Kind: HeldBits}, typeString, []byte("1"), false},
	} {
		if got := c.held.HoldsParam(c.typ, c.data, HeldUse{}); got != c.want {
			t.Errorf("%+v holds %x of type %#x: %v, want %v", c.held, c.data, c.typ, got, c.want)
		}
	}
}

// FuzzHeldParam holds that no bytes make it panic.
func FuzzHeldParam(f *testing.F) {
	f.Add(uint8(HeldMoment), uint32(typeDateTime), binaryMoment(1))
	f.Add(uint8(HeldClock), uint32(typeTime), binaryClock(1))
	f.Add(uint8(HeldNumber), uint32(typeString), []byte("-1.5e3"))
	f.Fuzz(func(t *testing.T, kind uint8, typ uint32, data []byte) {
		h := Held{Kind: HeldKind(kind), Digits: int(kind) % 7}
		h.HoldsParam(typ, data, HeldUse{})
		h.HoldsParam(typ, data, HeldUse{Part: true})
		h.HoldsNumber(data, HeldUse{})
	})
}
