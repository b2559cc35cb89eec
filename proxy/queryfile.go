package proxy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// SavedQuery is a query as CREATE CACHE saved it: one item of the file.
type SavedQuery struct {
	Name     string `yaml:"name,omitempty"`
	QueryID  string `yaml:"query_id"`
	Query    string `yaml:"query"`
	Database string `yaml:"database,omitempty"`
	Policy   `yaml:",inline"`

	id uint64
}

func (sq *SavedQuery) terms() *terms {
	t := &terms{Policy: sq.Policy, name: sq.Name, created: true}
	if sq.Consistency == LevelBounded.String() {
		t.level, t.hasLvl = LevelBounded, true
	} else if sq.Consistency == LevelSession.String() {
		t.level, t.hasLvl = LevelSession, true
	}
	return t
}

// queryFile keeps saved queries in a YAML file that a person can read and
// edit. It is written whole or not at all: to a temporary file, synced, then
// renamed. An empty path keeps nothing.
type queryFile struct{ path string }

func (f *queryFile) load() ([]*SavedQuery, error) {
	if f.path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []*SavedQuery
	if err := yaml.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	for i, sq := range list {
		if sq == nil {
			return nil, fmt.Errorf("%s: item %d is empty", f.path, i+1)
		}
		if sq.id, err = parseQueryID(sq.QueryID); err != nil {
			return nil, fmt.Errorf("%s: item %d: %w", f.path, i+1, err)
		}
	}
	return list, nil
}

// parseQueryID reads q_ and 16 hex digits.
func parseQueryID(s string) (uint64, error) {
	hex, ok := strings.CutPrefix(strings.ToLower(s), "q_")
	id, err := strconv.ParseUint(hex, 16, 64)
	if !ok || err != nil || len(hex) != 16 {
		return 0, fmt.Errorf("query_id %q: want q_ and 16 hex digits", s)
	}
	return id, nil
}

func (f *queryFile) write(saved map[uint64]*SavedQuery) error {
	if f.path == "" {
		return nil
	}
	list := make([]*SavedQuery, 0, len(saved))
	for _, sq := range saved {
		list = append(list, sq)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].QueryID < list[j].QueryID })
	b, err := yaml.Marshal(list)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	return replaceFile(f.path, b)
}

// writable finds out at the start whether queries can be saved in a folder,
// which is made, rather than when the first one is.
func writable(dir string) error {
	if dir == "" {
		return nil
	}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(dir, ".queries-*"); err == nil {
			err = errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("--store file:%s: want a folder that can be written, for saved queries: %w", dir, err)
	}
	return nil
}

// replaceFile writes b to path whole or not at all.
func replaceFile(path string, b []byte) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".queries-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	if _, err = tmp.Write(b); err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
