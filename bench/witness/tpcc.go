package witness

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"freshet/bench/upstream"
)

// GoTPC finds the go-tpc program: FRESHET_GO_TPC, else where `make deps` puts it.
func GoTPC() (string, error) {
	if path := os.Getenv("FRESHET_GO_TPC"); path != "" {
		return path, nil
	}
	found, err := filepath.Glob(filepath.Join(upstream.CacheFolder(), "tools", "go-tpc-*", "go-tpc"))
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", fmt.Errorf("no go-tpc in %s: run make deps", upstream.CacheFolder())
	}
	return found[len(found)-1], nil
}

var (
	tpccWrong = regexp.MustCompile(`(?i)\bfail|error|err |panic`)
	tpccRight = regexp.MustCompile(`tpmC: *[1-9]`)
)

// tpccLoad is TPC-C: its load, a run by several terminals, and the consistency
// checks of the specification's clause 3.3.2, all through the same endpoint.
func tpccLoad(program, dialect string, size Size) Load {
	command := func(e Endpoint, step string, arguments ...string) Command {
		target := []string{program, "tpcc", step, "-H", e.Host, "-P", strconv.Itoa(e.Port), "-U", e.User, "-p", e.Password, "-D", e.Database,
			"--warehouses", strconv.Itoa(size.Warehouses)}
		if e.Dialect == upstream.DialectPostgres {
			target = append(target, "-d", "postgres", "--conn-params", "sslmode=disable")
		}
		return Command{Arguments: append(target, arguments...), Wrong: tpccWrong}
	}
	// Without these, three of the checks take MariaDB a minute each.
	tune := []string{"CREATE INDEX witness_history ON history (h_c_w_id, h_c_d_id, h_c_id)"}
	if dialect == upstream.DialectPostgres {
		tune = append(tune, "ANALYZE")
	} else {
		tune = append(tune, "ANALYZE TABLE customer, district, history, item, new_order, order_line, orders, stock, warehouse")
	}
	threads := strconv.Itoa(size.Threads)
	return Load{
		Name: "go-tpc/tpcc",
		Prepare: func(e Endpoint) []Command {
			return []Command{command(e, "prepare", "-T", threads, "--no-check")}
		},
		Tune: tune,
		Run: func(e Endpoint) []Command {
			run := command(e, "run", "-T", threads, "--time", strconv.Itoa(size.Seconds)+"s")
			run.Right = tpccRight
			// Condition 11 holds for the freshly filled tables only.
			return []Command{command(e, "check", "--check-all"), run, command(e, "check")}
		},
		Cleanup: func(e Endpoint) []Command { return []Command{command(e, "cleanup")} },
		Probes: []Probe{
			{"SELECT d_next_o_id, d_ytd FROM district WHERE d_w_id = 1 AND d_id = ?", 10},
			{"SELECT w_ytd FROM warehouse WHERE w_id = ?", 1},
			{"SELECT s_quantity, s_ytd, s_order_cnt FROM stock WHERE s_w_id = 1 AND s_i_id = ?", size.Probes},
			{"SELECT count(*), max(no_o_id) FROM new_order WHERE no_w_id = 1 AND no_d_id = ?", 10},
			{"SELECT sum(c_balance), sum(c_payment_cnt) FROM customer WHERE c_w_id = 1 AND c_d_id = ?", 10},
		},
	}
}
