// Package cpu binds processes and threads to cores and reads how much CPU time
// they used, from /proc. Linux only, like the numbers it makes comparable.
package cpu

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of /proc/PID/stat's times: sysconf(_SC_CLK_TCK), which is
// 100 on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// Bind binds the calling thread to core; the caller has locked its goroutine
// to the thread. unbind takes the binding back.
func Bind(core int) (unbind func() error, err error) {
	var before, during unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, fmt.Errorf("reading the core binding: %w", err)
	}
	during.Set(core)
	if err := unix.SchedSetaffinity(0, &during); err != nil {
		return nil, fmt.Errorf("binding to core %d: %w", core, err)
	}
	return func() error { return unix.SchedSetaffinity(0, &before) }, nil
}

// Start starts cmd bound to core, so that every thread and child it ever has
// inherits the binding; a negative core binds nothing. The child is asked to
// end (SIGTERM) when this process does.
func Start(cmd *exec.Cmd, core int) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
	reply := make(chan error, 1)
	launcher() <- launch{cmd, core, reply}
	return <-reply
}

type launch struct {
	cmd   *exec.Cmd
	core  int
	reply chan error
}

// launcher starts every child from one thread that never ends: the kernel
// takes the end of the thread that started a child for the end of its parent.
var launcher = sync.OnceValue(func() chan<- launch {
	requests := make(chan launch)
	go func() {
		runtime.LockOSThread()
		for l := range requests {
			l.reply <- l.start()
		}
	}()
	return requests
})

func (l launch) start() error {
	if l.core < 0 {
		return l.cmd.Start()
	}
	unbind, err := Bind(l.core)
	if err != nil {
		return err
	}
	return errors.Join(l.cmd.Start(), unbind())
}

// Time is the user and system time that a process and all its living
// descendants have used (PostgreSQL serves each session in a child).
func Time(pid int) (time.Duration, error) {
	children, err := processes()
	if err != nil {
		return 0, err
	}
	if _, ok := children.ticks[pid]; !ok {
		return 0, fmt.Errorf("no process %d", pid)
	}
	return time.Duration(children.sum(pid, 0)) * tick, nil
}

// maxDepth bounds the walk: a table read while processes come and go might
// hold a circle.
const maxDepth = 32

// table is one reading of /proc.
type table struct {
	children map[int][]int
	ticks    map[int]int64
}

func (t *table) sum(pid, depth int) int64 {
	total := t.ticks[pid]
	if depth < maxDepth {
		for _, c := range t.children[pid] {
			total += t.sum(c, depth+1)
		}
	}
	return total
}

func processes() (*table, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	t := &table{children: make(map[int][]int), ticks: make(map[int]int64)}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended meanwhile
		}
		parent, ticks, err := parseStat(b)
		if err != nil {
			return nil, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
		t.children[parent] = append(t.children[parent], pid)
		t.ticks[pid] = ticks
	}
	return t, nil
}

// parseStat reads the parent and utime + stime of /proc/PID/stat (proc(5)).
// The program's name stands in parentheses and may hold any character.
func parseStat(b []byte) (parent int, ticks int64, err error) {
	at := bytes.LastIndexByte(b, ')')
	if at < 0 {
		return 0, 0, errors.New("no program name")
	}
	fields := strings.Fields(string(b[at+1:]))
	if len(fields) < 13 {
		return 0, 0, errors.New("too few fields")
	}
	if parent, err = strconv.Atoi(fields[1]); err != nil {
		return 0, 0, err
	}
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, 0, err
		}
		ticks += n
	}
	return parent, ticks, nil
}

// ResidentBytes is a process's resident memory (VmRSS).
func ResidentBytes(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/%d/statm: too few fields", pid)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}
