package mysql

import (
	"bytes"
	"errors"
	"testing"
)

func TestPacketsOfEverySize(t *testing.T) {
	for _, size := range []int{0, 1, 300, MaxPayload - 1, MaxPayload, MaxPayload + 1, 2 * MaxPayload} {
		payload := bytes.Repeat([]byte("abcdefg"), size/7+1)[:size]
		wire, next := AppendPacket(nil, 250, payload)
		packets := size/MaxPayload + 1
		if int(next) != (250+packets)%256 || len(wire) != size+packets*HeaderLen {
			t.Fatalf("size %d: %d bytes on the wire, next sequence number %d", size, len(wire), next)
		}
		other, mark := BeginPacket([]byte("before"))
		other = append(other, payload...)
		other, next2 := EndPacket(other, mark, 250)
		if !bytes.Equal(other[len("before"):], wire) || next2 != next {
			t.Fatalf("size %d: EndPacket made something else than AppendPacket", size)
		}
		var join []byte
		m, n, err := NextMessage(wire, 1<<30, &join)
		if err != nil || n != len(wire) || !bytes.Equal(m.Payload, payload) || m.Seq != 250 || m.LastSeq != next-1 {
			t.Fatalf("size %d: %d bytes, seq %d-%d, %v", size, n, m.Seq, m.LastSeq, err)
		}
		for _, cut := range []int{0, 3, 4, len(wire) / 2, len(wire) - 1} {
			if cut >= len(wire) {
				continue
			}
			if _, need, err := NextMessage(wire[:cut], 1<<30, &join); !errors.Is(err, ErrIncomplete) || need <= cut {
				t.Fatalf("size %d cut at %d: need %d, %v", size, cut, need, err)
			}
		}
	}
}

func TestMessageBounds(t *testing.T) {
	var join []byte
	wire, _ := AppendPacket(nil, 0, make([]byte, MaxPayload+5))
	if _, _, err := NextMessage(wire, MaxPayload+4, &join); !errors.Is(err, ErrTooLarge) {
		t.Errorf("over the limit: %v", err)
	}
	// The header alone is enough to refuse.
	if _, _, err := NextMessage([]byte{0xff, 0xff, 0, 0}, 1000, &join); !errors.Is(err, ErrTooLarge) {
		t.Errorf("over the limit by its header: %v", err)
	}
	wire[HeaderLen+MaxPayload+3] = 7
	if _, _, err := NextMessage(wire, 1<<30, &join); !errors.Is(err, ErrSequence) {
		t.Errorf("wrong sequence number: %v", err)
	}
}

func TestLenenc(t *testing.T) {
	for _, v := range []uint64{0, 1, 250, 251, 252, 255, 256, 65535, 65536, 1<<24 - 1, 1 << 24, 1<<64 - 1} {
		b := AppendLenenc(nil, v)
		if got, n := DecodeLenenc(b); got != v || n != len(b) {
			t.Errorf("%d: got %d from %d bytes of % x", v, got, n, b)
		}
		for n := range b {
			if _, used := DecodeLenenc(b[:n]); used != 0 {
				t.Errorf("%d: %d of %d bytes were taken for a whole", v, n, len(b))
			}
		}
	}
	for _, b := range []byte{0xfb, 0xff} {
		if _, n := DecodeLenenc([]byte{b, 0, 0, 0, 0, 0, 0, 0, 0}); n != 0 {
			t.Errorf("%#x is not a length", b)
		}
	}
}
