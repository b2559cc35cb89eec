package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
	"gopkg.in/yaml.v3"

	"freshet/planner/scan"
)

// SavedQuery is a query as CREATE CACHE saved it: one item of the file.
type SavedQuery struct {
	Name     string `yaml:"name,omitempty"`
	QueryID  string `yaml:"query_id,omitempty"` // computed when a person left it out
	Query    string `yaml:"query"`
	Database string `yaml:"database,omitempty"`
	Policy   `yaml:",inline"`

	id uint64
}

func (sq *SavedQuery) terms() *terms {
	t := &terms{Policy: sq.Policy, name: sq.Name, created: true}
	t.level, t.hasLvl = ParseLevel(sq.Consistency)
	return t
}

// queryFile keeps saved queries in a YAML file that a person can read and
// edit. It is written whole or not at all: to a temporary file, synced, then
// renamed. An empty path keeps nothing.
type queryFile struct {
	path string
	// read says how the server reads text by default.
	read scan.Options
}

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
	decoder := yaml.NewDecoder(bytes.NewReader(b))
	decoder.KnownFields(true)
	var list []*SavedQuery
	if err := decoder.Decode(&list); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	seen := map[string]int{}
	for i, sq := range list {
		if err := f.verify(sq); err != nil {
			return nil, fmt.Errorf("%s: item %d: %w", f.path, i+1, err)
		}
		for _, name := range []string{sq.QueryID, strings.ToLower(sq.Name)} {
			if other := seen[name]; name != "" && other != 0 {
				return nil, fmt.Errorf("%s: item %d: %s is item %d already", f.path, i+1, name, other)
			}
			seen[name] = i + 1
		}
	}
	return list, nil
}

// verify reads an item that a person may have written: the query may be any
// text, and its id is that of its normalised form (see planner.Plan). An id
// that belongs to another query would be served under that one's name, and its
// policy kept for a query that nobody meant.
func (f *queryFile) verify(sq *SavedQuery) error {
	switch {
	case sq == nil:
		return errors.New("it is empty")
	case strings.TrimSpace(sq.Query) == "":
		return errors.New("it has no query")
	case sq.TTL < 0 || sq.MaxStaleness < 0:
		return errors.New("want a ttl and a max_staleness above 0, such as 10s")
	}
	if _, ok := ParseLevel(sq.Consistency); sq.Consistency != "" && !ok {
		return fmt.Errorf("consistency %q: want %s", sq.Consistency, wantLevel)
	}
	id := xxhash.Sum64String(sq.Query)
	if sq.QueryID != "" {
		given, err := parseQueryID(sq.QueryID)
		if err != nil {
			return err
		}
		if given == id { // normalised, perhaps in a session that reads text in another way
			sq.id, sq.QueryID = id, queryID(id)
			return nil
		}
	}
	normal := scan.Normalise(sq.Query, f.read)
	id = xxhash.Sum64String(normal)
	if sq.QueryID != "" && !strings.EqualFold(sq.QueryID, queryID(id)) {
		return fmt.Errorf("query_id %s is not that of its query, which is %s: mend it, or take the query_id out", sq.QueryID, queryID(id))
	}
	sq.id, sq.QueryID, sq.Query = id, queryID(id), normal
	return nil
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
