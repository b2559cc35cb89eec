package mysql

// Capability is the set of protocol features that both sides agreed on
// ("Capabilities Flags"). The upper half are MariaDB's extended flags, which
// both sides send where MySQL has zeroes, and only if ClientLongPassword is not
// set (MariaDB: "Connection", "Extended capabilities").
type Capability uint64

const (
	ClientLongPassword Capability = 1 << iota // MariaDB servers clear it: their extended flags follow
	ClientFoundRows
	ClientLongFlag
	ClientConnectWithDB
	ClientNoSchema
	ClientCompress
	ClientODBC
	ClientLocalFiles
	ClientIgnoreSpace
	ClientProtocol41
	ClientInteractive
	ClientSSL
	ClientIgnoreSigpipe
	ClientTransactions
	ClientReserved
	ClientSecureConnection
	ClientMultiStatements
	ClientMultiResults
	ClientPSMultiResults
	ClientPluginAuth
	ClientConnectAttrs
	ClientPluginAuthLenenc
	ClientCanHandleExpiredPasswords
	ClientSessionTrack
	ClientDeprecateEOF
	ClientOptionalResultsetMetadata
	ClientZstdCompression
	ClientQueryAttributes
	ClientMultiFactorAuth
	ClientCapabilityExtension
	ClientSSLVerifyServerCert
	ClientRememberOptions
	MariaDBProgress         // ERR packets with number 0xffff tell how far a statement is
	MariaDBComMulti         // no server has it any more
	MariaDBBulkOperations   // COM_STMT_BULK_EXECUTE
	MariaDBExtendedMetadata // column definitions tell types such as JSON and UUID
	MariaDBCacheMetadata    // definitions that did not change are left out
	MariaDBBulkUnitResults  // COM_STMT_BULK_EXECUTE answers for each row
)

// basic are the flags without MariaDB's, as they are sent.
func (c Capability) basic() uint32 { return uint32(c) }

// extended are MariaDB's flags as they are sent, 0 when they must not be.
func (c Capability) extended() uint32 {
	if c.Has(ClientLongPassword) {
		return 0
	}
	return uint32(c >> 32)
}

// withExtended adds MariaDB's flags as they came, if they are any.
func (c Capability) withExtended(flags uint32) Capability {
	if c.Has(ClientLongPassword) {
		return c
	}
	return c | Capability(flags)<<32
}

// Has says whether every flag of want is set.
func (c Capability) Has(want Capability) bool { return c&want == want }

// Status is the server's state as OK and EOF packets carry it
// ("SERVER_STATUS_flags_enum").
type Status uint16

const (
	StatusInTrans            Status = 1 << 0
	StatusAutocommit         Status = 1 << 1
	StatusMoreResults        Status = 1 << 3
	StatusNoGoodIndex        Status = 1 << 4
	StatusNoIndex            Status = 1 << 5
	StatusCursorExists       Status = 1 << 6
	StatusLastRowSent        Status = 1 << 7
	StatusDBDropped          Status = 1 << 8
	StatusNoBackslashEscapes Status = 1 << 9
	StatusMetadataChanged    Status = 1 << 10
	StatusSlowQuery          Status = 1 << 11
	StatusPSOutParams        Status = 1 << 12
	StatusInTransReadonly    Status = 1 << 13
	StatusStateChanged       Status = 1 << 14
)

// Has says whether every flag of want is set.
func (s Status) Has(want Status) bool { return s&want == want }

// FieldType is the type of a column or a parameter ("field_types.h").
type FieldType uint8

const (
	TypeDecimal    FieldType = 0
	TypeTiny       FieldType = 1
	TypeShort      FieldType = 2
	TypeLong       FieldType = 3
	TypeFloat      FieldType = 4
	TypeDouble     FieldType = 5
	TypeNull       FieldType = 6
	TypeTimestamp  FieldType = 7
	TypeLongLong   FieldType = 8
	TypeInt24      FieldType = 9
	TypeDate       FieldType = 10
	TypeTime       FieldType = 11
	TypeDatetime   FieldType = 12
	TypeYear       FieldType = 13
	TypeNewDate    FieldType = 14
	TypeVarchar    FieldType = 15
	TypeBit        FieldType = 16
	TypeTimestamp2 FieldType = 17
	TypeDatetime2  FieldType = 18
	TypeTime2      FieldType = 19
	TypeVector     FieldType = 242
	TypeBool       FieldType = 244
	TypeJSON       FieldType = 245
	TypeNewDecimal FieldType = 246
	TypeEnum       FieldType = 247
	TypeSet        FieldType = 248
	TypeTinyBlob   FieldType = 249
	TypeMediumBlob FieldType = 250
	TypeLongBlob   FieldType = 251
	TypeBlob       FieldType = 252
	TypeVarString  FieldType = 253
	TypeString     FieldType = 254
	TypeGeometry   FieldType = 255
)

// Column flags ("Column Definition Flags") that this package sets itself.
const (
	FlagNotNull  uint16 = 1
	FlagUnsigned uint16 = 32
	FlagBinary   uint16 = 128
	FlagNumber   uint16 = 32768
)

// Collation ids that a proxy needs by number.
const (
	CollationLatin1Swedish = 8
	CollationUTF8General   = 33
	CollationUTF8MB4       = 45
	CollationBinary        = 63
)
