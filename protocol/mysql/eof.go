package mysql

import "encoding/binary"

// EOF ends column definitions and rows for clients without ClientDeprecateEOF
// ("EOF_Packet").
type EOF struct {
	Warnings uint16
	Status   Status
}

// eofMaxLen is the length below which a payload that starts with 0xfe is an
// EOF and not a row.
const eofMaxLen = 9

// Append appends the payload.
func (e *EOF) Append(dst []byte) []byte {
	dst = append(dst, headerEOF)
	dst = binary.LittleEndian.AppendUint16(dst, e.Warnings)
	return binary.LittleEndian.AppendUint16(dst, uint16(e.Status))
}

// DecodeEOF reads the payload.
func DecodeEOF(p []byte) (EOF, error) {
	const what = "EOF packet"
	r := reader{b: p}
	if r.u8() != headerEOF {
		return EOF{}, malformed(what)
	}
	e := EOF{Warnings: r.u16(), Status: Status(r.u16())}
	return e, r.end(what)
}

// AppendResultEnd appends the payload that ends a result set for a client with
// these capabilities: an EOF, or an OK that looks like one.
func AppendResultEnd(dst []byte, caps Capability, status Status, warnings uint16) []byte {
	if caps.Has(ClientDeprecateEOF) {
		ok := OK{EOF: true, Status: status, Warnings: warnings}
		return ok.Append(dst, caps)
	}
	eof := EOF{Warnings: warnings, Status: status}
	return eof.Append(dst)
}
