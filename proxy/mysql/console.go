package mysql

import (
	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// consoleDone answers with what one of Freshet's own commands gave. The
// command's bytes are still unconsumed; they are when they are offered again.
func (h *handler) consoleDone(r *proxy.Result) {
	h.stage.answered = true
	switch {
	case r.Err != nil:
		e := consoleError(r.Err)
		h.send(1, e.Append(nil, h.caps))
	case r.Columns == nil:
		o := wire.OK{Status: h.status}
		h.send(1, o.Append(nil, h.caps))
	default:
		h.scratch, _ = consoleResult(r, h.status).Append(h.scratch[:0], 1, h.caps, false)
		h.s.Write(h.scratch)
	}
}

func consoleResult(r *proxy.Result, status wire.Status) *wire.Result {
	out := &wire.Result{Status: status, Rows: make([][]*string, len(r.Rows))}
	for _, c := range r.Columns {
		if c.Numeric {
			out.Columns = append(out.Columns, wire.DoubleColumn(c.Name))
		} else {
			out.Columns = append(out.Columns, wire.TextColumn(c.Name))
		}
	}
	for i, row := range r.Rows {
		cells := make([]*string, len(row))
		for j := range row {
			cells[j] = &row[j]
		}
		out.Rows[i] = cells
	}
	return out
}

// consoleError finds the server error nearest to a console command's mistake.
func consoleError(e *proxy.ConsoleError) wire.ServerError {
	message := e.Message
	number := uint16(wire.ErrNumUnknown)
	switch e.Code {
	case proxy.ErrSyntax:
		number, message = wire.ErrNumParse, "You have an error in your SQL syntax; "+message
	case proxy.ErrDenied:
		number = wire.ErrNumSpecificAccessDenied
	case proxy.ErrUnsupported:
		number = wire.ErrNumNotSupported
	}
	return wire.NewError(number, "%s", message)
}
