package feed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"freshet/cache/feed/side"
)

// pgSide is a line for questions.
type pgSide = side.Line[*pgconn.PgConn]

// newSide makes a line to the server whose log is followed.
func (s *pgSource) newSide() *pgSide { return side.New(s.sideKind()) }

func (s *pgSource) sideKind() side.Kind[*pgconn.PgConn] {
	return side.Kind[*pgconn.PgConn]{
		Dial:   s.dialSide,
		Server: func() string { return s.fact().identity },
		Elsewhere: func(string) error {
			err := fmt.Errorf("feed: %s is now another server, or was restarted", s.config.Host)
			s.feed.cut(err)
			return err
		},
		Judge: judgePg,
		// Every call on the connection is given the context, and heeds it.
		Interrupt: func(*pgconn.PgConn) {},
		Close:     closePg,
	}
}

// dialSide opens a line and names the run of the server at its other end.
func (s *pgSource) dialSide(ctx context.Context) (*pgconn.PgConn, string, error) {
	return s.dialWith(ctx, nil)
}

func (s *pgSource) dialWith(ctx context.Context, own map[string]string) (*pgconn.PgConn, string, error) {
	conn, err := s.connectAs(ctx, own)
	if err != nil {
		return nil, "", err
	}
	identity, err := pgIdentity(ctx, conn)
	if err != nil {
		closePg(conn)
		return nil, "", err
	}
	return conn, identity, nil
}

// judgePg keeps a line that is ready for the next question: pgconn closes one
// that broke or was ended by the server.
func judgePg(c *pgconn.PgConn, _ error) side.Fate {
	switch {
	case c.IsClosed():
		return side.Broken
	case c.IsBusy() || c.TxStatus() != 'I':
		return side.Drop
	}
	return side.Keep
}

// closePg takes leave of the server, if that needs no waiting.
func closePg(c *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		return // what was wrong with it was told by whoever used it
	}
}

// pgIdentity names one run of one server.
func pgIdentity(ctx context.Context, c *pgconn.PgConn) (string, error) {
	r, err := c.Exec(ctx, "SELECT (EXTRACT(epoch FROM pg_catalog.pg_postmaster_start_time()) * 1000000)::bigint::text || ':' || "+
		"current_setting('port')").ReadAll()
	if err != nil {
		return "", err
	}
	if len(r) != 1 || len(r[0].Rows) != 1 || len(r[0].Rows[0]) != 1 {
		return "", errors.New("feed: the server does not say since when it runs")
	}
	return string(r[0].Rows[0][0]), nil
}
