package postgres

import (
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	pg "freshet/protocol/postgres"
	"freshet/proxy"
)

func itoa(n int) string { return strconv.Itoa(n) }

// fatal says an error that ends the session.
func (h *handler) fatal(sqlState, message string) {
	h.s.Write(pg.AppendError(nil, pg.SeverityFatal, sqlState, message))
	h.stage = stageClosed
	h.abandon()
	h.s.Close()
}

// LinkLost: the upstream closed the link. What the session had there is gone,
// as it is for a client whose server closes the connection.
func (h *handler) LinkLost(err error) {
	h.linkReady, h.streaming = false, 0
	if h.stage == stageClosed {
		return
	}
	if h.farewell {
		h.stage = stageClosed
		h.abandon()
		h.s.Close()
		return
	}
	h.s.Log().Debug("link lost", "cause", err)
	h.fatal("08006", "the upstream server closed the connection unexpectedly")
}

// noLink tells the client why there is no link: its statement fails, the
// session lives on.
func (h *handler) noLink(err error) {
	// A client that believes in its transaction would go on in none.
	fatal := h.stage == stageGreet || h.held != nil
	severity := pg.SeverityError
	if fatal {
		severity = pg.SeverityFatal
	}
	message := linkError(severity, err)
	h.s.Log().Debug("no link", "cause", err)
	if fatal {
		h.s.Write(message)
		h.stage = stageClosed
		h.abandon()
		h.s.Close()
		return
	}
	if h.claim != nil && h.claim.capture != nil {
		h.claim.capture.end(false)
	}
	h.claim = nil
	h.refusal = message
}

// linkError words a failed dial: the upstream's own error if it sent one.
func linkError(severity string, err error) []byte {
	var own *pgconn.PgError
	switch {
	case errors.As(err, &own):
		var extra []pg.ErrorField
		if own.Detail != "" {
			extra = append(extra, pg.ErrorField{Code: pg.FieldDetail, Value: []byte(own.Detail)})
		}
		if own.Hint != "" {
			extra = append(extra, pg.ErrorField{Code: pg.FieldHint, Value: []byte(own.Hint)})
		}
		return pg.AppendError(nil, severity, own.Code, own.Message, extra...)
	case errors.Is(err, proxy.ErrPoolTimeout):
		return pg.AppendError(nil, severity, "53300", "no upstream connection came free in time")
	}
	return pg.AppendError(nil, severity, "08001", "the upstream server cannot be reached")
}

// refuse answers one statement with the refusal: a simple query at once, an
// extended one by skipping to its Sync.
func (h *handler) refuse(kind byte) bool {
	switch kind {
	case pg.TypeQuery, pg.TypeFunctionCall:
		h.s.Write((&pg.ReadyForQuery{Status: pg.TxIdle}).Append(h.refusal))
		h.refusal = nil
	case pg.TypeCopyData, pg.TypeCopyDone, pg.TypeCopyFail, pg.TypeFlush:
		// Ignored outside a COPY; they are not the statement that failed.
	default:
		h.failBatch(h.refusal)
		h.refusal = nil
		if kind == pg.TypeSync {
			return h.sync(nil)
		}
	}
	return true
}

// failBatch tells an error made up here, while nothing is pending upstream,
// and skips to the Sync.
func (h *handler) failBatch(message []byte) {
	h.s.Write(message)
	h.skipToSync = true
}

// broken: the upstream's bytes make no sense; the link cannot be followed.
func (h *handler) brokenLink(err error) {
	h.s.Malformed()
	h.s.Log().Error("upstream's messages cannot be followed", "cause", err)
	h.stage = stageClosed
	h.abandon()
	h.s.DropLink()
	h.s.Write(pg.AppendError(nil, pg.SeverityFatal, "08P01", "the upstream server's messages cannot be followed"))
	h.s.Close()
}
