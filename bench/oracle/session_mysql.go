package oracle

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"freshet/bench/wire"
)

// mysqlSession is a session of MySQL or MariaDB.
type mysqlSession struct {
	c    *wire.MySQLConn
	kept map[string]*mysqlStatement
}

type mysqlStatement struct {
	wire.Prepared
	types []byte // as bound last; nil before the first time
}

func dialMySQL(ctx context.Context, t wire.Target) (session, error) {
	c, err := wire.DialMySQL(ctx, t, wire.MySQLOptions{Capabilities: wire.CapLocalFiles | wire.CapDeprecateEOF})
	if err != nil {
		return nil, err
	}
	return &mysqlSession{c: c, kept: make(map[string]*mysqlStatement)}, nil
}

func (s *mysqlSession) close() error {
	return errors.Join(s.c.Net.SetDeadline(time.Now().Add(opTimeout)), s.c.Close())
}

func (s *mysqlSession) query(sql string, file []byte) ([]wire.Message, error) {
	if err := s.c.Send(append([]byte{wire.ComQuery}, sql...)); err != nil {
		return nil, err
	}
	return s.c.ReadResults(file)
}

func (s *mysqlSession) run(st step) (string, error) {
	if err := s.c.Net.SetDeadline(time.Now().Add(opTimeout)); err != nil {
		return "", err
	}
	out, err := s.query(st.sql, st.file)
	if err != nil {
		return "", err
	}
	a := mysqlAnswer(out)
	return a.refusal, nil
}

func (s *mysqlSession) ask(q *read, explain bool) (answer, source, error) {
	if err := s.c.Net.SetDeadline(time.Now().Add(opTimeout)); err != nil {
		return answer{}, source{}, err
	}
	out, err := s.exchange(q)
	if err != nil {
		return answer{}, source{}, err
	}
	a := mysqlAnswer(out)
	if !explain {
		return a, source{}, nil
	}
	_, rows, err := s.c.Table("EXPLAIN LAST STATEMENT")
	if err != nil {
		return a, source{}, err
	}
	if len(rows) != 1 || len(rows[0]) != 2 {
		return a, source{}, fmt.Errorf("EXPLAIN LAST STATEMENT: %d rows", len(rows))
	}
	return a, source{string(rows[0][0]), string(rows[0][1])}, nil
}

func (s *mysqlSession) exchange(q *read) ([]wire.Message, error) {
	if q.how == asText {
		return s.query(q.sql, nil)
	}
	st := s.kept[q.sql]
	if st == nil {
		p, out, err := s.c.Prepare(q.sql)
		if err != nil || out[0].Kind == wire.KindErr {
			return out, err
		}
		st = &mysqlStatement{Prepared: p}
		s.kept[q.sql] = st
	}
	b, types := wire.AppendStmtExecute(nil, st.ID, 0, q.args, st.types)
	st.types = types
	if err := s.c.Send(b); err != nil {
		return nil, err
	}
	return s.c.ReadResults(nil)
}

// forget sends COM_STMT_CLOSE, which has no reply.
func (s *mysqlSession) forget(q *read) error {
	st := s.kept[q.sql]
	if st == nil {
		return nil
	}
	delete(s.kept, q.sql)
	return s.c.Send(binary.LittleEndian.AppendUint32([]byte{wire.ComStmtClose}, st.ID))
}

// mysqlAnswer leaves out the OK packets, whose flags tell how a statement was
// run and whose warnings depend on the order in which conditions are tried.
func mysqlAnswer(out []wire.Message) (a answer) {
	for _, m := range out {
		switch m.Kind {
		case wire.KindColumns:
			a.head = append(a.head, m.Body...)
		case wire.KindColumn:
			a.head = append(a.head, steady(m.Body)...)
		case wire.KindRow:
			a.rows = append(a.rows, m.Body)
		case wire.KindErr:
			a.refusal = mysqlRefusal(m.Body)
		}
	}
	return a
}

// mysqlRefusal is an ERR packet's number and message (manual: ERR_Packet: the
// header, two bytes of number, # and five of SQLSTATE).
func mysqlRefusal(b []byte) string {
	if len(b) < 9 {
		return fmt.Sprintf("%q", b)
	}
	return fmt.Sprintf("%d %s", binary.LittleEndian.Uint16(b[1:]), b[9:])
}

// steadyFlags are the column flags that a column has by its type: blob,
// unsigned, zerofill, enum, set (manual: Column Definition Flags). The others
// (not null, part of a key, binary, timestamp, …) change with the plan: an outer
// join that was made an inner one, a temporary table, no table at all.
const steadyFlags = 1<<4 | 1<<5 | 1<<6 | 1<<8 | 1<<11

// steady is a column definition (manual: ColumnDefinition41) without what
// changes with the plan: flags, before the decimals and two bytes of filler at
// its end, and whether the original table of a view's column is the view.
func steady(b []byte) []byte {
	at := len(b) - 5
	if at < 0 {
		return b
	}
	binary.LittleEndian.PutUint16(b[at:], binary.LittleEndian.Uint16(b[at:])&steadyFlags)
	const before = 3 // catalog, schema, table
	rest := b
	for range before {
		if len(rest) == 0 || int(rest[0]) >= len(rest) || rest[0] >= 0xfb {
			return b
		}
		rest = rest[1+int(rest[0]):]
	}
	if len(rest) == 0 || int(rest[0]) >= len(rest) || rest[0] >= 0xfb {
		return b
	}
	return append(b[:len(b)-len(rest):len(b)-len(rest)], rest[1+int(rest[0]):]...)
}
