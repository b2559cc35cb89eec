package mysql

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// executePayload builds COM_STMT_EXECUTE and what it should be read as.
func executePayload(r *rand.Rand, named bool) (p []byte, want []Param, types []byte) {
	n := r.IntN(20)
	p = AppendStatementCommand(nil, ComStmtExecute, r.Uint32())
	if named {
		p = append(p, ParameterCountAvailable, 1, 0, 0, 0)
		p = AppendLenenc(p, uint64(n))
	} else {
		p = append(p, 0, 1, 0, 0, 0)
	}
	if n == 0 {
		return p, nil, nil
	}
	nulls := make([]byte, (n+7)/8)
	var sent, values []byte
	kinds := []FieldType{TypeTiny, TypeShort, TypeLong, TypeLongLong, TypeFloat, TypeDouble, TypeVarString, TypeBlob,
		TypeDate, TypeDatetime, TypeTime, TypeNewDecimal, TypeYear, TypeInt24, TypeNull, TypeJSON, TypeBool}
	for i := range n {
		prm := Param{Type: uint16(kinds[r.IntN(len(kinds))])}
		if r.IntN(2) == 0 {
			prm.Type |= ParamUnsigned
		}
		switch FieldType(prm.Type) {
		case TypeNull:
			prm.Null = true
		case TypeTiny, TypeBool:
			prm.Data = blob(r, 1)
		case TypeShort, TypeYear:
			prm.Data = blob(r, 2)
		case TypeLong, TypeInt24, TypeFloat:
			prm.Data = blob(r, 4)
		case TypeLongLong, TypeDouble:
			prm.Data = blob(r, 8)
		case TypeDate, TypeDatetime, TypeTime:
			prm.Data = blob(r, r.IntN(13))
			values = append(values, byte(len(prm.Data)))
		default:
			prm.Data = blob(r, r.IntN(600))
			values = AppendLenenc(values, uint64(len(prm.Data)))
		}
		values = append(values, prm.Data...)
		if FieldType(prm.Type) == TypeNull || r.IntN(4) == 0 && len(prm.Data) == 0 {
			nulls[i/8] |= 1 << (i % 8)
			if FieldType(prm.Type) != TypeNull {
				values = values[:len(values)-1]
			}
			prm.Null, prm.Data = true, nil
		}
		types = binary.LittleEndian.AppendUint16(types, prm.Type)
		sent = binary.LittleEndian.AppendUint16(sent, prm.Type)
		if named {
			sent = AppendLenencString(sent, text(r, 5))
		}
		want = append(want, prm)
	}
	p = append(append(p, nulls...), 1)
	return append(append(p, sent...), values...), want, types
}

func TestExecuteParams(t *testing.T) {
	r := seeded(t)
	for i := range 2000 {
		named := i%2 == 0
		caps := ClientProtocol41
		if named {
			caps |= ClientQueryAttributes
		}
		p, want, types := executePayload(r, named)
		e, err := DecodeExecute(p, caps, len(want))
		if err != nil {
			t.Fatal(err)
		}
		if got := e.AppendTypes(nil); !bytes.Equal(got, types) {
			t.Fatalf("types % x, want % x", got, types)
		}
		got, err := e.Params(nil, types)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%v, %v", got, err)
		}
		for j := range got {
			if got[j].Null != want[j].Null || got[j].Type != want[j].Type || !bytes.Equal(got[j].Data, want[j].Data) {
				t.Fatalf("parameter %d: %+v, want %+v", j, got[j], want[j])
			}
		}
		for n := range p {
			if e, err := DecodeExecute(p[:n:n], caps, len(want)); err == nil {
				if _, err := e.Params(nil, types); err == nil && len(want) > 0 {
					t.Fatalf("%d of %d bytes were taken for a whole", n, len(p))
				}
			}
		}
	}
}

// Types are sent once: a later execution carries none and is read by the old.
func TestExecuteWithEarlierTypes(t *testing.T) {
	p := append(AppendStatementCommand(nil, ComStmtExecute, 1), 0, 1, 0, 0, 0, 0b10, 0, 9)
	e, err := DecodeExecute(p, 0, 2)
	if err != nil || e.NewTypes {
		t.Fatalf("%+v, %v", e, err)
	}
	params, err := e.Params(nil, []byte{byte(TypeTiny), 0, byte(TypeVarString), 0})
	if err != nil || params[0].Data[0] != 9 || !params[1].Null {
		t.Fatalf("%+v, %v", params, err)
	}
	if _, err := e.Params(nil, nil); err == nil {
		t.Error("values without types were read")
	}
}

func TestQueryAttributes(t *testing.T) {
	p := []byte{byte(ComQuery), 2, 1, 0b10, 1, byte(TypeLong), 0, 1, 'a', byte(TypeString), 0, 1, 'b', 5, 0, 0, 0}
	p = append(p, "SELECT 1"...)
	q, err := DecodeQuery(p, ClientQueryAttributes)
	if err != nil || q.Params != 2 || string(q.Text) != "SELECT 1" {
		t.Fatalf("%+v, %v", q, err)
	}
	for n := range len(p) - len("SELECT 1") {
		if _, err := DecodeQuery(p[:n], ClientQueryAttributes); err == nil {
			t.Errorf("%d bytes were taken for a whole", n)
		}
	}
	q, err = DecodeQuery(AppendQuery(nil, ClientQueryAttributes, "x"), ClientQueryAttributes)
	if err != nil || q.Params != 0 || string(q.Text) != "x" {
		t.Errorf("%+v, %v", q, err)
	}
}
