package mysql

import "encoding/binary"

// Values of the byte that says whether column definitions follow
// (ClientOptionalResultsetMetadata).
const (
	metadataNone = 0
	metadataFull = 1
)

// PrepareOK is the first packet of COM_STMT_PREPARE's reply
// ("COM_STMT_PREPARE_OK").
type PrepareOK struct {
	StatementID uint32
	Columns     uint16
	Params      uint16
	Warnings    uint16
	// NoMetadata: no definitions follow (ClientOptionalResultsetMetadata).
	NoMetadata bool
}

// Append appends the payload.
func (o *PrepareOK) Append(dst []byte, caps Capability) []byte {
	dst = binary.LittleEndian.AppendUint32(append(dst, headerOK), o.StatementID)
	dst = binary.LittleEndian.AppendUint16(dst, o.Columns)
	dst = binary.LittleEndian.AppendUint16(dst, o.Params)
	dst = append(dst, 0)
	dst = binary.LittleEndian.AppendUint16(dst, o.Warnings)
	if caps.Has(ClientOptionalResultsetMetadata) {
		if o.NoMetadata {
			return append(dst, metadataNone)
		}
		return append(dst, metadataFull)
	}
	return dst
}

// DecodePrepareOK reads the payload.
func DecodePrepareOK(p []byte, caps Capability) (PrepareOK, error) {
	const what = "COM_STMT_PREPARE_OK"
	r := reader{b: p}
	header := r.u8()
	o := PrepareOK{StatementID: r.u32(), Columns: r.u16(), Params: r.u16()}
	if r.bad || header != headerOK {
		return PrepareOK{}, malformed(what)
	}
	r.take(1)
	o.Warnings = r.u16()
	if caps.Has(ClientOptionalResultsetMetadata) {
		o.NoMetadata = r.u8() == metadataNone
	}
	return o, r.check(what)
}
