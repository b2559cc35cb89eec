package load

import (
	"encoding/binary"
	"errors"
)

// framer finds where replies end in a stream of bytes that comes in pieces.
type framer interface {
	// feed says how many replies b completes, and how many of them hold an error.
	feed(b []byte) (done, failed int, err error)
}

var errFraming = errors.New("the server's bytes break the protocol")

// postgresFramer counts ReadyForQuery; an ErrorResponse before it makes the
// reply a failed one.
type postgresFramer struct {
	head [5]byte
	have int // bytes of head
	skip int // bytes of the body still to come
	bad  bool
}

func (f *postgresFramer) feed(b []byte) (done, failed int, err error) {
	for len(b) > 0 {
		if f.have < 5 {
			n := copy(f.head[f.have:], b)
			f.have += n
			b = b[n:]
			if f.have < 5 {
				break
			}
			size := binary.BigEndian.Uint32(f.head[1:])
			if size < 4 || size > 1<<30 {
				return done, failed, errFraming
			}
			f.skip = int(size) - 4
		}
		n := min(f.skip, len(b))
		f.skip -= n
		b = b[n:]
		if f.skip > 0 {
			break
		}
		f.have = 0
		switch f.head[0] {
		case 'E':
			f.bad = true
		case 'Z':
			done++
			if f.bad {
				failed++
			}
			f.bad = false
		}
	}
	return done, failed, nil
}

// mysqlFramer walks packets: OK or ERR ends a reply; a result set is its
// column count, the definitions, an EOF (unless the client deprecated it), rows, and a last
// EOF or OK.
type mysqlFramer struct {
	deprecateEOF bool

	head [5]byte // packet header and first byte of the payload
	have int
	skip int
	// expect is what the next packet is.
	expect  mysqlExpect
	columns int
}

type mysqlExpect uint8

const (
	expectFirst mysqlExpect = iota
	expectColumn
	expectMiddleEOF
	expectRow
)

func (f *mysqlFramer) feed(b []byte) (done, failed int, err error) {
	for len(b) > 0 {
		if f.have < 5 {
			n := copy(f.head[f.have:], b)
			f.have += n
			b = b[n:]
			if f.have < 5 {
				break
			}
			size := int(f.head[0]) | int(f.head[1])<<8 | int(f.head[2])<<16
			if size == 0 || size >= 1<<24-1 {
				return done, failed, errFraming // no reply here is empty or that large
			}
			f.skip = size - 1
		}
		n := min(f.skip, len(b))
		f.skip -= n
		b = b[n:]
		if f.skip > 0 {
			break
		}
		f.have = 0
		ended, bad, err := f.packet(f.head[4], int(f.head[0])|int(f.head[1])<<8|int(f.head[2])<<16)
		if err != nil {
			return done, failed, err
		}
		if ended {
			done++
			f.expect = expectFirst
		}
		if bad {
			failed++
		}
	}
	return done, failed, nil
}

// packet moves on by one packet, of which only the first byte and the size matter.
func (f *mysqlFramer) packet(first byte, size int) (ended, bad bool, err error) {
	if first == 0xff && f.expect != expectColumn {
		return true, true, nil
	}
	switch f.expect {
	case expectFirst:
		if first == 0x00 {
			return true, false, nil
		}
		if first >= 0xfb || size != 1 {
			return false, false, errFraming
		}
		f.columns, f.expect = int(first), expectColumn
	case expectColumn:
		if f.columns--; f.columns == 0 {
			f.expect = expectMiddleEOF
			if f.deprecateEOF {
				f.expect = expectRow
			}
		}
	case expectMiddleEOF:
		if first != 0xfe {
			return false, false, errFraming
		}
		f.expect = expectRow
	case expectRow:
		// A packet this short that begins with 0xfe is no row: that byte would
		// announce a string of 16 MiB or more.
		return first == 0xfe, false, nil
	}
	return false, false, nil
}
