package gate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"freshet/bench/wire"
)

var postgresTables = []string{
	`CREATE TYPE mood AS ENUM ('new','open','sold','gone')`,
	`CREATE TYPE pairing AS (a int, b text)`,
	`CREATE DOMAIN amount AS numeric(10,2) CHECK (VALUE > -1000)`,
	`CREATE TABLE items (
		id int PRIMARY KEY, sku varchar(40) NOT NULL UNIQUE, name text, note text, price numeric(10,2), qty int, state mood NOT NULL DEFAULT 'new',
		tags text[], nums int[], made timestamp(3), seen timestamptz, day date, tick time(2), took interval, big bigint, small smallint,
		f real, d double precision, bits bit(10), vbits bit varying(20), bl bytea, j json, jb jsonb, ch char(12), u uuid, flag boolean, cash amount,
		net inet, r int4range, pair pairing, c "char", free numeric)`,
	`CREATE INDEX ON items (state)`,
	`CREATE TABLE customers (id int PRIMARY KEY, name text, email text, country char(2), balance numeric(12,4))`,
	`CREATE TABLE orders (id bigint PRIMARY KEY, customer int NOT NULL REFERENCES customers(id) ON DELETE CASCADE, item int, total numeric(12,4), placed timestamp)`,
	`CREATE INDEX ON orders (customer)`,
	`CREATE TABLE kv (k text PRIMARY KEY, v text)`,
	`CREATE TABLE hollow (id int PRIMARY KEY, v varchar(20))`,
	`CREATE TABLE shape (id int PRIMARY KEY, v varchar(20))`,
	`CREATE TABLE swap_a (id int PRIMARY KEY, v varchar(20))`,
	`CREATE TABLE swap_b (id int PRIMARY KEY, v varchar(20))`,
	`CREATE TABLE parts (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)`,
	`CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (20)`,
	`CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (20) TO (1000000)`,
	`CREATE TABLE elders (id int PRIMARY KEY, v text)`,
	`CREATE TABLE heirs (extra int) INHERITS (elders)`,
	`CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY, v text)`,
	`CREATE TABLE nokey (id int, v text)`,
	`ALTER TABLE nokey REPLICA IDENTITY FULL`,
	`CREATE TABLE marker (n bigint)`,
	`ALTER TABLE marker REPLICA IDENTITY FULL`,
	`CREATE TABLE audit (what text PRIMARY KEY, n int)`,
	`CREATE VIEW open_items AS SELECT id, name, qty FROM items WHERE state = 'open'`,
	`CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(total) AS total FROM orders GROUP BY customer`,
	`CREATE FUNCTION count_kv() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE freshet_gate.audit SET n = n + 1 WHERE what = ''kv''; RETURN NEW; END'`,
	`CREATE TRIGGER kv_counted AFTER UPDATE ON kv FOR EACH ROW EXECUTE FUNCTION count_kv()`,
	`CREATE FUNCTION bump(who bigint) RETURNS int LANGUAGE sql AS 'UPDATE freshet_gate.items SET qty = qty + 1 WHERE id = who RETURNING qty'`,
	`CREATE FUNCTION twice(n bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT n * 2'`,
	`CREATE FUNCTION items_of(s text) RETURNS SETOF int LANGUAGE sql STABLE AS 'SELECT id FROM freshet_gate.items WHERE state::text = s ORDER BY id'`,
	`INSERT INTO audit VALUES ('kv', 0)`,
	`INSERT INTO marker VALUES (0)`,
	`INSERT INTO shape VALUES (1,'one'),(2,'two'),(3,'three')`,
	`INSERT INTO swap_a VALUES (1,'from a'),(2,'also a')`,
	`INSERT INTO swap_b VALUES (1,'from b'),(3,'also b')`,
	`INSERT INTO parts VALUES (1,'low'),(2,'low'),(30,'high'),(31,'high')`,
	`INSERT INTO elders VALUES (1,'elder')`,
	`INSERT INTO heirs VALUES (2,'heir',5)`,
	`INSERT INTO unlogged VALUES (1,'lost in a crash')`,
	`INSERT INTO nokey VALUES (1,'a'),(1,'a'),(2,'b')`,
}

const postgresLaneTable = `CREATE TABLE %s (id serial PRIMARY KEY, a int UNIQUE, b varchar(50), c numeric(10,3), at timestamp, e bytea)`

func postgresDialect(direct, through wire.Target) *dialect {
	side := func(isThrough bool) wire.Target {
		if isThrough {
			return through
		}
		return direct
	}
	oids := make(map[string]uint32)
	d := &dialect{
		setup: func(ctx context.Context, pairs int) error { return setupPostgres(ctx, direct, pairs, oids) },
		teardown: func(ctx context.Context) error {
			return postgresScript(ctx, direct, "DROP SCHEMA "+database+" CASCADE")
		},
		connect: func(ctx context.Context, n int, isThrough bool) (lane, error) {
			l, err := dialPostgresLane(ctx, side(isThrough), n, isThrough)
			if err != nil {
				return nil, err
			}
			pg := l.(*postgresLane)
			pg.oid, pg.newest = oids[pg.places.lane], slices.Max(slices.Collect(maps.Values(oids)))
			return pg, nil
		},
		reads: postgresReads, writes: postgresWrites, scenes: postgresScenes,
		modes:  []mode{text, text, prepared, prepared, once, unnamed, unnamed, cursor, flushed},
		binary: true,
	}
	for _, l := range []struct {
		name    string
		change  func(t *wire.Target)
		options map[string]string
	}{
		{"wrong password", func(t *wire.Target) { t.Password += "x" }, nil},
		{"unknown user", func(t *wire.Target) { t.User = "nobody_here" }, nil},
		{"unknown database", func(t *wire.Target) { t.Database = "no_such_db" }, nil},
		{"unknown parameter", func(*wire.Target) {}, map[string]string{"no_such_parameter": "1"}},
		{"impossible parameter", func(*wire.Target) {}, map[string]string{"timezone": "No/Where"}},
	} {
		d.logins = append(d.logins, login{l.name, func(ctx context.Context, isThrough bool) ([]wire.Message, error) {
			t := side(isThrough)
			l.change(&t)
			return postgresLogin(ctx, t, wire.PostgresOptions{Parameters: l.options})
		}})
	}
	return d
}

// postgresScript runs statements on a connection of its own.
func postgresScript(ctx context.Context, t wire.Target, statements ...string) (err error) {
	c, err := wire.DialPostgres(ctx, t, wire.PostgresOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.Net.SetDeadline(time.Now().Add(2 * opTimeout)); err != nil {
		return err
	}
	for _, s := range statements {
		if _, err := c.Query(s); err != nil {
			return fmt.Errorf("%.80s: %w", s, err)
		}
	}
	return nil
}

// setupPostgres makes the schema and notes its tables' OIDs.
func setupPostgres(ctx context.Context, t wire.Target, pairs int, oids map[string]uint32) (err error) {
	script := []string{"DROP SCHEMA IF EXISTS " + database + " CASCADE", "CREATE SCHEMA " + database, "SET search_path = " + database}
	script = append(script, postgresTables...)
	for n := range pairs {
		script = append(script, fmt.Sprintf(postgresLaneTable, placesOf(n, false, "").lane), fmt.Sprintf(postgresLaneTable, placesOf(n, true, "").lane))
	}
	script = append(script, postgresRows()...)
	// Plans must not change while the gate runs, or rows would come in another
	// order where none is asked for.
	if err := postgresScript(ctx, t, append(script, "ANALYZE")...); err != nil {
		return err
	}
	c, err := wire.DialPostgres(ctx, t, wire.PostgresOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	reply, err := c.Query("SELECT relname, oid FROM pg_class WHERE relnamespace = '" + database + "'::regnamespace AND relkind IN ('r', 'v', 'm', 'p')")
	if err != nil {
		return err
	}
	for _, m := range reply {
		if m.Kind != "D" {
			continue
		}
		row, err := wire.DataRow(m.Body)
		if err != nil {
			return err
		}
		oid, err := strconv.ParseUint(string(row[1]), 10, 32)
		if err != nil {
			return err
		}
		oids[string(row[0])] = uint32(oid)
	}
	return nil
}

// postgresRows fills the shared tables, the same at every run.
func postgresRows() []string {
	var out, rows []string
	for i := 1; i <= itemCount; i++ {
		w := func(step int) string { return literal(words[i*step%len(words)], false) }
		at := epoch.Add(time.Duration(i) * 25 * time.Hour)
		rows = append(rows, fmt.Sprintf("(%d,'sku-%02d',%s,%s,%d.%02d,%d,'%s',ARRAY[%s,NULL,'{x}'],ARRAY[%d,%d],'%s','%s+00','%s','%02d:%02d:%02d.5','%d days %d seconds',%d,%d,%g,%g,B'%010b',B'%b',%s,'{\"n\": %d, \"n\": 2}','{\"b\": [1, null], \"a\": %d}',%s,'00000000-0000-4000-8000-%012d',%t,%d,'10.0.%d.0/24','[%d,%d)',ROW(%d,%s),'%c',%s)",
			i, i, w(1), orNothing(i%5 == 0, w(3)), i, i*7%100, i%8, states[i%4], w(2), i, -i, at.Format("2006-01-02 15:04:05.000"), at.Format("2006-01-02 15:04:05"),
			at.Format("2006-01-02"), i%24, i%60, i*7%60, i, i*3, int64(i)<<40, i*100, float64(i)/4, float64(i)*1.1, i%1024, i,
			literal([]byte{byte(i), 0, 0xff}, false), i, i, w(5), i, i%2 == 0, i, i, i, i+10, i, w(4), 'a'+i%26, []string{"'NaN'", "0.000", "1e40", "-12.3400"}[i%4]))
	}
	out = append(out, "INSERT INTO items VALUES "+strings.Join(rows, ","))
	rows = nil
	for i := 1; i <= customerCount; i++ {
		rows = append(rows, fmt.Sprintf("(%d,%s,'c%d@example.com','%s',%d.5)", i, literal(words[i%len(words)], false), i, []string{"de", "jp", "br"}[i%3], i*100))
	}
	out = append(out, "INSERT INTO customers VALUES "+strings.Join(rows, ","))
	out = append(out, "INSERT INTO orders VALUES "+strings.Join(orderRows(), ","))
	for i, size := range []int{0, 1, 250, 251, 70000, 300000} {
		out = append(out, fmt.Sprintf("INSERT INTO kv VALUES ('k%d', '%s')", i, strings.Repeat("v", size)))
	}
	return out
}
