// Package demo shows Freshet on a throwaway server: the same load direct and
// through it, a write made behind its back and seen through it, and what it
// keeps. It leaves nothing behind.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"freshet/bench/load"
	"freshet/bench/rig"
	"freshet/bench/upstream"
	"freshet/bench/versus"
)

// kinds are the servers a dialect can be shown on, the likeliest first.
var kinds = map[string][]upstream.Kind{
	"mysql":    {upstream.MariaDB, upstream.MySQL, upstream.MariaDB11},
	"postgres": {upstream.Postgres15, upstream.Postgres18},
}

// Dialects are what can be shown.
var Dialects = []string{"mysql", "postgres"}

// Run shows one dialect. The error wraps upstream.ErrUnavailable when the
// machine has no server of it.
func Run(ctx context.Context, out io.Writer, program, dialect string) error {
	server, core := rig.Cores()
	var missing []error
	for _, kind := range kinds[dialect] {
		begun := time.Now()
		a, err := rig.OpenArena(ctx, rig.ArenaConfig{Kind: kind, Program: program, ServerCore: server})
		if errors.Is(err, upstream.ErrUnavailable) {
			missing = append(missing, err)
			continue
		}
		if err != nil {
			return err
		}
		s := &show{ctx: ctx, out: out, arena: a, core: core}
		s.say("\n== %s ==", a.Title)
		s.say("A throwaway server and Freshet before it, both on core %d; the load on core %d.", server, core)
		err = errors.Join(s.run(), a.Close(), s.failed)
		if err == nil {
			s.say("Stopped and removed after %s.", time.Since(begun).Round(time.Second))
		}
		return errors.Join(err, s.failed)
	}
	return errors.Join(missing...)
}

// show is one dialect's demonstration.
type show struct {
	ctx    context.Context
	out    io.Writer
	arena  *rig.Arena
	core   int
	failed error // of the output
}

func (s *show) say(format string, args ...any) {
	if _, err := fmt.Fprintf(s.out, format+"\n", args...); err != nil && s.failed == nil {
		s.failed = err
	}
}

// The shop's size.
const (
	items     = 10000
	customers = 1000
	orders    = 20000
	batch     = 1000
)

func (s *show) run() error {
	s.say("Loading a shop: %d items, %d orders of %d customers.", items, orders, customers)
	if err := versus.Exec(s.ctx, s.arena.Direct, shop()...); err != nil {
		return fmt.Errorf("loading: %w", err)
	}
	for _, w := range []struct {
		name     string
		workload load.Workload
	}{
		{"one item by its key", s.workload("SELECT id, name, price, stock FROM shop_items WHERE id = ?", 1000, items)},
		{"a customer's latest orders", s.workload("SELECT o.id, i.name, o.amount, o.placed FROM shop_orders o JOIN shop_items i ON i.id = o.item WHERE o.customer = ? ORDER BY o.id DESC LIMIT 5", 200, customers)},
	} {
		if err := s.compare(w.name, w.workload); err != nil {
			return err
		}
	}
	if err := s.write(); err != nil {
		return err
	}
	return s.caches()
}

func (s *show) workload(sql string, distinct, rows int64) load.Workload {
	return load.Workload{Mode: load.Prepared, Distinct: distinct, Statements: []load.Statement{
		{SQL: sql, Args: func(n int64) []int64 { return []int64{1 + n*7%rows} }},
	}}
}

// Each side of a comparison is measured so often, so long.
const (
	rounds  = 2
	seconds = 2
)

func (s *show) compare(name string, w load.Workload) error {
	outcome, err := versus.Run(s.ctx, versus.Config{
		Name: "demo", Title: name, Workload: w, Connections: 8, Seconds: seconds, Warmup: 0.7, Rounds: rounds, Core: s.core,
	}, s.arena.Sides(), nil)
	if err != nil {
		return err
	}
	s.say("\nThe same load direct and through Freshet: %s, prepared, 8 connections.", name)
	return outcome.Print(s.out)
}

// write changes a row by a client that knows nothing of Freshet, and reads it
// through Freshet until it shows.
func (s *show) write() (err error) {
	direct, err := versus.Dial(s.ctx, s.arena.Direct)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, direct.Close()) }()
	through, err := versus.Dial(s.ctx, s.arena.Through)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, through.Close()) }()
	const ask, change = "SELECT stock FROM shop_items WHERE id = 42", "UPDATE shop_items SET stock = 4242 WHERE id = 42"
	stock := ""
	for range 3 {
		if stock, err = one(through, ask); err != nil {
			return err
		}
	}
	s.say("\nThrough Freshet, from memory:  %s  ->  %s", ask, stock)
	if _, err := direct.Query(change); err != nil {
		return err
	}
	begun := time.Now()
	s.say("Another client, upstream:      %s", change)
	for {
		if stock, err = one(through, ask); err != nil {
			return err
		}
		took := time.Since(begun)
		if stock == "4242" {
			s.say("Through Freshet:               %s  ->  %s, %s after the commit", ask, stock, took.Round(10*time.Microsecond))
			return nil
		}
		if took > 10*time.Second {
			return fmt.Errorf("the write does not show through Freshet after %s", took.Round(time.Second))
		}
	}
}

func one(c *versus.Client, sql string) (string, error) {
	rows, err := c.Query(sql)
	if err != nil {
		return "", err
	}
	if len(rows) != 1 || len(rows[0]) != 1 {
		return "", fmt.Errorf("%s: %d rows", sql, len(rows))
	}
	return string(rows[0][0]), nil
}

// shown are the columns of SHOW CACHES that fit a terminal.
var shown = map[string]int{"query_id": 20, "query": 58, "hits": 12, "misses": 10, "entries": 8, "bytes": 12, "hit_ratio": 9}

// caches prints what Freshet says of itself.
func (s *show) caches() (err error) {
	c, err := versus.Dial(s.ctx, s.arena.Through)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	names, rows, err := c.Columns("SHOW CACHES")
	if err != nil {
		return fmt.Errorf("SHOW CACHES: %w", err)
	}
	s.say("\nSHOW CACHES")
	t := tabwriter.NewWriter(s.out, 0, 4, 2, ' ', 0)
	line := func(cell func(i int) string) error {
		var cells []string
		for i, name := range names {
			if width := shown[name]; width > 0 {
				cells = append(cells, clip(cell(i), width))
			}
		}
		_, err := fmt.Fprintln(t, strings.Join(cells, "\t"))
		return err
	}
	if err := line(func(i int) string { return names[i] }); err != nil {
		return err
	}
	for _, row := range rows {
		if err := line(func(i int) string { return string(row[i]) }); err != nil {
			return err
		}
	}
	return t.Flush()
}

// clip keeps a cell on its line.
func clip(s string, width int) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) <= width {
		return string(r)
	}
	return string(r[:width-1]) + "…"
}

// shop is the script that makes and fills the tables, in both dialects.
func shop() []string {
	out := []string{
		"CREATE TABLE shop_items (id INT PRIMARY KEY, name VARCHAR(60) NOT NULL, price DECIMAL(10,2) NOT NULL, stock INT NOT NULL)",
		"CREATE TABLE shop_orders (id INT PRIMARY KEY, customer INT NOT NULL, item INT NOT NULL, amount INT NOT NULL, placed TIMESTAMP NOT NULL)",
		"CREATE INDEX shop_orders_customer ON shop_orders (customer)",
	}
	out = append(out, inserts("shop_items", items, func(id int) string {
		return fmt.Sprintf("(%d,'Thing no. %d',%d.%02d,%d)", id, id, 1+id%300, id%100, id%90)
	})...)
	return append(out, inserts("shop_orders", orders, func(id int) string {
		return fmt.Sprintf("(%d,%d,%d,%d,'2025-0%d-%02d %02d:00:00')", id, 1+id%customers, 1+id*13%items, 1+id%9, 1+id%9, 1+id%28, id%24)
	})...)
}

// inserts fills a table in batches.
func inserts(table string, n int, row func(id int) string) []string {
	var out []string
	for at := 1; at <= n; at += batch {
		var rows []string
		for id := at; id < at+batch && id <= n; id++ {
			rows = append(rows, row(id))
		}
		out = append(out, "INSERT INTO "+table+" VALUES "+strings.Join(rows, ","))
	}
	return out
}
