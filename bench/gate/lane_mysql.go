package gate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"freshet/bench/wire"
)

// mysqlVariants are the ways in which clients connect; what a capability or a
// character set changes in a reply must not leak from one to another.
var mysqlVariants = []wire.MySQLOptions{
	{},
	{Capabilities: wire.CapDeprecateEOF},
	{Capabilities: wire.CapDeprecateEOF | wire.CapFoundRows | wire.CapSessionTrack},
	{Collation: 8}, // latin1_swedish_ci
	{Capabilities: wire.CapLocalFiles},
	{Capabilities: wire.CapDeprecateEOF, Collation: 46}, // utf8mb4_bin
}

const (
	statusCursorExists uint16 = 0x0040
	statusLastRowSent  uint16 = 0x0080
	// statusSessionChanged: session state changes follow in the OK packet.
	statusSessionChanged uint16 = 0x4000
)

// mysqlLane is one MySQL session.
type mysqlLane struct {
	c      *wire.MySQLConn
	places places
	kept   map[string]*mysqlStmt
}

type mysqlStmt struct {
	wire.Prepared
	types []byte // as bound last; nil before the first time
}

func dialMySQLLane(ctx context.Context, t wire.Target, n int, p places) (lane, error) {
	c, err := wire.DialMySQL(ctx, t, mysqlVariants[n%len(mysqlVariants)])
	if err != nil {
		return nil, err
	}
	return &mysqlLane{c: c, places: p, kept: make(map[string]*mysqlStmt)}, nil
}

func (l *mysqlLane) close() error { return l.c.Close() }

func (l *mysqlLane) hello() []wire.Message {
	return []wire.Message{
		{Kind: "version", Body: []byte(l.c.Version)},
		{Kind: "capabilities", Body: binary.LittleEndian.AppendUint32(nil, l.c.Caps)},
	}
}

func (l *mysqlLane) run(c call) ([]wire.Message, error) {
	if err := l.c.Net.SetDeadline(time.Now().Add(opTimeout)); err != nil {
		return nil, err
	}
	out, err := l.exchange(c)
	if c.resets {
		l.kept = make(map[string]*mysqlStmt)
	}
	for i := range out {
		out[i] = l.meaningful(out[i])
	}
	return out, err
}

func (l *mysqlLane) exchange(c call) ([]wire.Message, error) {
	sql := l.places.fill(c.sql)
	switch c.mode {
	case text:
		if err := l.c.Send(append([]byte{wire.ComQuery}, inlined(sql, c.args, true)...)); err != nil {
			return nil, err
		}
		return l.c.ReadResults([]byte(l.places.fill(string(c.file))))
	case command:
		if err := l.c.Send([]byte(sql)); err != nil {
			return nil, err
		}
		if sql[0] == wire.ComFieldList {
			out, _, err := l.c.ReadRows(nil)
			return out, err
		}
		return l.c.ReadSimple()
	}
	if c.mode == once {
		stmt, out, err := l.prepare(sql)
		if err != nil || stmt == nil {
			return out, err
		}
		more, err := l.execute(stmt, c)
		if err != nil {
			return out, err
		}
		// COM_STMT_CLOSE has no reply.
		id := binary.LittleEndian.AppendUint32([]byte{wire.ComStmtClose}, stmt.ID)
		return append(out, more...), l.c.Send(id)
	}
	var out []wire.Message
	// MySQL 9.7 frames the answer wrongly when a statement that was run with a
	// cursor is run again without one, so a statement is used one way only.
	name := sql
	if c.mode == cursor {
		name = "cursor " + sql
	}
	stmt := l.kept[name]
	if stmt == nil {
		var err error
		if stmt, out, err = l.prepare(sql); err != nil || stmt == nil {
			return out, err
		}
		l.kept[name] = stmt
	}
	more, err := l.execute(stmt, c)
	return append(out, more...), err
}

// prepare returns no statement when the server refuses it.
func (l *mysqlLane) prepare(sql string) (*mysqlStmt, []wire.Message, error) {
	p, out, err := l.c.Prepare(sql)
	if err != nil || out[0].Kind == wire.KindErr {
		return nil, out, err
	}
	return &mysqlStmt{Prepared: p}, out, nil
}

func (l *mysqlLane) execute(stmt *mysqlStmt, c call) ([]wire.Message, error) {
	switch c.mode {
	case cursor:
		return l.fetchAll(stmt, c)
	case longData:
		return l.executeLong(stmt, c)
	}
	b, types := wire.AppendStmtExecute(nil, stmt.ID, 0, c.args, stmt.types)
	stmt.types = types
	if err := l.c.Send(b); err != nil {
		return nil, err
	}
	return l.c.ReadResults(nil)
}

// fetchAll opens a cursor and reads it in portions.
func (l *mysqlLane) fetchAll(stmt *mysqlStmt, c call) ([]wire.Message, error) {
	b, types := wire.AppendStmtExecute(nil, stmt.ID, wire.CursorReadOnly, c.args, stmt.types)
	stmt.types = types
	if err := l.c.Send(b); err != nil {
		return nil, err
	}
	out, err := l.c.ReadResults(nil)
	if err != nil {
		return out, err
	}
	status, ok := statusOf(out[len(out)-1])
	if !ok || status&statusCursorExists == 0 {
		return out, nil
	}
	for status&statusLastRowSent == 0 {
		fetch := binary.LittleEndian.AppendUint32([]byte{wire.ComStmtFetch}, stmt.ID)
		if err := l.c.Send(binary.LittleEndian.AppendUint32(fetch, c.rows)); err != nil {
			return out, err
		}
		if out, status, err = l.c.ReadRows(out); err != nil {
			return out, err
		}
		if out[len(out)-1].Kind == wire.KindErr {
			return out, nil
		}
	}
	reset := binary.LittleEndian.AppendUint32([]byte{wire.ComStmtReset}, stmt.ID)
	if err := l.c.Send(reset); err != nil {
		return out, err
	}
	more, err := l.c.ReadSimple()
	return append(out, more...), err
}

// executeLong sends the first string in two pieces ahead of the execute.
func (l *mysqlLane) executeLong(stmt *mysqlStmt, c call) ([]wire.Message, error) {
	args := append([]any(nil), c.args...)
	for i, a := range args {
		s, ok := a.(string)
		if !ok {
			continue
		}
		for _, piece := range []string{s[:len(s)/2], s[len(s)/2:]} {
			b := binary.LittleEndian.AppendUint32([]byte{wire.ComStmtSendLong}, stmt.ID)
			b = append(binary.LittleEndian.AppendUint16(b, uint16(i)), piece...)
			if err := l.c.Send(b); err != nil {
				return nil, err
			}
		}
		args[i] = wire.LongData{}
		break
	}
	b, types := wire.AppendStmtExecute(nil, stmt.ID, 0, args, nil)
	stmt.types = types
	if err := l.c.Send(b); err != nil {
		return nil, err
	}
	return l.c.ReadResults(nil)
}

// statusOf finds the status flags of an OK or EOF message.
func statusOf(m wire.Message) (uint16, bool) {
	at, ok := statusOffset(m)
	if !ok {
		return 0, false
	}
	return binary.LittleEndian.Uint16(m.Body[at:]), true
}

func statusOffset(m wire.Message) (int, bool) {
	if m.Kind == wire.KindEOF && len(m.Body) == 5 {
		return 3, true
	}
	if m.Kind != wire.KindOK && m.Kind != wire.KindEOF {
		return 0, false
	}
	at, err := wire.OKStatusOffset(m.Body)
	return at, err == nil
}

// statusMetadataChanged tells that a statement was prepared again since the last
// execution; through a pool, whose execution that was is not the session's.
const statusMetadataChanged = 0x0400

// keyFlags say which keys a column is part of. MariaDB tells them of the table
// that the plan reads in the end, which may be one of its own making: two runs
// of one query differ when its statistics have changed in between.
const keyFlags = 0x0002 | 0x0004 | 0x0008 | 0x0200 | 0x4000

// meaningful masks what two sessions of one server may differ in: the lane
// table's name, the statement's number, how the query was run, the order
// of session state changes.
func (l *mysqlLane) meaningful(m wire.Message) wire.Message {
	m.Body = l.places.neutral(m.Body)
	if m.Kind == wire.KindPrepare {
		copy(m.Body[1:5], "id__")
	}
	if at := len(m.Body) - 5; m.Kind == wire.KindColumn && at > 0 && strings.Contains(l.c.Version, "MariaDB") {
		flags := binary.LittleEndian.Uint16(m.Body[at:]) &^ keyFlags
		binary.LittleEndian.PutUint16(m.Body[at:], flags)
	}
	if at, ok := statusOffset(m); ok {
		status := binary.LittleEndian.Uint16(m.Body[at:]) &^ (wire.StatusOfPlan | statusMetadataChanged)
		binary.LittleEndian.PutUint16(m.Body[at:], status)
		if m.Kind == wire.KindOK && status&statusSessionChanged != 0 && l.c.Caps&wire.CapSessionTrack != 0 {
			m.Body = append(m.Body[:at+4:at+4], wire.SortStateChanges(m.Body[at+4:])...)
			if string(m.Body[at+4:]) == "\x00\x00" { // a change announced, and none told
				m.Body = m.Body[:at+4]
				binary.LittleEndian.PutUint16(m.Body[at:], status&^statusSessionChanged)
			}
		}
	}
	return m
}

// mysqlLogin is a connection that the server refuses.
func mysqlLogin(t wire.Target) func(ctx context.Context) ([]wire.Message, error) {
	return func(ctx context.Context) ([]wire.Message, error) {
		c, err := wire.DialMySQL(ctx, t, wire.MySQLOptions{})
		if err == nil {
			return nil, errors.Join(errLetIn, c.Close())
		}
		var refused *wire.MySQLError
		if !errors.As(err, &refused) {
			return nil, err
		}
		// The server names the client's host as it resolves it.
		text, _, _ := strings.Cut(refused.Message, "@")
		return []wire.Message{{Kind: wire.KindErr, Body: fmt.Appendf(nil, "%d %s %s", refused.Number, refused.SQLState, text)}}, nil
	}
}
