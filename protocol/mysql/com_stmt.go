package mysql

import "encoding/binary"

// DecodePrepare returns the text of COM_STMT_PREPARE.
func DecodePrepare(p []byte) ([]byte, error) {
	if len(p) == 0 || Command(p[0]) != ComStmtPrepare {
		return nil, malformed("COM_STMT_PREPARE")
	}
	return p[1:], nil
}

// DecodeStatementID returns the statement that COM_STMT_CLOSE, _RESET,
// _FETCH, _EXECUTE or _SEND_LONG_DATA names.
func DecodeStatementID(p []byte) (uint32, error) {
	if len(p) < 5 {
		return 0, malformed("statement id")
	}
	return binary.LittleEndian.Uint32(p[1:]), nil
}

// PutStatementID overwrites the statement id of one of those payloads, which
// has at least 5 bytes.
func PutStatementID(p []byte, id uint32) { binary.LittleEndian.PutUint32(p[1:], id) }

// AppendStatementCommand appends a payload that is a command and a statement
// id: COM_STMT_CLOSE, COM_STMT_RESET.
func AppendStatementCommand(dst []byte, c Command, id uint32) []byte {
	return binary.LittleEndian.AppendUint32(append(dst, byte(c)), id)
}

// Fetch is COM_STMT_FETCH.
type Fetch struct{ StatementID, Rows uint32 }

// DecodeFetch reads COM_STMT_FETCH.
func DecodeFetch(p []byte) (Fetch, error) {
	r := reader{b: p}
	if Command(r.u8()) != ComStmtFetch {
		return Fetch{}, malformed("COM_STMT_FETCH")
	}
	f := Fetch{StatementID: r.u32(), Rows: r.u32()}
	return f, r.end("COM_STMT_FETCH")
}

// LongData is COM_STMT_SEND_LONG_DATA.
type LongData struct {
	StatementID uint32
	Param       uint16
	Data        []byte
}

// DecodeLongData reads COM_STMT_SEND_LONG_DATA.
func DecodeLongData(p []byte) (LongData, error) {
	r := reader{b: p}
	if Command(r.u8()) != ComStmtSendLongData {
		return LongData{}, malformed("COM_STMT_SEND_LONG_DATA")
	}
	l := LongData{StatementID: r.u32(), Param: r.u16(), Data: r.rest()}
	return l, r.check("COM_STMT_SEND_LONG_DATA")
}
