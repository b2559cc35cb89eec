package mysql

const (
	// HeaderLen is the length of a packet's header: 3 bytes of payload
	// length, 1 byte of sequence number.
	HeaderLen = 4
	// MaxPayload is the longest payload of one packet. A payload of exactly
	// this length is continued in the next packet, which may be empty.
	MaxPayload = 1<<24 - 1
)

// Header is a packet's header ("MySQL Packets").
type Header struct {
	Length int // of the payload in this packet, 0 to MaxPayload
	Seq    uint8
}

// DecodeHeader reads the header at the start of b, or ErrIncomplete.
func DecodeHeader(b []byte) (Header, error) {
	if len(b) < HeaderLen {
		return Header{}, ErrIncomplete
	}
	return Header{Length: uint24(b), Seq: b[3]}, nil
}

// AppendHeader appends a packet's header.
func AppendHeader(dst []byte, h Header) []byte {
	return append(dst, byte(h.Length), byte(h.Length>>8), byte(h.Length>>16), h.Seq)
}

// Message is one payload, put together if it came in several packets.
type Message struct {
	Payload []byte
	Seq     uint8 // of the first packet
	LastSeq uint8 // of the last packet; an answer starts one later
}

// NextMessage reads one whole payload at the start of buf and says how many
// bytes of buf it took. The payload lies in buf when one packet held it,
// otherwise in *join, which is overwritten and may grow. Errors: ErrIncomplete
// when more bytes are needed (n is then the number of bytes of buf that are
// needed at least), ErrTooLarge when the payload exceeds limit bytes (LastSeq is
// then the number of the packet that went beyond), ErrSequence when a
// continuation has the wrong number.
func NextMessage(buf []byte, limit int, join *[]byte) (m Message, n int, err error) {
	h, err := DecodeHeader(buf)
	if err != nil {
		return Message{}, HeaderLen, err
	}
	if h.Length > limit {
		return Message{Seq: h.Seq, LastSeq: h.Seq}, 0, ErrTooLarge
	}
	if h.Length < MaxPayload {
		n = HeaderLen + h.Length
		if len(buf) < n {
			return Message{}, n, ErrIncomplete
		}
		return Message{Payload: buf[HeaderLen:n:n], Seq: h.Seq, LastSeq: h.Seq}, n, nil
	}
	return nextContinued(buf, h, limit, join)
}

// nextContinued first measures the whole chain, so that an incomplete one
// copies nothing however often it is looked at.
func nextContinued(buf []byte, first Header, limit int, join *[]byte) (m Message, n int, err error) {
	total, seq := 0, first.Seq
	for h := first; ; {
		total += h.Length
		if total > limit {
			return Message{Seq: first.Seq, LastSeq: seq}, 0, ErrTooLarge
		}
		n += HeaderLen + h.Length
		if len(buf) < n {
			return Message{}, n, ErrIncomplete
		}
		if h.Length < MaxPayload {
			break
		}
		if h, err = DecodeHeader(buf[n:]); err != nil {
			return Message{}, n + HeaderLen, err
		}
		seq++
		if h.Seq != seq {
			return Message{}, 0, ErrSequence
		}
	}
	out := (*join)[:0]
	for at := 0; at < n; {
		h, herr := DecodeHeader(buf[at:])
		if herr != nil {
			return Message{}, 0, herr
		}
		out = append(out, buf[at+HeaderLen:at+HeaderLen+h.Length]...)
		at += HeaderLen + h.Length
	}
	*join = out
	return Message{Payload: out, Seq: first.Seq, LastSeq: seq}, n, nil
}

// AppendPacket appends payload framed, in as many packets as it takes, and
// returns the sequence number that follows.
func AppendPacket(dst []byte, seq uint8, payload []byte) ([]byte, uint8) {
	for {
		n := min(len(payload), MaxPayload)
		dst = AppendHeader(dst, Header{Length: n, Seq: seq})
		dst = append(dst, payload[:n]...)
		payload = payload[n:]
		seq++
		if n < MaxPayload {
			return dst, seq
		}
	}
}

// BeginPacket leaves room for a header; append the payload to what it returns
// and then call EndPacket with the same mark.
func BeginPacket(dst []byte) (out []byte, mark int) {
	return append(dst, 0, 0, 0, 0), len(dst)
}

// EndPacket writes the header of the packet begun at mark and returns the
// sequence number that follows. A payload of MaxPayload or more is split.
func EndPacket(dst []byte, mark int, seq uint8) ([]byte, uint8) {
	n := len(dst) - mark - HeaderLen
	if n >= MaxPayload {
		payload := append([]byte(nil), dst[mark+HeaderLen:]...)
		return AppendPacket(dst[:mark], seq, payload)
	}
	AppendHeader(dst[:mark], Header{Length: n, Seq: seq})
	return dst, seq + 1
}
