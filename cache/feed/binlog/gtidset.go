package binlog

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"freshet/cache/feed/cursor"
)

// span is the numbers from first to last, both included.
type span struct{ first, last int64 }

// GTIDSet is a set of MySQL GTIDs. The zero value is not ready; use
// ParseGTIDSet("").
type GTIDSet struct{ spans map[string][]span }

// ParseGTIDSet reads what @@gtid_executed says: "uuid:1-5:7,uuid:tag:1-3",
// white space allowed.
func ParseGTIDSet(text string) (*GTIDSet, error) {
	s := &GTIDSet{spans: make(map[string][]span)}
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		fields := strings.Split(part, ":")
		uuid := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(fields[0]), "-", ""))
		if len(uuid) != 32 || strings.Trim(uuid, "0123456789abcdef") != "" || len(fields) < 2 {
			return nil, fmt.Errorf("binlog: %q is not a GTID set", part)
		}
		source := uuid
		for _, field := range fields[1:] {
			field = strings.TrimSpace(field)
			if field != "" && (field[0] < '0' || field[0] > '9') {
				source = uuid + ":" + strings.ToLower(field)
				continue
			}
			sp, err := parseSpan(field)
			if err != nil {
				return nil, fmt.Errorf("binlog: %q is not a GTID set", part)
			}
			s.insert(source, sp)
		}
	}
	return s, nil
}

func parseSpan(text string) (span, error) {
	first, last, ranged := strings.Cut(text, "-")
	a, err := strconv.ParseInt(first, 10, 64)
	if err != nil || a < 1 {
		return span{}, cursor.ErrShort
	}
	if !ranged {
		return span{a, a}, nil
	}
	b, err := strconv.ParseInt(last, 10, 64)
	if err != nil || b < a {
		return span{}, cursor.ErrShort
	}
	return span{a, b}, nil
}

// Add puts one GTID into the set. Adding the next number of a source, the
// common case, moves the end of its last span.
func (s *GTIDSet) Add(g GTID) {
	list := s.spans[g.Source]
	if n := len(list); n > 0 && list[n-1].last+1 == g.Number {
		list[n-1].last++
		return
	}
	s.insert(g.Source, span{g.Number, g.Number})
}

// insert keeps the source's spans sorted, apart and not adjacent.
func (s *GTIDSet) insert(source string, sp span) {
	list := s.spans[source]
	from := sort.Search(len(list), func(i int) bool { return list[i].last+1 >= sp.first })
	to := from
	for to < len(list) && list[to].first-1 <= sp.last {
		sp.first, sp.last = min(sp.first, list[to].first), max(sp.last, list[to].last)
		to++
	}
	s.spans[source] = slices.Replace(list, from, to, sp)
}

// Join adds all of other's GTIDs.
func (s *GTIDSet) Join(other *GTIDSet) {
	for source, list := range other.spans {
		for _, sp := range list {
			s.insert(source, sp)
		}
	}
}

// Has tells whether the set holds the GTID.
func (s *GTIDSet) Has(g GTID) bool { return s.covers(g.Source, span{g.Number, g.Number}) }

func (s *GTIDSet) covers(source string, sp span) bool {
	list := s.spans[source]
	i := sort.Search(len(list), func(i int) bool { return list[i].last >= sp.last })
	return i < len(list) && list[i].first <= sp.first
}

// Contains tells whether every GTID of other is in the set.
func (s *GTIDSet) Contains(other *GTIDSet) bool {
	for source, list := range other.spans {
		for _, sp := range list {
			if !s.covers(source, sp) {
				return false
			}
		}
	}
	return true
}

// Clone returns a copy that shares nothing.
func (s *GTIDSet) Clone() *GTIDSet {
	c := &GTIDSet{spans: make(map[string][]span, len(s.spans))}
	for source, list := range s.spans {
		c.spans[source] = slices.Clone(list)
	}
	return c
}

// String writes the set as the server would take it.
func (s *GTIDSet) String() string {
	sources := make([]string, 0, len(s.spans))
	for source := range s.spans {
		sources = append(sources, source)
	}
	sort.Strings(sources)
	var b strings.Builder
	for _, source := range sources {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		u, tag, tagged := strings.Cut(source, ":")
		fmt.Fprintf(&b, "%s-%s-%s-%s-%s", u[:8], u[8:12], u[12:16], u[16:20], u[20:])
		if tagged {
			b.WriteString(":" + tag)
		}
		for _, sp := range s.spans[source] {
			if sp.first == sp.last {
				fmt.Fprintf(&b, ":%d", sp.first)
			} else {
				fmt.Fprintf(&b, ":%d-%d", sp.first, sp.last)
			}
		}
	}
	return b.String()
}
