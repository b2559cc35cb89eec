package mysql

// Event says what one packet of a reply is.
type Event uint8

const (
	EventContinued   Event = iota + 1 // more of the payload that the packet before began
	EventColumnCount                  // a result set begins
	EventColumn                       // a column's definition
	EventParam                        // a parameter's definition (COM_STMT_PREPARE)
	EventMetadataEOF                  // the EOF between definitions and what follows
	EventRow
	EventEnd         // EOF or OK: a result set is over
	EventOK          // a statement without a result set is over
	EventError       // ERR: the whole reply is over
	EventLocalInfile // the server asks for the client's file; the reply goes on after it
	EventPrepareOK   // COM_STMT_PREPARE's first packet
	EventText        // COM_STATISTICS' answer
	EventProgress    // how far the statement is (MariaDBProgress); the reply goes on
)

// trackState is what the next packet may be.
type trackState uint8

const (
	trackDone    trackState = iota
	trackFirst              // first packet of a statement's reply
	trackPlain              // one OK, EOF or ERR
	trackText               // one packet of text
	trackPrepare            // PREPARE_OK or ERR
	trackParams             // parameter definitions, then their EOF
	trackColumns            // column definitions, then their EOF
	trackRows               // rows, then their end
	trackList               // COM_FIELD_LIST: definitions until their end
)

// Tracker follows one reply, packet by packet. It keeps nothing of the bytes
// it is shown beyond the call, but for OK.Info and OK.State of Last, which
// alias the packet that ended a result.
type Tracker struct {
	cmd   Command
	caps  Capability
	state trackState
	more  bool // the packet before was of MaxPayload: this one continues it
	seq   uint8
	left  uint64 // definitions still to come before their EOF
	// outParams: the EOF after the definitions said that the row holds a
	// procedure's OUT parameters. The EOF after the row then does not say that
	// an OK follows, which it does (seen on MySQL 9.7).
	outParams bool

	// Last is the OK or EOF (as an OK) that ended the last result; Error the
	// ERR that ended the reply, when Failed.
	Last   OK
	Error  ServerError
	Failed bool
	// Prepared is COM_STMT_PREPARE's answer.
	Prepared PrepareOK
	// Results counts the results that are over, Columns is the column count
	// of the current result set (0 for an OK), Rows counts its rows.
	Results int
	Columns uint64
	Rows    uint64
	// Warned says that some result had warnings.
	Warned bool
}

// Begin starts on the reply to a command that has one. caps are those of the
// connection that the reply comes from; seq is the sequence number of the
// reply's first packet.
func (t *Tracker) Begin(cmd Command, caps Capability, seq uint8) {
	*t = Tracker{cmd: cmd, caps: caps, seq: seq}
	switch cmd {
	case ComQuery, ComStmtExecute, ComProcessInfo:
		t.state = trackFirst
	case ComStmtPrepare:
		t.state = trackPrepare
	case ComStmtFetch:
		t.state = trackRows
	case ComFieldList:
		t.state = trackList
	case ComStatistics:
		t.state = trackText
	default:
		t.state = trackPlain
	}
}

// Done says whether the reply is over.
func (t *Tracker) Done() bool { return t.state == trackDone && !t.more }

// More says, after EventEnd or EventOK, whether another result follows.
func (t *Tracker) More() bool { return t.Last.Status.Has(StatusMoreResults) }

// Want says how many bytes of the payload Packet must be shown of a packet
// whose payload starts with first (anything for an empty one): all of the
// packets that end something or say how it goes on, one byte of rows and
// definitions, none of a continuation.
func (t *Tracker) Want(h Header, first byte) int {
	if t.more || h.Length == 0 {
		return 0
	}
	switch t.state {
	case trackRows:
		if first == headerERR || t.isEnd(h, first) {
			return h.Length
		}
		return 1
	case trackParams, trackColumns, trackList:
		if first == headerERR || first == headerEOF {
			return h.Length
		}
		return 1
	case trackText, trackDone:
		return 1
	}
	return h.Length
}

// isEnd tells the packet that ends rows from a row. A row may start with 0xfe
// too (a first cell of 16 MiB and more), but is then longer.
func (t *Tracker) isEnd(h Header, first byte) bool {
	if first != headerEOF {
		return false
	}
	if t.caps.Has(ClientDeprecateEOF) {
		return h.Length < MaxPayload
	}
	return h.Length < eofMaxLen
}

// Packet takes the next packet: its header and at least Want bytes of its
// payload. An error means that the peer broke the protocol, and nothing that
// follows can be told apart.
func (t *Tracker) Packet(h Header, head []byte) (Event, error) {
	if h.Seq != t.seq {
		return 0, ErrSequence
	}
	if t.state == trackDone && !t.more {
		return 0, malformed("packet after the end of a reply")
	}
	if t.more {
		t.seq++
		t.more = h.Length == MaxPayload
		return EventContinued, nil
	}
	if h.Length == 0 && t.state != trackText {
		return 0, malformed("empty packet in a reply")
	}
	if len(head) < min(h.Length, 1) || h.Length > 0 && len(head) < t.Want(h, head[0]) {
		return 0, ErrIncomplete
	}
	t.seq++
	t.more = h.Length == MaxPayload
	return t.begin(h, head[:min(len(head), h.Length)])
}

// FileSent tells, after EventLocalInfile, the sequence number of the last
// packet of the client's file: the reply goes on one later.
func (t *Tracker) FileSent(last uint8) { t.seq = last + 1 }
