package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// sessionMembers lists the processes of a session (proc(5), /proc/PID/stat: the
// state, parent, group and session follow the name in parentheses).
func sessionMembers(session int) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var members []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) || len(text) == 0 {
			continue // it ended meanwhile
		} else if err != nil {
			return nil, err
		}
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) < 4 || string(fields[3]) != strconv.Itoa(session) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, fmt.Errorf("upstream: %s: %w", file, err)
		}
		members = append(members, pid)
	}
	return members, nil
}
