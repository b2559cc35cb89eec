package postgres

import (
	"context"
	"io"
	"net"
	"strconv"
	"time"

	pg "freshet/protocol/postgres"
)

// cancelRequest passes another connection's request to the session it names,
// if the key is that session's. It is never answered.
func (h *handler) cancelRequest(body []byte) {
	h.stage = stageClosed
	defer h.s.Close()
	var m pg.CancelRequest
	if m.Decode(body) != nil {
		h.s.Malformed()
		return
	}
	other := h.s.Loop.Server().FindSession(uint64(m.ProcessID))
	if other == nil || other.Upstream != h.s.Upstream {
		return
	}
	m.Secret = clone(m.Secret)
	target, ok := other.Handler.(*handler)
	if !ok {
		return
	}
	other.Post(func() {
		if m.Matches(&target.key) {
			target.cancel()
		}
	})
}

// cancel ends what the session has running upstream. The link stays with the
// session until the request was delivered, so that it cannot hit another's
// statement.
func (h *handler) cancel() {
	if h.s.Link == nil || h.replies.Idle() && !h.batch {
		return
	}
	ls := h.link()
	h.cancels++
	go func() {
		err := sendCancel(h.shared.config.Host, h.shared.config.Port, h.s.Upstream.ConnectTimeout, &ls.cancelKey)
		h.s.Post(func() {
			h.cancels--
			if err != nil {
				h.s.Log().Warn("cancel request not delivered", "cause", err)
			}
			h.settle()
		})
	}()
}

// sendCancel delivers a cancel request and waits until the server has closed
// the line, which it does once the backend was signalled. The server takes such
// requests without encryption whatever it demands of sessions.
func sendCancel(host string, port uint16, timeout time.Duration, m *pg.CancelRequest) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	network, address := "tcp", net.JoinHostPort(host, strconv.Itoa(int(port)))
	if len(host) > 0 && host[0] == '/' {
		network, address = "unix", host+"/.s.PGSQL."+strconv.Itoa(int(port))
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	if _, err := conn.Write(m.Append(nil)); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, conn); err != nil {
		return err
	}
	return nil
}
