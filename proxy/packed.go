package proxy

// Packing is how a protocol packs what goes over a client's line, within TLS:
// MySQL's compression. It belongs to the session's loop.
type Packing interface {
	// Pack appends plain, packed, to dst.
	Pack(dst, plain []byte) []byte
	// Unpack appends to dst what the first unit of in holds. used is the unit's
	// length, 0 while it has not come whole. An error is the end of the session.
	Unpack(dst, in []byte) (plain []byte, used int, err error)
}

// packed is a client's socket whose bytes are packed. Units are unpacked one by
// one and only while the session takes what is in them: a few bytes may stand
// for megabytes, so what cannot be used yet waits packed.
type packed struct {
	Packing
	session *Session
	sock    *Socket
	in      []byte // come and not yet unpacked
}

// Pack has the client's bytes packed, both ways, from here on: behind what was
// written, and what Data consumed.
func (s *Session) Pack(p Packing) {
	c := s.client
	c.push()
	c.packed = &packed{Packing: p, session: s, sock: c, in: c.held}
	c.held = nil
}

// take takes packed bytes.
func (p *packed) take(in []byte) {
	s := p.sock
	p.in = append(p.in, in...)
	if len(s.held) > 0 {
		s.offer(nil)
	}
	taken := 0
	for !p.session.Blocked && !s.done && !s.closing {
		n, err := p.unit(p.in[taken:])
		if err != nil {
			p.session.Malformed()
			s.loop.post(func() { s.fail(err) })
			p.in = nil
			return
		}
		if n == 0 {
			break
		}
		taken += n
	}
	p.in = append(p.in[:0], p.in[taken:]...)
	if len(p.in) == 0 && cap(p.in) > lowWater {
		p.in = nil
	}
}

// unit offers what one unit holds. The answers to what came before are packed
// first: units are numbered within a command.
func (p *packed) unit(in []byte) (used int, err error) {
	s := p.sock
	if len(s.out) > 0 {
		s.push()
	}
	plain, used, err := p.Unpack(s.loop.unpacked[:0], in)
	if s.loop.unpacked = plain; cap(plain) > maxScratch {
		s.loop.unpacked = nil
	}
	if err == nil && len(plain) > 0 {
		s.offer(plain)
	}
	return used, err
}

// seal packs what is written, in the loop's scratch space, where it stays until
// seal is called again.
func (p *packed) seal(plain []byte) []byte {
	if len(plain) == 0 {
		return nil
	}
	l := p.sock.loop
	out := p.Pack(l.packed[:0], plain)
	if l.packed = out; cap(out) > maxScratch {
		l.packed = nil
	}
	return out
}
