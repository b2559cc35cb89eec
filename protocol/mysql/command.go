package mysql

// Command is the first byte of what a client sends once it is let in
// ("enum_server_command").
type Command uint8

const (
	ComSleep            Command = 0x00
	ComQuit             Command = 0x01
	ComInitDB           Command = 0x02
	ComQuery            Command = 0x03
	ComFieldList        Command = 0x04
	ComCreateDB         Command = 0x05
	ComDropDB           Command = 0x06
	ComRefresh          Command = 0x07
	ComShutdown         Command = 0x08
	ComStatistics       Command = 0x09
	ComProcessInfo      Command = 0x0a
	ComConnect          Command = 0x0b
	ComProcessKill      Command = 0x0c
	ComDebug            Command = 0x0d
	ComPing             Command = 0x0e
	ComTime             Command = 0x0f
	ComDelayedInsert    Command = 0x10
	ComChangeUser       Command = 0x11
	ComBinlogDump       Command = 0x12
	ComTableDump        Command = 0x13
	ComConnectOut       Command = 0x14
	ComRegisterSlave    Command = 0x15
	ComStmtPrepare      Command = 0x16
	ComStmtExecute      Command = 0x17
	ComStmtSendLongData Command = 0x18
	ComStmtClose        Command = 0x19
	ComStmtReset        Command = 0x1a
	ComSetOption        Command = 0x1b
	ComStmtFetch        Command = 0x1c
	ComDaemon           Command = 0x1d
	ComBinlogDumpGTID   Command = 0x1e
	ComResetConnection  Command = 0x1f
	ComClone            Command = 0x20 // MySQL's
	ComStmtBulkExecute  Command = 0xfa // MariaDB's
)

// Silent says whether the command has no reply.
func (c Command) Silent() bool {
	return c == ComQuit || c == ComStmtClose || c == ComStmtSendLongData
}

// Options of COM_SET_OPTION.
const (
	OptionMultiStatementsOn  = 0
	OptionMultiStatementsOff = 1
)

// DecodeInitDB returns the database named by COM_INIT_DB.
func DecodeInitDB(p []byte) ([]byte, error) {
	if len(p) == 0 || Command(p[0]) != ComInitDB {
		return nil, malformed("COM_INIT_DB")
	}
	return p[1:], nil
}

// DecodeSetOption returns the option of COM_SET_OPTION.
func DecodeSetOption(p []byte) (uint16, error) {
	r := reader{b: p}
	if Command(r.u8()) != ComSetOption {
		return 0, malformed("COM_SET_OPTION")
	}
	option := r.u16()
	return option, r.end("COM_SET_OPTION")
}

// DecodeProcessKill returns the connection that COM_PROCESS_KILL names.
func DecodeProcessKill(p []byte) (uint32, error) {
	r := reader{b: p}
	if Command(r.u8()) != ComProcessKill {
		return 0, malformed("COM_PROCESS_KILL")
	}
	id := r.u32()
	return id, r.end("COM_PROCESS_KILL")
}

// DecodeFieldList returns the table and the column pattern of COM_FIELD_LIST.
func DecodeFieldList(p []byte) (table, wildcard []byte, err error) {
	r := reader{b: p}
	if Command(r.u8()) != ComFieldList {
		return nil, nil, malformed("COM_FIELD_LIST")
	}
	table = r.nulString()
	return table, r.rest(), r.check("COM_FIELD_LIST")
}
