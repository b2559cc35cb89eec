package gate

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"freshet/bench/wire"
)

// postgresVariants are the startup parameters of the pairs; what they change
// in an answer must not leak from one session to another. A session without a
// search path writes the schema's name before each table.
var postgresVariants = []struct {
	parameters map[string]string
	schema     string
}{
	{map[string]string{"search_path": database}, ""},
	{map[string]string{"search_path": database, "datestyle": "German, DMY", "timezone": "Asia/Tokyo", "application_name": "gate two"}, ""},
	{nil, database + "."},
	{map[string]string{"options": "-c search_path=" + database + " -c bytea_output=escape -c extra_float_digits=0"}, ""},
	{map[string]string{"search_path": database + ", pg_catalog", "client_encoding": "LATIN1", "intervalstyle": "iso_8601"}, ""},
}

// Type OIDs that are declared for binary parameters (catalog pg_type).
const (
	oidBool      = 16
	oidBytea     = 17
	oidInt8      = 20
	oidText      = 25
	oidFloat8    = 701
	oidTimestamp = 1114
)

// postgresLane is one PostgreSQL session.
type postgresLane struct {
	c      *wire.PostgresConn
	places places
	oid    uint32            // of the lane table
	newest uint32            // the highest OID of the gate's own tables
	kept   map[string]string // text and parameter types -> statement name
}

func dialPostgresLane(ctx context.Context, t wire.Target, n int, through bool) (lane, error) {
	v := postgresVariants[n%len(postgresVariants)]
	c, err := wire.DialPostgres(ctx, t, wire.PostgresOptions{Parameters: v.parameters})
	if err != nil {
		return nil, err
	}
	return &postgresLane{c: c, places: placesOf(n, through, v.schema), kept: make(map[string]string)}, nil
}

func (l *postgresLane) close() error { return l.c.Close() }

// hello is every ParameterStatus, in the order of their names.
func (l *postgresLane) hello() []wire.Message {
	var out []wire.Message
	for k, v := range l.c.Parameters {
		out = append(out, wire.Message{Kind: "S " + k, Body: []byte(v)})
	}
	slices.SortFunc(out, func(a, b wire.Message) int { return strings.Compare(a.Kind, b.Kind) })
	return out
}

func (l *postgresLane) run(c call) ([]wire.Message, error) {
	if err := l.c.Net.SetDeadline(time.Now().Add(opTimeout)); err != nil {
		return nil, err
	}
	out, err := l.exchange(c)
	if c.resets {
		l.kept = make(map[string]string)
	}
	for i := range out {
		out[i] = l.meaningful(out[i])
	}
	sortParameters(out)
	return out, err
}

// sortParameters brings ParameterStatus messages that follow each other into
// one order; the server's own has no meaning.
func sortParameters(reply []wire.Message) {
	for i := 0; i < len(reply); i++ {
		n := i
		for n < len(reply) && reply[n].Kind == "S" {
			n++
		}
		slices.SortFunc(reply[i:n], func(a, b wire.Message) int { return bytes.Compare(a.Body, b.Body) })
		i = n
	}
}

func (l *postgresLane) exchange(c call) ([]wire.Message, error) {
	sql := l.places.fill(c.sql)
	switch c.mode {
	case text:
		if err := l.c.Send(wire.AppendQuery(nil, inlined(sql, c.args, false))); err != nil {
			return nil, err
		}
		return l.c.ReadReady(1, l.copyIn(c))
	case prepared, once:
		return l.runNamed(c)
	case pipeline:
		return l.pipelined(c)
	case flushed:
		return l.flushed(c)
	}
	b := l.appendUnnamed(nil, c)
	if c.mode == cursor {
		b = l.appendPortions(b, c)
	}
	return l.round(wire.AppendSync(b))
}

// round sends b, which ends in one Sync, and reads the reply.
func (l *postgresLane) round(b []byte) ([]wire.Message, error) {
	if err := l.c.Send(b); err != nil {
		return nil, err
	}
	return l.c.ReadReady(1, nil)
}

func (l *postgresLane) copyIn(c call) []byte {
	return wire.AppendCopy(nil, []byte(l.places.fill(string(c.file))))
}

// runNamed parses under a name, in a round of its own, and then binds and runs.
func (l *postgresLane) runNamed(c call) ([]wire.Message, error) {
	sql := numbered(l.places.fill(c.sql), c.args)
	values, oids := bound(c)
	key := fmt.Sprint(sql, oids)
	name, ok := l.kept[key]
	var out []wire.Message
	if !ok || c.mode == once {
		name = statementName(c, oids)
		var err error
		b := wire.AppendDescribe(wire.AppendParse(nil, name, sql, oids), 'S', name)
		if out, err = l.round(wire.AppendSync(b)); err != nil || refusal(out) != nil {
			return out, err
		}
		if c.mode == prepared {
			l.kept[key] = name
		}
	}
	b := wire.AppendBind(nil, "", name, values, formats(c))
	if c.binary { // as drivers that do not keep the description do
		b = wire.AppendDescribe(b, 'P', "")
	}
	more, err := l.round(wire.AppendSync(wire.AppendExecute(b, "", 0)))
	out = append(out, more...)
	if err != nil || c.mode == prepared {
		return out, err
	}
	more, err = l.round(wire.AppendSync(wire.AppendClose(nil, 'S', name)))
	return append(out, more...), err
}

// statementName is the same on both sides of a pair, since errors show it.
func statementName(c call, oids []uint32) string {
	h := fnv.New64a()
	fmt.Fprint(h, c.sql, oids)
	return fmt.Sprintf("gate_%s_%x", c.mode, h.Sum64())
}

// appendUnnamed parses, binds and describes without names, and runs unless
// the caller will in portions.
func (l *postgresLane) appendUnnamed(b []byte, c call) []byte {
	values, oids := bound(c)
	b = wire.AppendParse(b, "", numbered(l.places.fill(c.sql), c.args), oids)
	b = wire.AppendBind(b, "", "", values, formats(c))
	b = wire.AppendDescribe(b, 'P', "")
	if c.mode != cursor {
		b = wire.AppendExecute(b, "", 0)
	}
	return b
}

// appendPortions runs the portal twice with a row limit and then to its end.
func (l *postgresLane) appendPortions(b []byte, c call) []byte {
	b = wire.AppendExecute(b, "", c.rows)
	b = wire.AppendExecute(b, "", c.rows)
	return wire.AppendExecute(b, "", 0)
}

// pipelined sends the batch in one write.
func (l *postgresLane) pipelined(c call) ([]wire.Message, error) {
	var b []byte
	syncs := 1
	for i, x := range c.batch {
		if x.mode == text { // a simple Query has a ReadyForQuery of its own
			b = wire.AppendQuery(b, inlined(l.places.fill(x.sql), x.args, false))
			syncs++
			continue
		}
		b = l.appendUnnamed(b, x)
		if c.syncs && i < len(c.batch)-1 {
			b = wire.AppendSync(b)
			syncs++
		}
	}
	if err := l.c.Send(wire.AppendSync(b)); err != nil {
		return nil, err
	}
	return l.c.ReadReady(syncs, nil)
}

// flushed waits for each step's answer by Flush, as drivers do that need the
// parameter types before they bind.
func (l *postgresLane) flushed(c call) ([]wire.Message, error) {
	values, oids := bound(c)
	b := wire.AppendParse(nil, "", numbered(l.places.fill(c.sql), c.args), oids)
	b = wire.AppendDescribe(b, 'S', "")
	if err := l.c.Send(wire.AppendFlush(b)); err != nil {
		return nil, err
	}
	out, err := l.c.ReadUntil(func(m wire.Message) bool { return m.Kind == "T" || m.Kind == "n" || m.Kind == "E" }, nil)
	if err != nil {
		return out, err
	}
	if refusal(out) == nil {
		b = wire.AppendBind(nil, "", "", values, formats(c))
		b = wire.AppendExecute(b, "", 0)
		if err := l.c.Send(wire.AppendFlush(b)); err != nil {
			return out, err
		}
		more, err := l.c.ReadUntil(func(m wire.Message) bool { return m.Kind == "C" || m.Kind == "I" || m.Kind == "E" }, nil)
		out = append(out, more...)
		if err != nil {
			return out, err
		}
	}
	more, err := l.round(wire.AppendSync(nil))
	return append(out, more...), err
}

func formats(c call) []int16 {
	if c.binary {
		return []int16{1}
	}
	return nil
}

// bound encodes a call's parameters, and for binary ones declares their types.
func bound(c call) (values []wire.Value, oids []uint32) {
	for _, a := range c.args {
		v, oid := wire.Value{}, uint32(0)
		if c.binary {
			v, oid = binaryValue(a)
		} else if a != nil {
			v.Bytes = []byte(textValue(a))
		}
		values, oids = append(values, v), append(oids, oid)
	}
	if !c.binary {
		oids = nil
	}
	return values, oids
}

func textValue(a any) string {
	switch v := a.(type) {
	case string:
		return v
	case []byte:
		return fmt.Sprintf(`\x%x`, v)
	case time.Time:
		return v.Format(timeLayout)
	}
	return fmt.Sprint(a)
}

// postgresEpoch is the zero of binary timestamps.
var postgresEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func binaryValue(a any) (wire.Value, uint32) {
	switch v := a.(type) {
	case nil:
		return wire.Value{Binary: true}, 0
	case int64:
		return wire.Value{Bytes: binary.BigEndian.AppendUint64(nil, uint64(v)), Binary: true}, oidInt8
	case float64:
		return wire.Value{Bytes: binary.BigEndian.AppendUint64(nil, math.Float64bits(v)), Binary: true}, oidFloat8
	case bool:
		b := byte(0)
		if v {
			b = 1
		}
		return wire.Value{Bytes: []byte{b}, Binary: true}, oidBool
	case []byte:
		return wire.Value{Bytes: v, Binary: true}, oidBytea
	case time.Time:
		micros := v.Sub(postgresEpoch).Microseconds()
		return wire.Value{Bytes: binary.BigEndian.AppendUint64(nil, uint64(micros)), Binary: true}, oidTimestamp
	case string:
		// Undeclared: most strings here are numerics, enums or dates in text.
		return wire.Value{Bytes: []byte(v)}, 0
	}
	return wire.Value{Bytes: []byte(textValue(a))}, 0
}

// meaningful masks what two sessions of one server may differ in: the lane
// table's name and OID, who sent a notification, and the line of the server's
// source that an error came from.
func (l *postgresLane) meaningful(m wire.Message) wire.Message {
	m.Body = l.places.neutral(m.Body)
	switch m.Kind {
	case "T":
		l.maskTable(m.Body)
	case "E", "N":
		m.Body = withoutSource(m.Body)
	case "A":
		if len(m.Body) >= 4 {
			copy(m.Body, "\x00\x00\x00\x00")
		}
	}
	return m
}

// withoutSource drops from an ErrorResponse the fields that say where in the
// server's source it was raised (F, L, R).
func withoutSource(b []byte) []byte {
	var out []byte
	for rest := b; len(rest) > 1; {
		value, after, ok := bytes.Cut(rest, []byte{0})
		if !ok {
			return b
		}
		if rest[0] != 'F' && rest[0] != 'L' && rest[0] != 'R' {
			out = append(append(out, value...), 0)
		}
		rest = after
	}
	return append(out, 0)
}

// maskTable replaces in a RowDescription the OID of the lane table and of
// tables that the session made itself.
func (l *postgresLane) maskTable(b []byte) {
	if len(b) < 2 {
		return
	}
	n := int(binary.BigEndian.Uint16(b))
	b = b[2:]
	for range n {
		end := slices.Index(b, 0)
		if end < 0 || len(b) < end+1+18 {
			return
		}
		b = b[end+1:]
		if oid := binary.BigEndian.Uint32(b); oid == l.oid || oid > l.newest {
			copy(b, "lane")
		}
		b = b[18:]
	}
}

var errLetIn = errors.New("a login that must be refused was let in")

// postgresLogin is a connection that the server refuses.
func postgresLogin(ctx context.Context, t wire.Target, o wire.PostgresOptions) ([]wire.Message, error) {
	c, err := wire.DialPostgres(ctx, t, o)
	if err == nil {
		return nil, errors.Join(errLetIn, c.Close())
	}
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return nil, err
	}
	return []wire.Message{{Kind: "E", Body: fmt.Appendf(nil, "%s %s %s", refused.Severity, refused.Code, refused.Message)}}, nil
}
