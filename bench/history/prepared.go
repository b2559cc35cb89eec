package history

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"freshet/bench/wire"
)

// prepared are the statements of a connection that are prepared once and kept,
// by their text with ? for parameters. Parameters and columns are all BIGINT.
type prepared interface {
	execute(sql string, args []int64) ([][]int64, error)
}

// myPrepared runs them in MySQL's binary protocol.
type myPrepared struct {
	c    *wire.MySQLConn
	kept map[string]*myStatement
}

type myStatement struct {
	wire.Prepared
	types []byte // as bound last
}

func (p *myPrepared) execute(sql string, args []int64) ([][]int64, error) {
	st := p.kept[sql]
	if st == nil {
		made, out, err := p.c.Prepare(sql)
		if err == nil && out[0].Kind == wire.KindErr {
			err = myRefusal(out[0].Body)
		}
		if err != nil {
			return nil, err
		}
		st = &myStatement{Prepared: made}
		p.kept[sql] = st
	}
	values := make([]any, len(args))
	for i, a := range args {
		values[i] = a
	}
	b, types := wire.AppendStmtExecute(nil, st.ID, 0, values, st.types)
	st.types = types
	if err := p.c.Send(b); err != nil {
		return nil, err
	}
	out, err := p.c.ReadResults(nil)
	if err != nil {
		return nil, err
	}
	var rows [][]int64
	for _, m := range out {
		switch m.Kind {
		case wire.KindErr:
			return nil, myRefusal(m.Body)
		case wire.KindRow:
			row, err := myRow(m.Body, st.Columns)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func myRefusal(body []byte) error {
	refusal, err := wire.DecodeMySQLError(body)
	if err != nil {
		return err
	}
	return refusal
}

// myRow splits a row of the binary protocol (manual: Binary Protocol Resultset
// Row) of integers of eight bytes, none of them NULL.
func myRow(b []byte, columns int) (row []int64, err error) {
	at := 1 + (columns+7+2)/8
	if len(b) != at+8*columns {
		return nil, fmt.Errorf("a row of %d bytes, want %d integers", len(b), columns)
	}
	for ; at < len(b); at += 8 {
		row = append(row, int64(binary.LittleEndian.Uint64(b[at:])))
	}
	return row, nil
}

// pgPrepared runs them in PostgreSQL's extended protocol, values as text.
type pgPrepared struct {
	c    *wire.PostgresConn
	kept map[string]string // text -> name
}

func (p *pgPrepared) execute(sql string, args []int64) ([][]int64, error) {
	var b []byte
	name, known := p.kept[sql]
	if !known {
		name = fmt.Sprintf("history_%d", len(p.kept))
		text := sql
		for i := range args {
			text = strings.Replace(text, "?", fmt.Sprintf("$%d", i+1), 1)
		}
		b = wire.AppendParse(b, name, text, nil)
	}
	var values []wire.Value
	for _, a := range args {
		values = append(values, wire.Value{Bytes: strconv.AppendInt(nil, a, 10)})
	}
	b = wire.AppendDescribe(wire.AppendBind(b, "", name, values, nil), 'P', "")
	if err := p.c.Send(wire.AppendSync(wire.AppendExecute(b, "", 0))); err != nil {
		return nil, err
	}
	out, err := p.c.ReadReady(1, nil)
	if err != nil {
		return nil, err
	}
	var rows [][]int64
	for _, m := range out {
		switch m.Kind {
		case "1": // ParseComplete
			p.kept[sql] = name
		case "E":
			return nil, wire.PostgresError(m.Body)
		case "D":
			cells, err := wire.DataRow(m.Body)
			if err != nil {
				return nil, err
			}
			row, err := integers(cells)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}
