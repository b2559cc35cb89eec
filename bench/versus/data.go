package versus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"freshet/bench/load"
	"freshet/bench/wire"
)

// Rows is how many rows the bench's table has, with ids from 1.
const Rows = 10000

const table = "freshet_bench_items"

// rowsPerInsert keeps each INSERT well below any server's packet limit.
const rowsPerInsert = 500

// LoadTable makes the bench's table on the server at dsn.
func LoadTable(ctx context.Context, dsn string) error {
	script := []string{
		"DROP TABLE IF EXISTS " + table,
		"CREATE TABLE " + table + " (id INT PRIMARY KEY, sku VARCHAR(20) NOT NULL, name VARCHAR(100) NOT NULL, price DECIMAL(10,2) NOT NULL, qty INT NOT NULL, note VARCHAR(200))",
	}
	for at := 1; at <= Rows; at += rowsPerInsert {
		var rows []string
		for id := at; id < at+rowsPerInsert; id++ {
			rows = append(rows, fmt.Sprintf("(%d,'sku-%06d','Article number %d',%d.%02d,%d,'%s')", id, id, id, id%500, id%100, id%70, strings.Repeat("n", 40+id%40)))
		}
		script = append(script, "INSERT INTO "+table+" VALUES "+strings.Join(rows, ","))
	}
	return Exec(ctx, dsn, script...)
}

// DropTable takes the table away again.
func DropTable(ctx context.Context, dsn string) error {
	return Exec(ctx, dsn, "DROP TABLE IF EXISTS "+table)
}

// execPatience bounds one script.
const execPatience = 2 * time.Minute

// Exec runs statements on a connection of its own.
func Exec(ctx context.Context, dsn string, statements ...string) (err error) {
	c, err := Dial(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for _, s := range statements {
		if _, err := c.Query(s); err != nil {
			return fmt.Errorf("%.60s: %w", s, err)
		}
	}
	return nil
}

// Client is one connection for a few texts; it knows both dialects.
type Client struct {
	mysql    *wire.MySQLConn
	postgres *wire.PostgresConn
}

// Dial connects; the whole life of the connection is bounded.
func Dial(ctx context.Context, dsn string) (*Client, error) {
	t, err := wire.Parse(dsn)
	if err != nil {
		return nil, err
	}
	c := &Client{}
	if t.Dialect == wire.MySQL {
		if c.mysql, err = wire.DialMySQL(ctx, t, wire.MySQLOptions{}); err != nil {
			return nil, err
		}
		return c, c.mysql.Net.SetDeadline(time.Now().Add(execPatience))
	}
	if c.postgres, err = wire.DialPostgres(ctx, t, wire.PostgresOptions{}); err != nil {
		return nil, err
	}
	return c, c.postgres.Net.SetDeadline(time.Now().Add(execPatience))
}

// Close says goodbye.
func (c *Client) Close() error {
	if c.mysql != nil {
		return c.mysql.Close()
	}
	return c.postgres.Close()
}

// Extend gives the connection another while to live.
func (c *Client) Extend() error {
	if c.mysql != nil {
		return c.mysql.Net.SetDeadline(time.Now().Add(execPatience))
	}
	return c.postgres.Net.SetDeadline(time.Now().Add(execPatience))
}

// Query runs a text and returns its rows, each value as text; nil is NULL. A
// refusal is an error.
func (c *Client) Query(sql string) ([][][]byte, error) {
	var reply []wire.Message
	var err error
	split, kind := wire.DataRow, "D"
	if c.mysql != nil {
		split, kind = wire.TextRow, wire.KindRow
		reply, err = c.mysql.Query(sql)
	} else {
		reply, err = c.postgres.Query(sql)
	}
	if err != nil {
		return nil, err
	}
	var rows [][][]byte
	for _, m := range reply {
		if m.Kind != kind {
			continue
		}
		row, err := split(m.Body)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Columns are the names of the columns that a text's first result has.
func (c *Client) Columns(sql string) (names []string, rows [][][]byte, err error) {
	if c.mysql != nil {
		return c.mysql.Table(sql)
	}
	return c.postgres.Table(sql)
}

const columns = "SELECT id, sku, name, price, qty, note FROM " + table + " WHERE id = ?"

// PointReads asks for single rows by their key; distinct keys in turn.
func PointReads(mode load.Mode, depth int, distinct int64) load.Workload {
	return load.Workload{
		Mode: mode, Depth: depth, Distinct: distinct,
		Statements: []load.Statement{{SQL: columns, Args: func(n int64) []int64 { return []int64{1 + n%Rows} }}},
	}
}

// FreshReads asks for rows in a way that was never asked before: the
// conditions on qty and price hold for every row.
func FreshReads(mode load.Mode, depth int) load.Workload {
	return load.Workload{
		Mode: mode, Depth: depth,
		Statements: []load.Statement{{
			SQL:  columns + " AND qty > ? AND price > ?",
			Args: func(n int64) []int64 { return []int64{1 + n%Rows, -1 - n&(1<<30-1), -1 - n>>32} },
		}},
	}
}

// Mixed makes one call in every an update of one row, the others point reads.
func Mixed(mode load.Mode, depth int, distinct, every int64) load.Workload {
	w := PointReads(mode, depth, distinct)
	w.Statements = append(w.Statements, load.Statement{
		SQL:  "UPDATE " + table + " SET qty = qty + 1 WHERE id = ?",
		Args: func(n int64) []int64 { return []int64{1 + n*31%Rows} },
	})
	w.Pick = func(n int64) int {
		if n%every == every-1 {
			return 1
		}
		return 0
	}
	return w
}
