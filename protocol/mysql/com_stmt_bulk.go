package mysql

import "encoding/binary"

// BulkTypes is the flag of COM_STMT_BULK_EXECUTE that says that the parameters'
// types came along.
const BulkTypes uint16 = 128

// BulkExecute is MariaDB's COM_STMT_BULK_EXECUTE, located in place: one
// statement with many rows of parameters (MariaDB: "COM_STMT_BULK_EXECUTE").
type BulkExecute struct {
	StatementID uint32
	Flags       uint16
	Types       []byte // 2 bytes a parameter; nil without BulkTypes
	Rows        []byte // raw
}

// DecodeBulkExecute reads the command for a statement with numParams
// parameters. Everything aliases p; the rows are not looked at.
func DecodeBulkExecute(p []byte, numParams int) (BulkExecute, error) {
	const what = "COM_STMT_BULK_EXECUTE"
	r := reader{b: p}
	if Command(r.u8()) != ComStmtBulkExecute {
		return BulkExecute{}, malformed(what)
	}
	b := BulkExecute{StatementID: r.u32(), Flags: r.u16()}
	if b.Flags&BulkTypes != 0 {
		b.Types = r.take(2 * uint64(numParams))
	}
	b.Rows = r.rest()
	return b, r.check(what)
}

// Append appends the payload; Types are sent if there are any.
func (b *BulkExecute) Append(dst []byte) []byte {
	flags := b.Flags &^ BulkTypes
	if len(b.Types) > 0 {
		flags |= BulkTypes
	}
	dst = binary.LittleEndian.AppendUint32(append(dst, byte(ComStmtBulkExecute)), b.StatementID)
	dst = binary.LittleEndian.AppendUint16(dst, flags)
	return append(append(dst, b.Types...), b.Rows...)
}
