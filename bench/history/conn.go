package history

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"freshet/bench/wire"
)

// opPatience ends an operation that nobody answers. The connection is closed
// then, without a word: a request to cancel is not sent, since that makes
// PostgreSQL show a commit that still waits for its standby (docs/linearizable.md).
const opPatience = 4 * time.Second

// conn is one connection, owned by one goroutine. It never repeats a statement:
// a driver that does, after an error that may have come too late, would write
// twice.
type conn struct {
	net net.Conn
	protocol
}

type protocol interface {
	Table(sql string) (names []string, rows [][][]byte, err error)
	Close() error
}

func dial(ctx context.Context, t wire.Target) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, opPatience)
	defer cancel()
	if t.Dialect == wire.MySQL {
		c, err := wire.DialMySQL(ctx, t, wire.MySQLOptions{Capabilities: wire.CapDeprecateEOF})
		if err != nil {
			return nil, err
		}
		return &conn{c.Net, c}, nil
	}
	c, err := wire.DialPostgres(ctx, t, wire.PostgresOptions{})
	if err != nil {
		return nil, err
	}
	return &conn{c.Net, c}, nil
}

// ask runs a statement and returns its rows.
func (c *conn) ask(sql string) ([][][]byte, error) {
	if err := c.net.SetDeadline(time.Now().Add(opPatience)); err != nil {
		return nil, err
	}
	_, rows, err := c.Table(sql)
	return rows, err
}

// numbers runs a statement whose columns are all integers.
func (c *conn) numbers(sql string) ([][]int64, error) {
	rows, err := c.ask(sql)
	if err != nil {
		return nil, err
	}
	out := make([][]int64, len(rows))
	for i, row := range rows {
		for _, cell := range row {
			n, err := strconv.ParseInt(string(cell), 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", sql, err)
			}
			out[i] = append(out[i], n)
		}
	}
	return out, nil
}

// source asks Freshet whether the last answer came from memory.
func (c *conn) fromMemory() (bool, error) {
	rows, err := c.ask("EXPLAIN LAST STATEMENT")
	if err != nil || len(rows) != 1 || len(rows[0]) == 0 {
		return false, err
	}
	return strings.HasPrefix(string(rows[0][0]), "cache"), nil
}

// refused tells whether an error is an answer, after which the connection is
// as good as before.
func refused(err error) bool {
	var my *wire.MySQLError
	var pg *pgconn.PgError
	return errors.As(err, &my) || errors.As(err, &pg) && pg.Severity != "FATAL"
}
