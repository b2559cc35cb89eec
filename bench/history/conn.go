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
	prepared
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
		return &conn{c.Net, c, &myPrepared{c, make(map[string]*myStatement)}}, nil
	}
	c, err := wire.DialPostgres(ctx, t, wire.PostgresOptions{})
	if err != nil {
		return nil, err
	}
	return &conn{c.Net, c, &pgPrepared{c, make(map[string]string)}}, nil
}

// ask runs a statement and returns its rows.
func (c *conn) ask(sql string) ([][][]byte, error) {
	if err := c.net.SetDeadline(time.Now().Add(opPatience)); err != nil {
		return nil, err
	}
	_, rows, err := c.Table(sql)
	return rows, err
}

// numbers runs a statement, ? in it a parameter, whose columns are all
// integers: prepared, or as text.
func (c *conn) numbers(prepared bool, sql string, args ...int64) (out [][]int64, err error) {
	if prepared {
		if err := c.net.SetDeadline(time.Now().Add(opPatience)); err != nil {
			return nil, err
		}
		return c.execute(sql, args)
	}
	rows, err := c.ask(filled(sql, args))
	if err != nil {
		return nil, err
	}
	for _, cells := range rows {
		row, err := integers(cells)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", sql, err)
		}
		out = append(out, row)
	}
	return out, nil
}

// filled has the parameters' values in their places.
func filled(sql string, args []int64) string {
	for _, a := range args {
		sql = strings.Replace(sql, "?", strconv.FormatInt(a, 10), 1)
	}
	return sql
}

func integers(cells [][]byte) (row []int64, err error) {
	for _, cell := range cells {
		n, err := strconv.ParseInt(string(cell), 10, 64)
		if err != nil {
			return nil, err
		}
		row = append(row, n)
	}
	return row, nil
}

// fromMemory asks Freshet whether the last answer came from memory.
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
