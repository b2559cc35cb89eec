package mysql

import (
	wire "freshet/protocol/mysql"
)

// file passes the client's packets of LOAD DATA LOCAL on, as they come; an
// empty packet ends them.
func (h *handler) file(in []byte) int {
	used := 0
	for used < len(in) {
		if h.fileRest > 0 {
			n := min(h.fileRest, len(in)-used)
			used, h.fileRest = used+n, h.fileRest-n
			continue
		}
		hd, err := wire.DecodeHeader(in[used:])
		if err != nil {
			break
		}
		used += wire.HeaderLen
		h.fileRest = hd.Length
		if hd.Length == 0 {
			h.reply.tracker.FileSent(hd.Seq)
			h.phase = phaseCommand
			h.s.Blocked = true
			break
		}
	}
	if h.s.Link != nil {
		h.s.Link.Write(in[:used])
	}
	return used
}
