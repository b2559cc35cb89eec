package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"freshet/bench/wire"
)

const database = "freshet_gate"

var mysqlTables = []string{
	`CREATE TABLE items (
		id INT PRIMARY KEY, sku VARCHAR(40) NOT NULL, name VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci,
		note TEXT, price DECIMAL(10,2), qty INT, state ENUM('new','open','sold','gone') NOT NULL DEFAULT 'new',
		tags SET('red','green','blue'), made DATETIME(3), seen TIMESTAMP NULL, day DATE, tick TIME(2), yr YEAR,
		big BIGINT UNSIGNED, tiny TINYINT, small SMALLINT UNSIGNED, med MEDIUMINT, f FLOAT, d DOUBLE, bits BIT(10),
		fixed BINARY(8), vb VARBINARY(40), j JSON, bl BLOB, ch CHAR(12), latin VARCHAR(40) CHARACTER SET latin1,
		exact VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, flag BOOLEAN,
		UNIQUE KEY sku (sku), KEY state (state), KEY qty (qty, state)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`,
	`CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(80), email VARCHAR(120), country CHAR(2), balance DECIMAL(12,4), KEY (country)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`,
	`CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INT NOT NULL, item INT, total DECIMAL(12,4), placed DATETIME, KEY (customer), KEY (item),
		FOREIGN KEY (customer) REFERENCES customers(id) ON DELETE CASCADE) ENGINE=InnoDB`,
	`CREATE TABLE kv (k VARCHAR(64) PRIMARY KEY, v LONGTEXT) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`,
	`CREATE TABLE hollow (id INT PRIMARY KEY, v VARCHAR(20)) ENGINE=InnoDB`,
	`CREATE TABLE shape (id INT PRIMARY KEY, v VARCHAR(20)) ENGINE=InnoDB`,
	`CREATE TABLE swap_a (id INT PRIMARY KEY, v VARCHAR(20)) ENGINE=InnoDB`,
	`CREATE TABLE swap_b (id INT PRIMARY KEY, v VARCHAR(20)) ENGINE=InnoDB`,
	`CREATE TABLE parts (id INT PRIMARY KEY, v VARCHAR(20)) ENGINE=InnoDB PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (20), PARTITION p1 VALUES LESS THAN (1000000))`,
	`CREATE TABLE marker (n BIGINT) ENGINE=InnoDB`,
	`INSERT INTO marker VALUES (0)`,
	`CREATE TABLE audit (what VARCHAR(20) PRIMARY KEY, n INT) ENGINE=InnoDB`,
	`CREATE VIEW open_items AS SELECT id, name, qty FROM items WHERE state = 'open'`,
	`CREATE TRIGGER kv_counted AFTER UPDATE ON kv FOR EACH ROW UPDATE audit SET n = n + 1 WHERE what = 'kv'`,
	`CREATE PROCEDURE bump(IN who INT) UPDATE items SET qty = qty + 1 WHERE id = who`,
	`CREATE PROCEDURE two(IN a INT) BEGIN SELECT id, name FROM items WHERE id = a; SELECT COUNT(*) FROM items; END`,
	`INSERT INTO audit VALUES ('kv', 0)`,
	`INSERT INTO shape VALUES (1,'one'),(2,'two'),(3,'three')`,
	`INSERT INTO swap_a VALUES (1,'from a'),(2,'also a')`,
	`INSERT INTO swap_b VALUES (1,'from b'),(3,'also b')`,
	`INSERT INTO parts VALUES (1,'low'),(2,'low'),(30,'high'),(31,'high')`,
}

const mysqlLaneTable = `CREATE TABLE %s (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(50), c DECIMAL(10,3), at DATETIME, e BLOB, UNIQUE KEY (a)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`

func mysqlDialect(direct, through wire.Target) *dialect {
	direct.Database, through.Database = database, database
	side := func(isThrough bool) wire.Target {
		if isThrough {
			return through
		}
		return direct
	}
	d := &dialect{
		setup:    func(ctx context.Context, pairs int) error { return setupMySQL(ctx, direct, pairs) },
		teardown: func(ctx context.Context) error { return mysqlScript(ctx, direct.In(""), "DROP DATABASE "+database) },
		connect: func(ctx context.Context, n int, isThrough bool) (lane, error) {
			return dialMySQLLane(ctx, side(isThrough), n, placesOf(n, isThrough, ""))
		},
		reads: mysqlReads, writes: mysqlWrites, scenes: mysqlScenes,
		modes: []mode{text, text, prepared, prepared, once, cursor},
	}
	for _, l := range []struct {
		name   string
		change func(t *wire.Target)
	}{
		{"wrong password", func(t *wire.Target) { t.Password += "x" }},
		{"no password", func(t *wire.Target) { t.Password = "" }},
		{"unknown user", func(t *wire.Target) { t.User = "nobody_here" }},
		{"unknown database", func(t *wire.Target) { t.Database = "no_such_db" }},
	} {
		d.logins = append(d.logins, login{l.name, func(ctx context.Context, isThrough bool) ([]wire.Message, error) {
			t := side(isThrough)
			l.change(&t)
			return mysqlLogin(t)(ctx)
		}})
	}
	return d
}

// placesOf names what belongs to one side of pair n.
func placesOf(n int, through bool, schema string) places {
	suffix, key := "d", 2*n
	if through {
		suffix, key = "t", 2*n+1
	}
	return places{lane: fmt.Sprintf("lane%d_%s", n, suffix), key: fmt.Sprint(7000 + key), schema: schema}
}

// mysqlScript runs statements on a connection of its own.
func mysqlScript(ctx context.Context, t wire.Target, statements ...string) (err error) {
	c, err := wire.DialMySQL(ctx, t, wire.MySQLOptions{})
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

func setupMySQL(ctx context.Context, t wire.Target, pairs int) error {
	err := mysqlScript(ctx, t.In(""),
		"DROP DATABASE IF EXISTS "+database, "CREATE DATABASE "+database+" DEFAULT CHARACTER SET utf8mb4")
	if err != nil {
		return err
	}
	script := append([]string(nil), mysqlTables...)
	for n := range pairs {
		script = append(script, fmt.Sprintf(mysqlLaneTable, placesOf(n, false, "").lane), fmt.Sprintf(mysqlLaneTable, placesOf(n, true, "").lane))
	}
	return mysqlScript(ctx, t, append(script, mysqlRows()...)...)
}

// mysqlRows fills the shared tables, the same at every run.
func mysqlRows() []string {
	var out, rows []string
	for i := 1; i <= itemCount; i++ {
		w := func(step int) string { return literal(words[i*step%len(words)], true) }
		at := epoch.Add(time.Duration(i) * 25 * time.Hour)
		rows = append(rows, fmt.Sprintf("(%d,'sku-%02d',%s,%s,%d.%02d,%d,'%s','%s','%s','%s','%s','%02d:%02d:%02d.5',%d,%d,%d,%d,%d,%g,%g,b'%010b',x'%04x',%s,'{\"n\": %d, \"t\": [1, null]}',%s,%s,'caf\u00e9 %d',%s,%d)",
			i, i, w(1), orNothing(i%5 == 0, w(3)), i, i*7%100, i%8, states[i%4], []string{"", "red", "red,blue", "green"}[i%4],
			at.Format("2006-01-02 15:04:05.000"), at.Format("2006-01-02 15:04:05"), at.Format("2006-01-02"), i%24, i%60, i*7%60,
			1990+i, uint64(1<<63)+uint64(i), i%256-128, i*1000, -i*3000, float64(i)/4, float64(i)*1.1, i%1024, i*257,
			literal([]byte{byte(i), 0, 0xff}, true), i, orNothing(i%4 == 0, literal([]byte(words[i%len(words)]), true)), w(5), i, w(7), i%2))
	}
	out = append(out, "INSERT INTO items VALUES "+strings.Join(rows, ","))
	rows = nil
	for i := 1; i <= customerCount; i++ {
		rows = append(rows, fmt.Sprintf("(%d,%s,'c%d@example.com','%s',%d.5)", i, literal(words[i%len(words)], true), i, []string{"de", "jp", "br"}[i%3], i*100))
	}
	out = append(out, "INSERT INTO customers VALUES "+strings.Join(rows, ","))
	out = append(out, "INSERT INTO orders VALUES "+strings.Join(orderRows(), ","))
	for i, size := range []int{0, 1, 250, 251, 70000, 300000} {
		out = append(out, fmt.Sprintf("INSERT INTO kv VALUES ('k%d', '%s')", i, strings.Repeat("v", size)))
	}
	return out
}

func orNothing(nothing bool, s string) string {
	if nothing {
		return "NULL"
	}
	return s
}

func orderRows() []string {
	var rows []string
	for i := 1; i <= orderCount; i++ {
		rows = append(rows, fmt.Sprintf("(%d,%d,%s,%d.%04d,'%s')", i, 1+i%customerCount, orNothing(i%11 == 0, fmt.Sprint(1+i%itemCount)),
			i*3, i*137%10000, epoch.Add(time.Duration(i)*time.Hour).Format("2006-01-02 15:04:05")))
	}
	return rows
}
