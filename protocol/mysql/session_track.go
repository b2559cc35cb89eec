package mysql

// TrackKind is the kind of a session-track item ("enum_session_state_type").
type TrackKind uint8

const (
	TrackSystemVariables            TrackKind = 0
	TrackSchema                     TrackKind = 1
	TrackStateChange                TrackKind = 2
	TrackGTIDs                      TrackKind = 3
	TrackTransactionCharacteristics TrackKind = 4
	TrackTransactionState           TrackKind = 5
)

// StateChange is one change of the session that an OK packet told of.
type StateChange struct {
	Kind TrackKind
	// Name and Value: of the variable (TrackSystemVariables), the new default
	// database (TrackSchema, Value), "1" (TrackStateChange, Value), the GTIDs
	// (TrackGTIDs, Value), the transaction's characteristics or state (Value).
	Name, Value []byte
	// Raw is the item's content as it came; an unknown kind has nothing else.
	Raw []byte
}

// DecodeStateChanges appends the items of OK.State to dst; they alias data.
func DecodeStateChanges(dst []StateChange, data []byte) ([]StateChange, error) {
	r := reader{b: data}
	for len(r.b) > 0 && !r.bad {
		kind, raw := TrackKind(r.u8()), r.lenencString()
		if r.bad {
			break
		}
		var err error
		if dst, err = appendChange(dst, kind, raw); err != nil {
			return dst, err
		}
	}
	return dst, r.end("session track data")
}

// appendChange reads one item. MariaDB may put several variables into one.
func appendChange(dst []StateChange, kind TrackKind, raw []byte) ([]StateChange, error) {
	const what = "session track item"
	r := reader{b: raw}
	switch kind {
	case TrackSystemVariables:
		for {
			c := StateChange{Kind: kind, Name: r.lenencString(), Value: r.lenencString(), Raw: raw}
			if r.bad {
				return dst, malformed(what)
			}
			dst = append(dst, c)
			if len(r.b) == 0 {
				return dst, nil
			}
		}
	case TrackGTIDs:
		r.take(1) // encoding specification, always 0
		fallthrough
	case TrackSchema, TrackTransactionCharacteristics, TrackTransactionState:
		c := StateChange{Kind: kind, Value: r.lenencString(), Raw: raw}
		if err := r.end(what); err != nil {
			return dst, err
		}
		return append(dst, c), nil
	case TrackStateChange: // the manual shows a length; servers send the bare digit
		return append(dst, StateChange{Kind: kind, Value: raw, Raw: raw}), nil
	}
	return append(dst, StateChange{Kind: kind, Raw: raw}), nil
}

// AppendStateChange appends one item as OK.State holds it.
func AppendStateChange(dst []byte, c StateChange) []byte {
	var body []byte
	switch c.Kind {
	case TrackSystemVariables:
		body = AppendLenencString(AppendLenencString(nil, c.Name), c.Value)
	case TrackStateChange:
		body = c.Value
	case TrackSchema, TrackTransactionCharacteristics, TrackTransactionState:
		body = AppendLenencString(nil, c.Value)
	case TrackGTIDs:
		body = AppendLenencString([]byte{0}, c.Value)
	default:
		body = c.Raw
	}
	return AppendLenencString(append(dst, byte(c.Kind)), body)
}
