package load

import (
	"context"
	"encoding/binary"
	"errors"

	"freshet/bench/wire"
)

// Sample asks the server what the floor will repeat: it prepares as the load
// does and makes the first call.
func (w Workload) Sample(ctx context.Context, dsn string) (Recording, error) {
	t, err := wire.Parse(dsn)
	if err != nil {
		return Recording{}, err
	}
	if t.Dialect == wire.MySQL {
		return w.sampleMySQL(ctx, t)
	}
	return w.samplePostgres(ctx, t)
}

// Recording is what a server answered: to each setup request, and to one call.
type Recording struct {
	Dialect      string
	Version      string
	Capabilities uint32 // MySQL: what the server agreed to
	Setup        [][]byte
	Reply        []byte
}

func (w Workload) sampleMySQL(ctx context.Context, t wire.Target) (rec Recording, err error) {
	c, err := wire.DialMySQL(ctx, t, wire.MySQLOptions{Capabilities: wire.CapDeprecateEOF})
	if err != nil {
		return Recording{}, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	rec = Recording{Dialect: wire.MySQL, Version: c.Version, Capabilities: c.Caps}
	e := &mysqlEncoder{text: w.Mode == Text}
	for _, s := range w.Statements {
		if w.Mode == Text {
			break
		}
		p, reply, err := c.Prepare(s.SQL)
		if err != nil {
			return rec, err
		}
		rec.Setup = append(rec.Setup, packets(reply))
		e.ids = append(e.ids, p.ID)
	}
	request := (&liveSource{w: w, e: e}).Append(nil)
	if err := c.Send(request[4:]); err != nil {
		return rec, err
	}
	reply, err := c.ReadResults(nil)
	rec.Reply = packets(reply)
	return rec, err
}

// packets frames a reply again, as it came.
func packets(reply []wire.Message) []byte {
	var b []byte
	for i, m := range reply {
		b = wire.AppendPacket(b, byte(i+1), m.Body)
	}
	return b
}

func (w Workload) samplePostgres(ctx context.Context, t wire.Target) (rec Recording, err error) {
	c, err := wire.DialPostgres(ctx, t, wire.PostgresOptions{})
	if err != nil {
		return Recording{}, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	rec = Recording{Dialect: wire.Postgres, Version: c.Parameters["server_version"]}
	ask := func(b []byte) ([]byte, error) {
		if err := c.Send(b); err != nil {
			return nil, err
		}
		reply, err := c.ReadReady(1, nil)
		var out []byte
		for _, m := range reply {
			out = append(out, m.Kind[0])
			out = binary.BigEndian.AppendUint32(out, uint32(len(m.Body)+4))
			out = append(out, m.Body...)
		}
		return out, err
	}
	for i, s := range w.Statements {
		if w.Mode == Text {
			break
		}
		b, err := ask(wire.AppendSync(wire.AppendParse(nil, statementName(i), Numbered(s.SQL), nil)))
		if err != nil {
			return rec, err
		}
		rec.Setup = append(rec.Setup, b)
	}
	rec.Reply, err = ask((&liveSource{w: w, e: postgresEncoder{text: w.Mode == Text}}).Append(nil))
	return rec, err
}
