package precision

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"freshet/bench/wire"
)

// tpcc lets go-tpc fill one warehouse and run TPC-C's transactions against the
// server itself, held up between two turns; the statements with which these
// transactions read are read through the proxy, outside of transactions.
type tpcc struct {
	rng     *rand.Rand
	program string
	at      wire.Target
	set     []read
	run     *exec.Cmd
	log     strings.Builder
}

const (
	// tpccBurst is for how long go-tpc goes on in each turn.
	tpccBurst = 20 * time.Millisecond
	// tpccSet is how many different parameters of each statement are read.
	tpccSet = 25
	// tpccRest is how many of them are read in a turn, drawn anew.
	tpccRest = 60
)

var tpccTables = []string{"item", "warehouse", "stock", "district", "customer", "history", "orders", "new_order", "order_line"}

func newTPCC(rng *rand.Rand, program string, at wire.Target) (*workload, error) {
	if program == "" {
		return nil, errors.New("precision: tpcc needs the go-tpc program (make deps)")
	}
	t := &tpcc{rng: rng, program: program, at: at}
	return &workload{name: "tpcc", tables: tpccTables, setUp: t.setUp, tearDown: t.tearDown, reads: t.reads, writes: t.burst}, nil
}

func (t *tpcc) command(step string, more ...string) *exec.Cmd {
	args := []string{"tpcc", step, "-H", t.at.Host, "-P", strconv.Itoa(t.at.Port), "-U", t.at.User, "-p", t.at.Password, "-D", t.at.Database, "--warehouses", "1", "-T", "1"}
	if t.at.Dialect == wire.Postgres {
		args = append(args, "-d", "postgres", "--conn-params", "sslmode=disable")
	}
	return exec.Command(t.program, append(args, more...)...)
}

func (t *tpcc) setUp(context.Context, *stage) error {
	if out, err := t.command("prepare", "--no-check").CombinedOutput(); err != nil {
		return fmt.Errorf("go-tpc prepare: %w: %s", err, out)
	}
	t.choose()
	t.run = t.command("run", "--silence")
	t.run.Stdout, t.run.Stderr = &t.log, &t.log
	t.run.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := t.run.Start(); err != nil {
		return err
	}
	return t.run.Process.Signal(syscall.SIGSTOP)
}

// tearDown ends go-tpc, whose session holds locks until it ends a little later.
func (t *tpcc) tearDown(ctx context.Context, s *stage) error {
	if t.run == nil || t.run.Process == nil {
		return nil
	}
	err := t.run.Process.Kill()
	var killed *exec.ExitError
	if e := t.run.Wait(); e != nil && !errors.As(e, &killed) {
		err = errors.Join(err, e)
	}
	return errors.Join(err, t.quiet(ctx, s))
}

// burst lets go-tpc go on for a while and waits until the server has done what
// it was told.
func (t *tpcc) burst(ctx context.Context, s *stage) error {
	if err := t.run.Process.Signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("go-tpc has ended: %w: %s", err, t.log.String())
	}
	select {
	case <-time.After(tpccBurst):
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := t.run.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("go-tpc has ended: %w: %s", err, t.log.String())
	}
	return t.quiet(ctx, s)
}

// quiet waits until no session but the feed's and those of this bench runs a
// statement.
func (t *tpcc) quiet(ctx context.Context, s *stage) error {
	busy := "SELECT count(*) FROM information_schema.processlist WHERE command IN ('Query', 'Execute') AND id <> connection_id()"
	if t.at.Dialect == wire.Postgres {
		busy = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND state = 'active' AND pid <> pg_backend_pid()"
	}
	for deadline := time.Now().Add(patience); ; {
		rows, err := s.direct.Query(busy)
		if err != nil {
			return err
		}
		if len(rows) == 1 && string(rows[0][0]) == "0" {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("the server is never quiet")
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func (t *tpcc) reads() []read {
	out := make([]read, 0, tpccRest)
	for range tpccRest {
		out = append(out, t.set[t.rng.IntN(len(t.set))])
	}
	return out
}

// choose draws the statements: those with which the five transactions read
// (TPC Benchmark C, clause 2.4 to 2.8), with parameters as they draw them.
func (t *tpcc) choose() {
	add := func(label, sql string, args ...any) { t.set = append(t.set, read{label, fmt.Sprintf(sql, args...)}) }
	for n := range tpccSet {
		d, c, order := 1+t.rng.IntN(10), 1+t.rng.IntN(3000), 2900+t.rng.IntN(150)
		add("new order: customer, warehouse", "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse WHERE w_id = 1 AND c_w_id = w_id AND c_d_id = %d AND c_id = %d", d, c)
		add("new order: items", "SELECT i_price, i_name, i_data, i_id FROM item WHERE i_id IN (%s)", t.items("%d"))
		add("new order: stock", "SELECT s_i_id, s_quantity, s_data, s_dist_%02d FROM stock WHERE (s_w_id, s_i_id) IN (%s)", d, t.items("(1, %d)"))
		add("payment: customer", "SELECT c_first, c_middle, c_street_1, c_city, c_credit, c_credit_lim, c_discount, c_balance, c_since FROM customer WHERE c_w_id = 1 AND c_d_id = %d AND c_id = %d", d, c)
		add("payment: customer by name", "SELECT c_id FROM customer WHERE c_w_id = 1 AND c_d_id = %d AND c_last = '%s' ORDER BY c_first", d, lastName(t.rng.IntN(1000)))
		add("order status: last order", "SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id = 1 AND o_d_id = %d AND o_c_id = %d ORDER BY o_id DESC LIMIT 1", d, c)
		add("order status: lines", "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line WHERE ol_w_id = 1 AND ol_d_id = %d AND ol_o_id = %d", d, order)
		add("delivery: amount", "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = 1 AND ol_d_id = %d AND ol_o_id = %d", d, order)
		if n >= 10 {
			continue
		}
		d = n + 1
		add("new order: district", "SELECT d_next_o_id, d_tax FROM district WHERE d_id = %d AND d_w_id = 1", d)
		add("payment: district", "SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name FROM district WHERE d_w_id = 1 AND d_id = %d", d)
		add("delivery: oldest new order", "SELECT no_o_id FROM new_order WHERE no_w_id = 1 AND no_d_id = %d ORDER BY no_o_id ASC LIMIT 1", d)
		add("stock level", "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = 1 AND ol_d_id = %d AND ol_o_id < %d AND ol_o_id >= %d AND s_w_id = 1 AND s_i_id = ol_i_id AND s_quantity < %d",
			d, 3001, 2981, 10+t.rng.IntN(11))
	}
	add("payment: warehouse", "SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name FROM warehouse WHERE w_id = 1")
}

// items are ten items' numbers.
func (t *tpcc) items(form string) string {
	var out []string
	for range 10 {
		out = append(out, fmt.Sprintf(form, 1+t.rng.IntN(100_000)))
	}
	return strings.Join(out, ", ")
}

// lastName is clause 4.3.2.3's.
func lastName(n int) string {
	parts := []string{"BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"}
	return parts[n/100] + parts[n/10%10] + parts[n%10]
}
