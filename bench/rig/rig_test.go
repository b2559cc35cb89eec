package rig

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"freshet/bench/floor"
	"freshet/bench/load"
	"freshet/bench/versus"
)

// The tests' own program plays freshet: `serve` and `bench floor`.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "serve":
		os.Exit(playServe(os.Args))
	case len(os.Args) > 2 && os.Args[1] == FloorCommand[0] && os.Args[2] == FloorCommand[1]:
		rec, err := ReadRecording(os.Args[3])
		if err == nil {
			err = floor.Serve(rec, os.Stdin, os.Stdout)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// playServe says what freshet serve says, and ends at SIGTERM.
func playServe(args []string) int {
	if slices.Contains(args, "--fail") {
		fmt.Fprintln(os.Stderr, "freshet: the upstream is down")
		return 1
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	fmt.Println("freshet: mysql 127.0.0.1:3999 -> mariadb 10.11.19 at 127.0.0.1:3306, feed following")
	fmt.Println("freshet: http://127.0.0.1:6999/health and /metrics")
	<-stop
	return 0
}

func program(t *testing.T) string {
	t.Helper()
	p, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProxyComesAndGoes(t *testing.T) {
	p, err := StartProxy(context.Background(), program(t), "mysql://u:p@127.0.0.1:3306/d?x=1", 0)
	if err != nil {
		t.Fatal(err)
	}
	if p.Addr != "127.0.0.1:3999" || p.HTTP != "127.0.0.1:6999" || !strings.Contains(p.Greeting, "feed following") {
		t.Errorf("%+v", p)
	}
	if dsn, err := p.DSN("mysql://u:p@127.0.0.1:3306/d?x=1"); err != nil || dsn != "mysql://u:p@127.0.0.1:3999/d?x=1" {
		t.Errorf("%s, %v", dsn, err)
	}
	if cores := coresOf(t, p.Pid()); cores != "0" {
		t.Errorf("bound to cores %s", cores)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p.folder); !os.IsNotExist(err) {
		t.Errorf("its folder is still there: %v", err)
	}
}

func TestProxyPausesAndIsKilled(t *testing.T) {
	p, err := StartProxy(context.Background(), program(t), "mysql://u:p@127.0.0.1:3306/d", -1)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Pause(); err != nil {
		t.Error(err)
	}
	if err := p.Resume(); err != nil {
		t.Error(err)
	}
	if err := p.Pause(); err != nil { // a stopped process is killed all the same
		t.Error(err)
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p.folder); !os.IsNotExist(err) {
		t.Errorf("its folder is still there: %v", err)
	}
}

func TestProxySaysWhyItDoesNotStart(t *testing.T) {
	_, err := StartProxy(context.Background(), program(t), "mysql://u:p@127.0.0.1:3306/d", -1, "--fail")
	if err == nil || !strings.Contains(err.Error(), "the upstream is down") {
		t.Errorf("%v", err)
	}
}

// coresOf reads the cores a process may run on (proc(5), Cpus_allowed_list).
func coresOf(t *testing.T, pid int) string {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	for s := bufio.NewScanner(f); s.Scan(); {
		if v, ok := strings.CutPrefix(s.Text(), "Cpus_allowed_list:"); ok {
			return strings.TrimSpace(v)
		}
	}
	t.Fatal("no Cpus_allowed_list")
	return ""
}

// TestFloorUnderLoad: a floor in a child process answers, and its CPU time is seen.
func TestFloorUnderLoad(t *testing.T) {
	w := load.Workload{Mode: load.Text, Distinct: 4, Statements: []load.Statement{{SQL: "SELECT ?", Args: func(n int64) []int64 { return []int64{n} }}}}
	rec := load.Recording{Dialect: "mysql", Version: "8.0.0", Capabilities: 1<<9 | 1<<15 | 1<<19 | 1<<24, Reply: []byte{7, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0}}
	f, err := StartFloor(context.Background(), program(t), rec, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	}()
	dsn, err := f.DSN("mysql://u:p@127.0.0.1:3306/d")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := versus.Run(ctx, versus.Config{Name: "hit", Title: "a floor", Workload: w, Connections: 4, Seconds: 0.4, Rounds: 2, Core: -1},
		[]versus.Side{{Name: "floor", DSN: dsn, Pid: f.Pid()}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if out.Micros("floor") <= 0 || out.PerSecond("floor") < 100 {
		t.Errorf("%.2f µs a call, %.0f calls/s", out.Micros("floor"), out.PerSecond("floor"))
	}
}
