// Package binlog decodes the binary log of MySQL and MariaDB from bytes: no
// sockets, no goroutines, no state but what the caller passes in. Every length
// is checked, whatever is decoded stays a slice of the event it came from, and
// row images are walked without being turned into values.
//
// The formats are those of the MySQL manual, "Binlog Event" pages of the
// source documentation (page_protocol_replication), and of MariaDB's knowledge
// base, "Replication Protocol".
package binlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"freshet/cache/feed/cursor"
)

// HeaderSize is the length of the common header, in bytes.
const HeaderSize = 19

// Type is an event's type code.
type Type byte

// The events this package or its caller knows (binlog_event.h, and MariaDB's
// log_event.h from 160 on).
const (
	StopEvent              Type = 3
	RotateEvent            Type = 4
	IntVarEvent            Type = 5
	AppendBlockEvent       Type = 9
	DeleteFileEvent        Type = 11
	QueryEvent             Type = 2
	RandEvent              Type = 13
	UserVarEvent           Type = 14
	FormatEvent            Type = 15
	XIDEvent               Type = 16
	BeginLoadEvent         Type = 17
	ExecuteLoadEvent       Type = 18
	TableMapEvent          Type = 19
	WriteRowsV1            Type = 23
	UpdateRowsV1           Type = 24
	DeleteRowsV1           Type = 25
	IncidentEvent          Type = 26
	HeartbeatEvent         Type = 27
	IgnorableEvent         Type = 28
	RowsQueryEvent         Type = 29
	WriteRowsV2            Type = 30
	UpdateRowsV2           Type = 31
	DeleteRowsV2           Type = 32
	GTIDEvent              Type = 33
	AnonymousGTIDEvent     Type = 34
	PreviousGTIDsEvent     Type = 35
	TransactionContext     Type = 36
	ViewChangeEvent        Type = 37
	XAPrepareEvent         Type = 38
	PartialUpdateRowsEvent Type = 39
	PayloadEvent           Type = 40
	HeartbeatV2Event       Type = 41
	TaggedGTIDEvent        Type = 42

	MariaAnnotateEvent        Type = 160
	MariaCheckpointEvent      Type = 161
	MariaGTIDEvent            Type = 162
	MariaGTIDListEvent        Type = 163
	MariaEncryptionEvent      Type = 164
	MariaQueryCompressedEvent Type = 165
	MariaWriteCompressedV1    Type = 166
	MariaUpdateCompressedV1   Type = 167
	MariaDeleteCompressedV1   Type = 168
	MariaWriteCompressedV2    Type = 169
	MariaUpdateCompressedV2   Type = 170
	MariaDeleteCompressedV2   Type = 171
)

// Flags of the common header that change what an event means.
const (
	FlagArtificial uint16 = 0x20 // made up by the sender, not in the log
	FlagIgnorable  uint16 = 0x80 // a reader that does not know it may skip it
)

// Header is the common header of every event.
type Header struct {
	Timestamp uint32 // seconds since 1970
	Type      Type
	ServerID  uint32
	Size      uint32 // of the whole event, header and checksum included
	// End is where the next event starts in the file; 0 for events without a
	// place of their own and for those MariaDB 11.4 and later copy from the
	// transaction's cache.
	End   uint32
	Flags uint16
}

// Event is one event: its header and its body without the checksum.
type Event struct {
	Header
	Body []byte
}

// Parse splits an event. checksum says that the last four bytes are its CRC32,
// which is then verified (a format description event says it of itself, see
// ParseFormat).
func Parse(data []byte, checksum bool) (Event, error) {
	var e Event
	if len(data) < HeaderSize {
		return e, cursor.ErrShort
	}
	e.Timestamp = binary.LittleEndian.Uint32(data)
	e.Type = Type(data[4])
	e.ServerID = binary.LittleEndian.Uint32(data[5:])
	e.Size = binary.LittleEndian.Uint32(data[9:])
	e.End = binary.LittleEndian.Uint32(data[13:])
	e.Flags = binary.LittleEndian.Uint16(data[17:])
	if uint64(e.Size) != uint64(len(data)) {
		return e, fmt.Errorf("binlog: event of type %d says %d bytes and has %d", e.Type, e.Size, len(data))
	}
	e.Body = data[HeaderSize:]
	if !checksum {
		return e, nil
	}
	if len(e.Body) < 4 {
		return e, cursor.ErrShort
	}
	split := len(data) - 4
	if crc32.ChecksumIEEE(data[:split]) != binary.LittleEndian.Uint32(data[split:]) {
		return e, fmt.Errorf("binlog: checksum of event of type %d ending at %d is wrong", e.Type, e.End)
	}
	e.Body = data[HeaderSize:split]
	return e, nil
}

// Format is what a format description event says of the events after it.
type Format struct {
	Server   string
	Checksum bool // CRC32 after every event
	lengths  []byte
}

// checksumTail is the algorithm byte and the event's own checksum, which every
// server since MySQL 5.6.1 and MariaDB 5.3 writes, whether checksums are on or not.
const checksumTail = 5

// ParseFormat decodes a format description event; body still has the checksum.
func ParseFormat(body []byte) (Format, error) {
	c := cursor.Cursor{Data: body}
	version := c.Little16()
	server := c.Take(50)
	c.Take(4) // when the log was made
	headerSize := c.U8()
	lengths := c.Rest()
	if c.Err != nil || len(lengths) < checksumTail {
		return Format{}, cursor.ErrShort
	}
	if version != 4 || headerSize != HeaderSize {
		return Format{}, fmt.Errorf("binlog: log format %d with headers of %d bytes is not known", version, headerSize)
	}
	algorithm := lengths[len(lengths)-checksumTail]
	if algorithm > 1 {
		return Format{}, fmt.Errorf("binlog: checksum algorithm %d is not known", algorithm)
	}
	f := Format{Checksum: algorithm == 1, lengths: append([]byte(nil), lengths[:len(lengths)-checksumTail]...)}
	for i, b := range server {
		if b == 0 {
			server = server[:i]
			break
		}
	}
	f.Server = string(server)
	return f, nil
}

// postHeader returns the length of the fixed part of an event type's body.
func (f *Format) postHeader(t Type) int {
	if i := int(t) - 1; i >= 0 && i < len(f.lengths) {
		return int(f.lengths[i])
	}
	return 0
}

// Rotate is a rotate event: the file and the offset that follow.
type Rotate struct {
	Position uint64
	File     string
}

// ParseRotate decodes a rotate event.
func ParseRotate(body []byte) (Rotate, error) {
	c := cursor.Cursor{Data: body}
	r := Rotate{Position: c.Little64()}
	r.File = string(c.Rest())
	if c.Err != nil || r.File == "" {
		return Rotate{}, cursor.ErrShort
	}
	return r, nil
}

// ParseCut splits an event of which only the beginning is there. Its checksum
// is not, so it is not verified.
func ParseCut(data []byte) (Event, error) {
	if len(data) < HeaderSize {
		return Event{}, cursor.ErrShort
	}
	copied := [HeaderSize]byte(data)
	binary.LittleEndian.PutUint32(copied[9:], HeaderSize)
	e, err := Parse(copied[:], false)
	if err != nil {
		return Event{}, err
	}
	e.Size = binary.LittleEndian.Uint32(data[9:])
	e.Body = data[HeaderSize:]
	return e, nil
}
