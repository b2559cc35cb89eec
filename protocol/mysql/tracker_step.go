package mysql

// begin judges a packet that begins a payload. head holds at least what Want
// asked for.
func (t *Tracker) begin(h Header, head []byte) (Event, error) {
	if t.state == trackText {
		return t.text(head)
	}
	if head[0] == headerERR {
		if t.isProgress(head) {
			return EventProgress, nil
		}
		return t.fail(h, head)
	}
	switch t.state {
	case trackFirst:
		return t.first(h, head)
	case trackPlain:
		return t.plain(h, head)
	case trackPrepare:
		return t.prepare(head)
	case trackParams, trackColumns:
		return t.definition(h, head)
	case trackList:
		if head[0] == headerEOF {
			return t.endOf(h, head)
		}
		return EventColumn, nil
	}
	if t.isEnd(h, head[0]) {
		return t.endOf(h, head)
	}
	t.Rows++
	return EventRow, nil
}

// isProgress tells a progress report from an error: its number is 0xffff
// (MariaDB: "ERR_Packet"). Only statements are reported on.
func (t *Tracker) isProgress(head []byte) bool {
	return t.caps.Has(MariaDBProgress) && (t.cmd == ComQuery || t.cmd == ComStmtExecute) &&
		len(head) >= 3 && head[1] == 0xff && head[2] == 0xff
}

func (t *Tracker) text(head []byte) (Event, error) {
	t.state = trackDone
	if len(head) > 0 && head[0] == headerERR {
		t.Failed = true
	}
	return EventText, nil
}

func (t *Tracker) fail(h Header, head []byte) (Event, error) {
	if h.Length == MaxPayload || len(head) < h.Length {
		return 0, malformed("ERR packet")
	}
	e, err := DecodeError(head, t.caps)
	if err != nil {
		return 0, err
	}
	t.Error, t.Failed, t.state = e, true, trackDone
	return EventError, nil
}

// first is the packet that tells what kind of reply a statement has.
func (t *Tracker) first(h Header, head []byte) (Event, error) {
	if h.Length == MaxPayload {
		return 0, malformed("first packet of a reply")
	}
	switch head[0] {
	case headerOK:
		return t.plain(h, head)
	case lenencNull:
		return EventLocalInfile, nil
	}
	n, used := DecodeLenenc(head)
	if used == 0 || n > 1<<16 {
		return 0, malformed("column count")
	}
	t.Columns, t.Rows, t.left = n, 0, n
	if t.caps.Has(ClientOptionalResultsetMetadata) && len(head) > used && head[used] == metadataNone {
		t.left = 0
	}
	t.afterDefinitions(trackColumns)
	return EventColumnCount, nil
}

func (t *Tracker) plain(h Header, head []byte) (Event, error) {
	t.Columns, t.Rows = 0, 0
	if head[0] == headerEOF {
		return t.endOf(h, head)
	}
	ok, err := DecodeOK(head, t.caps)
	if err != nil {
		return 0, err
	}
	t.over(ok)
	return EventOK, nil
}

func (t *Tracker) prepare(head []byte) (Event, error) {
	ok, err := DecodePrepareOK(head, t.caps)
	if err != nil {
		return 0, err
	}
	t.Prepared, t.Columns, t.Warned = ok, uint64(ok.Columns), ok.Warnings != 0
	t.left = 0
	if !ok.NoMetadata {
		t.left = uint64(ok.Params)
	}
	t.nextList(trackParams)
	return EventPrepareOK, nil
}

// definition is one of a run of definitions, or the EOF that closes the run.
func (t *Tracker) definition(h Header, head []byte) (Event, error) {
	if t.left == 0 {
		return t.definitionsEnd(h, head)
	}
	if head[0] == headerEOF {
		return 0, malformed("EOF before the last column definition")
	}
	t.left--
	event := EventColumn
	if t.state == trackParams {
		event = EventParam
	}
	if t.left == 0 {
		if t.cmd == ComStmtPrepare {
			if t.caps.Has(ClientDeprecateEOF) {
				t.leaveList()
			}
		} else {
			t.afterDefinitions(t.state)
		}
	}
	return event, nil
}

// afterDefinitions: rows come next, unless definitions or their EOF still do.
func (t *Tracker) afterDefinitions(state trackState) {
	t.state = state
	if t.left == 0 && t.caps.Has(ClientDeprecateEOF) {
		t.state = trackRows
	}
}

// definitionsEnd takes the EOF of clients without ClientDeprecateEOF. With a
// cursor it is the end of the reply to COM_STMT_EXECUTE: the rows are fetched.
func (t *Tracker) definitionsEnd(h Header, head []byte) (Event, error) {
	if head[0] != headerEOF || h.Length >= eofMaxLen {
		return 0, malformed("EOF after column definitions")
	}
	eof, err := DecodeEOF(head)
	if err != nil {
		return 0, err
	}
	if t.cmd == ComStmtPrepare {
		t.leaveList()
		return EventMetadataEOF, nil
	}
	if eof.Status.Has(StatusCursorExists) {
		t.over(OK{EOF: true, Status: eof.Status, Warnings: eof.Warnings})
		return EventEnd, nil
	}
	t.state = trackRows
	t.outParams = eof.Status.Has(StatusPSOutParams | StatusMoreResults)
	return EventMetadataEOF, nil
}

// nextList goes to a run of definitions of COM_STMT_PREPARE, past it if it is
// empty: an empty run has no EOF.
func (t *Tracker) nextList(state trackState) {
	t.state = state
	if t.left == 0 {
		t.leaveList()
	}
}

func (t *Tracker) leaveList() {
	if t.state == trackParams && !t.Prepared.NoMetadata {
		t.left = uint64(t.Prepared.Columns)
		t.nextList(trackColumns)
		return
	}
	t.state = trackDone
}

// endOf takes the packet that ends a result set, in either form.
func (t *Tracker) endOf(h Header, head []byte) (Event, error) {
	if len(head) < h.Length {
		return 0, malformed("end of a result set")
	}
	if t.caps.Has(ClientDeprecateEOF) {
		ok, err := DecodeOK(head, t.caps)
		if err != nil {
			return 0, err
		}
		t.over(ok)
		return EventEnd, nil
	}
	eof, err := DecodeEOF(head)
	if err != nil {
		return 0, err
	}
	t.over(OK{EOF: true, Status: eof.Status, Warnings: eof.Warnings})
	return EventEnd, nil
}

// over closes one result; another follows if the status says so, but only
// statements have more than one.
func (t *Tracker) over(ok OK) {
	if t.outParams {
		t.outParams = false
		ok.Status |= StatusMoreResults
	}
	t.Last = ok
	t.Results++
	t.Warned = t.Warned || ok.Warnings != 0
	t.state = trackDone
	if ok.Status.Has(StatusMoreResults) && (t.cmd == ComQuery || t.cmd == ComStmtExecute) {
		t.state = trackFirst
	}
}
