package mysql

import "encoding/binary"

// First bytes of generic replies.
const (
	headerOK  = 0x00
	headerEOF = 0xfe
	headerERR = 0xff
)

// OK is the packet that ends a statement well ("OK_Packet"). With
// ClientDeprecateEOF it ends result sets too, with 0xfe as its first byte.
type OK struct {
	AffectedRows uint64
	LastInsertID uint64
	Status       Status
	Warnings     uint16
	Info         []byte // human-readable; may be empty
	State        []byte // raw session-track items; see DecodeStateChanges
	EOF          bool   // first byte 0xfe: the end of a result set
}

// Append appends the payload for a client with these capabilities. State is
// left out, and StatusStateChanged with it, for one without ClientSessionTrack.
func (o *OK) Append(dst []byte, caps Capability) []byte {
	header := byte(headerOK)
	if o.EOF {
		header = headerEOF
	}
	track := caps.Has(ClientSessionTrack)
	status := o.Status &^ StatusStateChanged
	if track && len(o.State) > 0 {
		status |= StatusStateChanged
	}
	dst = AppendLenenc(append(dst, header), o.AffectedRows)
	dst = AppendLenenc(dst, o.LastInsertID)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(status))
	dst = binary.LittleEndian.AppendUint16(dst, o.Warnings)
	// Servers write the text after its length for every client, and write
	// nothing for an empty text unless something follows it.
	if len(o.Info) > 0 || status.Has(StatusStateChanged) {
		dst = AppendLenencString(dst, o.Info)
	}
	if status.Has(StatusStateChanged) {
		dst = AppendLenencString(dst, o.State)
	}
	return dst
}

// DecodeOK reads the payload that a server sent to a client with these
// capabilities; Info and State alias p.
func DecodeOK(p []byte, caps Capability) (OK, error) {
	const what = "OK packet"
	r := reader{b: p}
	header := r.u8()
	o := OK{EOF: header == headerEOF}
	if r.bad || header != headerOK && header != headerEOF {
		return OK{}, malformed(what)
	}
	o.AffectedRows = r.lenenc()
	o.LastInsertID = r.lenenc()
	o.Status = Status(r.u16())
	o.Warnings = r.u16()
	if err := r.check(what); err != nil {
		return OK{}, err
	}
	if caps.Has(ClientSessionTrack) {
		if len(r.b) > 0 {
			o.Info = r.lenencString()
		}
		if o.Status.Has(StatusStateChanged) {
			o.State = r.lenencString()
		}
		return o, r.check(what)
	}
	o.Info = r.rest()
	if n, used := DecodeLenenc(o.Info); used > 0 && n == uint64(len(o.Info)-used) {
		o.Info = o.Info[used:]
	}
	return o, nil
}
