package mysql

import (
	"errors"

	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// send writes one payload to the client as a packet with this number.
func (h *handler) send(seq uint8, payload []byte) {
	h.scratch, _ = wire.AppendPacket(h.scratch[:0], seq, payload)
	h.s.Write(h.scratch)
}

// fail answers the current command with an error.
func (h *handler) fail(e wire.ServerError) {
	h.send(h.commandSeq()+1, e.Append(nil, h.caps))
}

// fatal sends an error and closes the client.
func (h *handler) fatal(seq uint8, e wire.ServerError) {
	h.send(seq, e.Append(nil, h.caps|wire.ClientProtocol41))
	h.close()
}

// close closes the client; what it still sends is not looked at.
func (h *handler) close() {
	h.phase = phaseOver
	h.s.Close()
}

// ok answers the current command.
func (h *handler) ok() {
	o := wire.OK{Status: h.status}
	h.send(h.commandSeq()+1, o.Append(nil, h.caps))
}

// commandSeq is the number of the current command's last packet.
func (h *handler) commandSeq() uint8 {
	seq := uint8(0)
	for at := 0; at+wire.HeaderLen <= len(h.raw); {
		hd, err := wire.DecodeHeader(h.raw[at:])
		if err != nil {
			break
		}
		seq = hd.Seq
		at += wire.HeaderLen + hd.Length
	}
	return seq
}

// linkError is what the client is told when there is no link: the upstream's
// own refusal as it is, otherwise why it cannot be reached.
func (h *handler) linkError(err error) wire.ServerError {
	var refusal wire.ServerError
	switch {
	case errors.As(err, &refusal):
		if refusal.Number == wire.ErrNumAccessDenied {
			// The client proved to know the password; the fault is ours.
			return wire.NewError(wire.ErrNumServerShutdown, "freshet: the upstream refuses the user: %s", refusal.Message)
		}
		if refusal.State == "" {
			refusal.State = wire.SQLState(refusal.Number)
		}
		return refusal
	case errors.Is(err, proxy.ErrPoolTimeout):
		return wire.NewError(wire.ErrNumTooManyConnections, "freshet: no upstream connection came free in time (see --max-links)")
	}
	return wire.NewError(wire.ErrNumServerShutdown, "freshet: the upstream cannot be reached: %v", err)
}
