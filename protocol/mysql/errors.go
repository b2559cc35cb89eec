package mysql

import (
	"errors"
	"fmt"
)

var (
	// ErrIncomplete says that the bytes are a proper beginning and more must come.
	ErrIncomplete = errors.New("mysql: packet incomplete")
	// ErrMalformed says that no further bytes could make the packet proper.
	ErrMalformed = errors.New("mysql: malformed packet")
	// ErrTooLarge says that a message is longer than the caller allows.
	ErrTooLarge = errors.New("mysql: message larger than allowed")
	// ErrSequence says that a packet came with the wrong sequence number.
	ErrSequence = errors.New("mysql: packets out of order")
)

func malformed(what string) error { return fmt.Errorf("%w: %s", ErrMalformed, what) }

// Error numbers that a proxy answers by itself ("Server Error Message Reference").
const (
	ErrNumTooManyConnections   = 1040
	ErrNumHandshake            = 1043
	ErrNumDBAccessDenied       = 1044
	ErrNumAccessDenied         = 1045
	ErrNumNoDB                 = 1046
	ErrNumUnknownCommand       = 1047
	ErrNumBadDB                = 1049
	ErrNumServerShutdown       = 1053
	ErrNumParse                = 1064
	ErrNumNoSuchThread         = 1094
	ErrNumKillDenied           = 1095
	ErrNumUnknown              = 1105
	ErrNumPacketTooLarge       = 1153
	ErrNumNetReadError         = 1158
	ErrNumPacketsOutOfOrder    = 1156
	ErrNumReadInterrupted      = 1159
	ErrNumSpecificAccessDenied = 1227
	ErrNumNotSupported         = 1235
	ErrNumUnknownStmtHandler   = 1243
	ErrNumAuthMode             = 1251
	ErrNumQueryInterrupted     = 1317
	ErrNumNoCursor             = 1421
	ErrNumMaxPreparedStmts     = 1461
	ErrNumPluginIsNotLoaded    = 1524
	ErrNumMalformedPacket      = 1835
	ErrNumSecureTransport      = 3159
)

// sqlStates holds the states that differ from the general HY000.
var sqlStates = map[uint16]string{
	ErrNumTooManyConnections:   "08004",
	ErrNumHandshake:            "08S01",
	ErrNumDBAccessDenied:       "42000",
	ErrNumAccessDenied:         "28000",
	ErrNumNoDB:                 "3D000",
	ErrNumUnknownCommand:       "08S01",
	ErrNumBadDB:                "42000",
	ErrNumServerShutdown:       "08S01",
	ErrNumParse:                "42000",
	ErrNumPacketTooLarge:       "08S01",
	ErrNumPacketsOutOfOrder:    "08S01",
	ErrNumNetReadError:         "08S01",
	ErrNumReadInterrupted:      "08S01",
	ErrNumAuthMode:             "08004",
	ErrNumSpecificAccessDenied: "42000",
	ErrNumNotSupported:         "42000",
	ErrNumMaxPreparedStmts:     "42000",
	ErrNumQueryInterrupted:     "70100",
}

// SQLState returns the state that servers send with an error number.
func SQLState(number uint16) string {
	if s, ok := sqlStates[number]; ok {
		return s
	}
	return "HY000"
}

// NewError builds the error packet for a number, with its usual state.
func NewError(number uint16, format string, args ...any) ServerError {
	return ServerError{Number: number, State: SQLState(number), Message: fmt.Sprintf(format, args...)}
}

// AccessDenied is error 1045 in the server's own words.
func AccessDenied(user, host string, usingPassword bool) ServerError {
	using := "NO"
	if usingPassword {
		using = "YES"
	}
	return NewError(ErrNumAccessDenied, "Access denied for user '%s'@'%s' (using password: %s)", user, host, using)
}
