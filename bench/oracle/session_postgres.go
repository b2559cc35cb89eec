package oracle

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"freshet/bench/wire"
)

// postgresSession is a session of PostgreSQL.
type postgresSession struct {
	c    *wire.PostgresConn
	kept map[string]bool // names of statements parsed
}

// oidInt8 is declared for integers bound in binary (catalog pg_type).
const oidInt8 = 20

func dialPostgres(ctx context.Context, t wire.Target) (session, error) {
	c, err := wire.DialPostgres(ctx, t, wire.PostgresOptions{})
	if err != nil {
		return nil, err
	}
	return &postgresSession{c: c, kept: make(map[string]bool)}, nil
}

func (s *postgresSession) close() error {
	return errors.Join(s.c.Net.SetDeadline(time.Now().Add(opTimeout)), s.c.Close())
}

func (s *postgresSession) run(st step) (string, error) {
	if err := s.c.Net.SetDeadline(time.Now().Add(opTimeout)); err != nil {
		return "", err
	}
	if err := s.c.Send(wire.AppendQuery(nil, st.sql)); err != nil {
		return "", err
	}
	out, err := s.c.ReadReady(1, wire.AppendCopy(nil, st.file))
	if err != nil {
		return "", err
	}
	a := postgresAnswer(out)
	return a.refusal, nil
}

func (s *postgresSession) ask(q *read, explain bool) (answer, source, error) {
	if err := s.c.Net.SetDeadline(time.Now().Add(opTimeout)); err != nil {
		return answer{}, source{}, err
	}
	if err := s.c.Send(s.request(q)); err != nil {
		return answer{}, source{}, err
	}
	out, err := s.c.ReadReady(1, nil)
	if err != nil || !explain {
		return postgresAnswer(out), source{}, err
	}
	// Not in the same write: Freshet takes its own commands from idle sessions.
	if err := s.c.Send(wire.AppendQuery(nil, "EXPLAIN LAST STATEMENT")); err != nil {
		return answer{}, source{}, err
	}
	told, err := s.c.ReadReady(1, nil)
	if err != nil {
		return answer{}, source{}, err
	}
	where, err := explained(told)
	return postgresAnswer(out), where, err
}

// request is a read in messages; one ReadyForQuery ends the reply.
func (s *postgresSession) request(q *read) []byte {
	if q.how == asText {
		return wire.AppendQuery(nil, q.sql)
	}
	name := statementName(q)
	var b []byte
	values, oids := bound(q)
	if !s.kept[name] {
		s.kept[name] = true
		b = wire.AppendParse(b, name, numbered(q.sql), oids)
	}
	var formats []int16
	if q.how == asBinary {
		formats = []int16{1}
	}
	b = wire.AppendBind(b, "", name, values, formats)
	b = wire.AppendDescribe(b, 'P', "")
	return wire.AppendSync(wire.AppendExecute(b, "", 0))
}

func (s *postgresSession) forget(q *read) error {
	name := statementName(q)
	if !s.kept[name] {
		return nil
	}
	delete(s.kept, name)
	if err := s.c.Send(wire.AppendSync(wire.AppendClose(nil, 'S', name))); err != nil {
		return err
	}
	_, err := s.c.ReadReady(1, nil)
	return err
}

// statementName is the same in all sessions, since errors show it.
func statementName(q *read) string {
	h := fnv.New64a()
	fmt.Fprint(h, q.how, q.sql)
	return fmt.Sprintf("oracle_%x", h.Sum64())
}

// bound encodes parameters: as text of a type that the server infers, or
// integers in binary as int8.
func bound(q *read) (values []wire.Value, oids []uint32) {
	for _, a := range q.args {
		switch v := a.(type) {
		case int64:
			if q.how == asBinary {
				values = append(values, wire.Value{Bytes: binary.BigEndian.AppendUint64(nil, uint64(v)), Binary: true})
				oids = append(oids, oidInt8)
				continue
			}
		case []byte:
			values, oids = append(values, wire.Value{Bytes: fmt.Appendf(nil, `\x%x`, v)}), append(oids, 0)
			continue
		}
		values, oids = append(values, wire.Value{Bytes: fmt.Append(nil, a)}), append(oids, 0)
	}
	return values, oids
}

// numbered turns ? into $1, $2 ….
func numbered(sql string) string {
	var b strings.Builder
	for i, part := range strings.Split(sql, "?") {
		if i > 0 {
			fmt.Fprintf(&b, "$%d", i)
		}
		b.WriteString(part)
	}
	return b.String()
}

func explained(out []wire.Message) (source, error) {
	for _, m := range out {
		if m.Kind != "D" {
			continue
		}
		row, err := wire.DataRow(m.Body)
		if err != nil {
			return source{}, err
		}
		if len(row) != 2 {
			return source{}, fmt.Errorf("EXPLAIN LAST STATEMENT: %d columns", len(row))
		}
		return source{string(row[0]), string(row[1])}, nil
	}
	a := postgresAnswer(out)
	if strings.HasPrefix(a.refusal, "42601 ") {
		return source{"unknown", "EXPLAIN LAST STATEMENT was passed on to the server"}, nil
	}
	return source{}, fmt.Errorf("EXPLAIN LAST STATEMENT gave no row: %s", a.refusal)
}

func postgresAnswer(out []wire.Message) (a answer) {
	for _, m := range out {
		switch m.Kind {
		case "T":
			a.head = append(a.head, m.Body...)
		case "D":
			a.rows = append(a.rows, m.Body)
		case "C":
			a.head = append(a.head, m.Body...) // the tag has the number of rows
		case "E":
			a.refusal = postgresRefusal(m.Body)
		}
	}
	return a
}

// postgresRefusal is an ErrorResponse's code and message.
func postgresRefusal(b []byte) string {
	fields := make(map[byte]string)
	for len(b) > 1 {
		value, rest, ok := bytes.Cut(b[1:], []byte{0})
		if !ok {
			break
		}
		fields[b[0]] = string(value)
		b = rest
	}
	if fields['D'] != "" {
		return fields['C'] + " " + fields['M'] + ": " + fields['D']
	}
	return fields['C'] + " " + fields['M']
}
