package witness

import (
	"fmt"
	"regexp"
	"strconv"

	"freshet/bench/upstream"
)

// Size scales the loads.
type Size struct {
	Rows         int // in each of sysbench's two tables
	Events       int // of a repeatable run
	Threads      int // of a run that is not repeatable
	Seconds      int // of a run that is not repeatable
	Transactions int // of pgbench, for each client
	Warehouses   int // of TPC-C; 0 leaves it out
	Probes       int // values that each probe is asked for at most
}

const sysbenchTables = 2

var (
	sysbenchWrong = regexp.MustCompile(`(?m)^(FATAL|ALERT|WARNING):.*|Lua error`)
	// Deadlocks are the servers' ordinary answer to several writers, and the tool begins again.
	sysbenchIgnored = regexp.MustCompile(sysbenchWrong.String() + `|ignored errors: +[1-9]\d*`)
	sysbenchRight   = regexp.MustCompile(`total number of events: +[1-9]`)
)

// sysbenchLoads are the OLTP scripts that sysbench brings, in both ways of
// sending statements; alone with a fixed seed, and by several clients at once.
func sysbenchLoads(size Size) []Load {
	var loads []Load
	for _, script := range []string{"oltp_point_select", "oltp_read_only", "oltp_read_write"} {
		for _, mode := range []string{"auto", "disable"} {
			for _, crowd := range []bool{false, true} {
				loads = append(loads, sysbenchLoad(size, script, mode, crowd, false))
			}
		}
	}
	// As the first three send BEGIN and COMMIT around their statements, their
	// ranges and sums are never hits; these are.
	for _, mode := range []string{"auto", "disable"} {
		loads = append(loads, sysbenchLoad(size, "oltp_read_only", mode, true, true),
			sysbenchLoad(size, "oltp_read_write", mode, false, true))
	}
	return loads
}

func sysbenchLoad(size Size, script, mode string, crowd, bare bool) Load {
	name := "sysbench/" + script + "/ps-" + mode
	run := []string{"--db-ps-mode=" + mode}
	switch {
	case crowd:
		name += "/crowd"
		run = append(run, "--threads="+strconv.Itoa(size.Threads), "--time="+strconv.Itoa(size.Seconds))
	default:
		name += "/alone"
		run = append(run, "--threads=1", "--time=0", "--events="+strconv.Itoa(size.Events), "--mysql-ignore-errors=none")
	}
	if bare {
		name += "/no-transactions"
		run = append(run, "--skip_trx=on")
	}
	command := func(e Endpoint, step string, extra ...string) []Command {
		arguments := append([]string{"sysbench", script, "--rand-seed=20261130",
			"--tables=" + strconv.Itoa(sysbenchTables), "--table_size=" + strconv.Itoa(size.Rows)}, sysbenchTarget(e)...)
		arguments = append(append(arguments, extra...), step)
		c := Command{Arguments: arguments, Wrong: sysbenchWrong}
		if step == "run" {
			c.Right = sysbenchRight
			if !crowd || script != "oltp_read_write" {
				c.Wrong = sysbenchIgnored
			}
		}
		return []Command{c}
	}
	mustHit := 0
	if script == "oltp_point_select" || bare {
		mustHit = 1
	}
	var probes []Probe
	for table := 1; table <= sysbenchTables; table++ {
		probes = append(probes,
			Probe{fmt.Sprintf("SELECT c FROM sbtest%d WHERE id=?", table), size.Probes},
			Probe{fmt.Sprintf("SELECT id, pad FROM sbtest%d WHERE k=? ORDER BY id", table), 50})
	}
	return Load{
		Name:       name,
		Prepare:    func(e Endpoint) []Command { return command(e, "prepare") },
		Run:        func(e Endpoint) []Command { return command(e, "run", run...) },
		Cleanup:    func(e Endpoint) []Command { return command(e, "cleanup") },
		Repeatable: !crowd,
		Probes:     probes,
		MustHit:    mustHit,
	}
}

func sysbenchTarget(e Endpoint) []string {
	driver, prefix := "mysql", "--mysql-"
	if e.Dialect == upstream.DialectPostgres {
		driver, prefix = "pgsql", "--pgsql-"
	}
	return []string{
		"--db-driver=" + driver, prefix + "host=" + e.Host, prefix + "port=" + strconv.Itoa(e.Port),
		prefix + "user=" + e.User, prefix + "password=" + e.Password, prefix + "db=" + e.Database,
	}
}
