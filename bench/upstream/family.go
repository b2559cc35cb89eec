package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// family lists a process that is there and its children. PostgreSQL's each lead
// a session of their own (setsid, in InitPostmasterChild), so neither a process
// group nor a session has them all.
func family(parent int) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var members []int
	for _, file := range files {
		fields, err := statOf(file)
		if err != nil {
			return nil, err
		}
		if len(fields) < 2 || string(fields[0]) == "Z" {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, fmt.Errorf("upstream: %s: %w", file, err)
		}
		if pid == parent || string(fields[1]) == strconv.Itoa(parent) {
			members = append(members, pid)
		}
	}
	return members, nil
}

// statOf reads the state of a process, its parent and more (proc(5),
// /proc/PID/stat: they follow the name in parentheses); none if it has ended.
func statOf(file string) ([][]byte, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) || err == nil && len(text) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]), nil
}

// in keeps those of the processes that have not ended and are in one of the
// states.
func in(states string, pids []int) (left []int, err error) {
	for _, pid := range pids {
		fields, err := statOf(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return nil, err
		}
		if len(fields) > 0 && strings.Contains(states, string(fields[0])) {
			left = append(left, pid)
		}
	}
	return left, nil
}

// The states of a process (proc(5)): those in which it may still do something,
// and stopped besides; not dead, or a zombie.
const (
	mayRun = "RSDI"
	lives  = mayRun + "Tt"
)

func signalEach(pids []int, signal syscall.Signal) error {
	for _, pid := range pids {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// freeze stops processes and waits until they have: the signal alone is but a
// request.
func freeze(pids []int) error {
	if err := signalEach(pids, syscall.SIGSTOP); err != nil {
		return err
	}
	return await(mayRun, pids)
}

// await waits until none of the processes is in one of the states.
func await(states string, pids []int) error {
	for end := time.Now().Add(stopPatience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if left, err := in(states, pids); err != nil || len(left) == 0 {
			return err
		}
	}
	return fmt.Errorf("upstream: processes %v are still in one of the states %s", pids, states)
}
