package mysql

// Query is COM_QUERY.
type Query struct {
	// Params is how many query attributes came with the text
	// (ClientQueryAttributes; 0 without).
	Params int
	// Attributes holds their raw bytes, from the count on; nil without.
	Attributes []byte
	Text       []byte
}

// maxAttributes is far above what the servers take (65535 parameters).
const maxAttributes = 1 << 16

// DecodeQuery reads COM_QUERY; everything aliases p.
func DecodeQuery(p []byte, caps Capability) (Query, error) {
	const what = "COM_QUERY"
	if len(p) == 0 || Command(p[0]) != ComQuery {
		return Query{}, malformed(what)
	}
	if !caps.Has(ClientQueryAttributes) {
		return Query{Text: p[1:]}, nil
	}
	r := reader{b: p[1:]}
	n := r.lenenc()
	sets := r.lenenc()
	if r.bad || sets != 1 || n > maxAttributes {
		return Query{}, malformed(what)
	}
	if n > 0 {
		skipAttributes(&r, int(n))
	}
	used := len(p) - 1 - len(r.b)
	q := Query{Params: int(n), Attributes: p[1 : 1+used : 1+used], Text: r.rest()}
	return q, r.check(what)
}

// skipAttributes walks over the NULL bitmap, the types with names, and the
// values.
func skipAttributes(r *reader, n int) {
	nulls := r.take(uint64(n+7) / 8)
	if r.u8() != 1 { // types must come with every query
		r.bad = true
	}
	types := *r
	for range n {
		r.u16()
		r.lenencString()
	}
	for i := range n {
		if r.bad {
			return
		}
		t := FieldType(types.u16())
		types.lenencString()
		if nulls[i/8]&(1<<(i%8)) == 0 {
			binaryValue(r, t)
		}
	}
}

// AppendQuery appends COM_QUERY's payload without attributes.
func AppendQuery(dst []byte, caps Capability, text string) []byte {
	dst = append(dst, byte(ComQuery))
	if caps.Has(ClientQueryAttributes) {
		dst = append(dst, 0, 1)
	}
	return append(dst, text...)
}
