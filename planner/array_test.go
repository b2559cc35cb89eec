package planner

import (
	"encoding/binary"
	"strings"
	"testing"

	"freshet/cache/canon"
)

// TestArrayParameters gives `= ANY ($1)` the keys of the array's elements, or
// the whole table.
func TestArrayParameters(t *testing.T) {
	p, f, _ := recorded(t, 1)
	be := binary.BigEndian
	array := func(oid uint32, sizes int, elements ...string) []byte {
		b := be.AppendUint32(be.AppendUint32(be.AppendUint32(nil, 1), 0), oid)
		b = be.AppendUint32(be.AppendUint32(b, uint32(len(elements))), 1)
		for _, e := range elements {
			b = append(be.AppendUint32(b, uint32(len(e))), e...)
		}
		return b[:len(b)-sizes]
	}
	four, five := string(be.AppendUint32(nil, 4)), string(be.AppendUint32(nil, 5))
	byID := "SELECT id FROM users WHERE id = ANY ($1)"
	for _, c := range []struct {
		text     string
		declared []uint32
		param    Param
		keys     int // 0 for none
	}{
		{byID, nil, Param{Data: []byte("{4,5}")}, 2},
		{byID, nil, Param{Data: []byte(`{4,"5",NULL,null}`)}, 2},
		{byID, nil, Param{Data: []byte("{4,4}")}, 1},
		{byID, nil, Param{Data: []byte("{}")}, 0},
		{byID, nil, Param{Data: []byte("{NULL}")}, 0},
		{byID, nil, Param{Data: []byte("{4, 5}")}, 0},
		{byID, nil, Param{Data: []byte("{{4},{5}}")}, 0},
		{byID, nil, Param{Data: []byte("[0:1]={4,5}")}, 0},
		{byID, nil, Param{Data: []byte("{4,5")}, 0},
		{byID, nil, Param{Data: []byte("{4,}")}, 0},
		{byID, nil, Param{Data: []byte(`{"4}`)}, 0},
		{byID, nil, Param{Data: []byte(`{4.0}`)}, 0},
		{byID, nil, Param{Null: true}, 0},
		{byID, nil, Param{Data: []byte("{" + strings.Repeat("1,", 70) + "2}")}, 0},
		{byID, nil, Param{Binary: true, Data: array(canon.OIDInt4, 0, four, five)}, 2},
		{byID, []uint32{1007}, Param{Binary: true, Type: 1007, Data: array(canon.OIDInt4, 0, four, five)}, 2},
		{byID, []uint32{1016}, Param{Binary: true, Type: 1016, Data: array(canon.OIDInt4, 0, four, five)}, 0},
		{byID, []uint32{1022}, Param{Data: []byte("{4,5}")}, 0},
		{byID, nil, Param{Binary: true, Data: array(canon.OIDInt4, 1, four, five)}, 0},
		{byID, nil, Param{Binary: true, Data: array(canon.OIDInt4, 9, four, five)}, 0},
		{byID, nil, Param{Binary: true, Data: []byte{0, 0, 0, 1}}, 0},
		{"SELECT id FROM users WHERE id = ANY ($1::bigint[])", nil, Param{Data: []byte("{4,5}")}, 2},
		{"SELECT id FROM users WHERE id = ANY ($1::text[])", nil, Param{Data: []byte("{4,5}")}, 0},
		{"SELECT id FROM users WHERE name = ANY ($1)", nil, Param{Data: []byte(`{"a\"b",c d,x}`)}, 0},
		{"SELECT id FROM users WHERE name = ANY ($1)", nil, Param{Data: []byte(`{"a\"b","c d",now}`)}, 3},
		{"SELECT id FROM users WHERE name = ANY ($1)", nil, Param{Data: []byte(`{"` + strings.Repeat("x", 200) + `"}`)}, 0},
		{"SELECT id FROM users WHERE name = ANY ($1)", nil, Param{Data: []byte(`{` + strings.Repeat("x", 200) + `}`)}, 1},
		{"SELECT id FROM users WHERE id = ALL ($1)", nil, Param{Data: []byte("{4,5}")}, 0},
		{"SELECT id FROM users WHERE id <> ANY ($1)", nil, Param{Data: []byte("{4,5}")}, 0},
	} {
		plan := planned(t, p, dialects[1].scope, c.text, c.declared)
		deps, _, ok := plan.Deps(nil, []Param{c.param})
		got := f.describe(deps)
		if !ok || strings.Contains(got, "(") != (c.keys > 0) || c.keys > 0 && len(deps) != c.keys+1 {
			t.Errorf("%s with %q: %s, %v; want %d keys", c.text, c.param.Data, got, ok, c.keys)
		}
	}
	for _, date := range []string{"{2024-01-01,today}", "{" + strings.Repeat("2024-01-01,", 20) + "now}"} {
		if _, _, ok := planned(t, p, dialects[1].scope, "SELECT id FROM users WHERE born = ANY ($1)", nil).Deps(nil, []Param{{Data: []byte(date)}}); ok {
			t.Errorf("%s is kept", date)
		}
	}
}
