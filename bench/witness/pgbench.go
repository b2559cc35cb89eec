package witness

import (
	"regexp"
	"strconv"
)

const pgbenchProgram = "/usr/lib/postgresql/15/bin/pgbench"

var (
	pgbenchWrong = regexp.MustCompile(`(?i)error:|fatal:|aborted|failed transactions: [1-9]`)
	pgbenchRight = regexp.MustCompile(`number of transactions actually processed: (\d+)/(\d+)`)
)

// pgbenchLoads are the read-only script (-S) and the one like TPC-B in pgbench's
// three ways of sending statements, alone with a fixed seed and in a crowd.
func pgbenchLoads(size Size) []Load {
	var loads []Load
	for _, script := range []string{"select-only", "tpcb-like"} {
		for _, protocol := range []string{"simple", "extended", "prepared"} {
			for _, crowd := range []bool{false, true} {
				loads = append(loads, pgbenchLoad(size, script, protocol, crowd))
			}
		}
	}
	return loads
}

func pgbenchLoad(size Size, script, protocol string, crowd bool) Load {
	name, clients := "pgbench/"+script+"/"+protocol, 1
	if crowd {
		clients = size.Threads
		name += "/crowd"
	} else {
		name += "/alone"
	}
	mustHit := 0
	if script == "select-only" {
		mustHit = size.Transactions * clients / 2
	}
	command := func(e Endpoint, arguments ...string) []Command {
		arguments = append([]string{pgbenchProgram, "-h", e.Host, "-p", strconv.Itoa(e.Port), "-U", e.User}, arguments...)
		return []Command{{
			Arguments:   append(arguments, e.Database),
			Environment: []string{"PGPASSWORD=" + e.Password, "PGSSLMODE=disable"},
			Wrong:       pgbenchWrong,
		}}
	}
	return Load{
		Name:    name,
		Prepare: func(e Endpoint) []Command { return command(e, "-i", "-q", "-s", "1") },
		Run: func(e Endpoint) []Command {
			run := command(e, "-n", "-M", protocol, "-b", script, "--random-seed=20261130",
				"-c", strconv.Itoa(clients), "-j", "2", "-t", strconv.Itoa(size.Transactions))
			run[0].Right = pgbenchRight
			if script == "select-only" {
				// With one seed, the second time asks for the same of the 100,000 accounts.
				run = append(run, run[0])
			}
			return run
		},
		Cleanup:    func(e Endpoint) []Command { return command(e, "-i", "-q", "-I", "d") },
		Repeatable: !crowd,
		Probes: []Probe{
			{"SELECT abalance FROM pgbench_accounts WHERE aid = ?", size.Probes},
			{"SELECT tbalance FROM pgbench_tellers WHERE tid = ?", 10},
			{"SELECT sum(bbalance) FROM pgbench_branches WHERE bid >= ?", 1},
			{"SELECT count(*), sum(delta) FROM pgbench_history WHERE tid = ?", 10},
		},
		MustHit: mustHit,
	}
}
