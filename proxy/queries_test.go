package proxy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"freshet/planner"
)

func registry(t *testing.T, path string) *Queries {
	t.Helper()
	qs, err := newQueries(&queryFile{path: path})
	if err != nil {
		t.Fatal(err)
	}
	return qs
}

// A saved query is there again after a restart; a dropped one is not.
func TestSavedQueriesSurviveARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d", "queries.yaml")
	qs := registry(t, path)
	id := xxhash.Sum64String("SELECT ?")
	sq := &SavedQuery{Name: "hot", QueryID: queryID(id), Query: "SELECT ?", Policy: Policy{TTL: time.Second}, id: id}
	if _, err := qs.save(sq); err != nil {
		t.Fatal(err)
	}
	q := registry(t, path).find("HOT")
	if q == nil || !q.created() || q.policy().TTL != time.Second || q.id != id {
		t.Fatalf("after a restart: %+v", q)
	}
	if err := qs.drop(qs.find("hot")); err != nil {
		t.Fatal(err)
	}
	if q := registry(t, path).find("hot"); q != nil {
		t.Fatalf("dropped, but there: %+v", q)
	}
}

// What cannot be written is not saved either.
func TestSaveThatFailsChangesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	qs := registry(t, "")
	qs.store.path = filepath.Join(dir, "f", "queries.yaml") // a file is in the way
	if _, err := qs.save(&SavedQuery{Name: "hot", QueryID: queryID(7), id: 7}); err == nil {
		t.Fatal("no error")
	}
	if qs.find("hot") != nil || len(qs.saved) != 0 {
		t.Fatal("saved all the same")
	}
}

// What a person writes into the file is served under its own id, and what does
// not fit together is refused with its place.
func TestQueryFileWrittenByHand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queries.yaml")
	const hot = "SELECT a FROM t WHERE b = ?"
	id := queryID(xxhash.Sum64String(hot))
	for _, text := range []string{
		"- name: hot\n  query: select a from t where b = 5\n  ttl: 10s\n",
		"- name: hot\n  query_id: " + strings.ToUpper(id) + "\n  query: SELECT a  FROM t WHERE b = 'x'\n  ttl: 10s\n",
		"- name: hot\n  query_id: " + id + "\n  query: " + hot + "\n  ttl: 10s\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		q := registry(t, path).find("hot")
		if q == nil || q.idText() != id || q.text != hot || q.policy().TTL != 10*time.Second {
			t.Errorf("%s: %+v", text, q)
		}
	}
	for text, want := range map[string]string{
		"":                                      "",
		"- query_id: q_12\n  query: SELECT 1\n": "item 1: query_id \"q_12\": want q_ and 16 hex digits",
		"-\n":                                   "item 1: it is empty",
		"- name: a\n":                           "item 1: it has no query",
		"- query_id: [1, 2]\n":                  "queries.yaml",
		"- query: SELECT 1\n  tll: 5s\n":        "field tll not found",
		"- query: SELECT 1\n  ttl: -5s\n":       "above 0",
		"- query: SELECT 1\n  consistency: strong\n":                     "want bounded, session or linearizable",
		"- query: SELECT 1\n- query: SELECT 2\n":                         "item 2: q_",
		"- {name: a, query: SELECT 1}\n- {name: A, query: SELECT b}\n":   "item 2: a is item 1 already",
		"- query_id: " + id + "\n  query: SELECT a FROM t WHERE c = ?\n": "query_id " + id + " is not that of its query, which is q_",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := newQueries(&queryFile{path: path})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Past the bound queries share one line, and memory stops growing.
func TestQueriesAreBounded(t *testing.T) {
	qs := registry(t, "")
	for i := range uint64(maxQueries + 100) {
		qs.of(&planner.Plan{QueryID: i + 1, Query: "q"})
	}
	if n := len(qs.all()); n != maxQueries {
		t.Fatalf("%d queries, want %d", n, maxQueries)
	}
	if q := qs.of(&planner.Plan{QueryID: 1 << 40, Query: "q"}); q.index != furtherQueries {
		t.Fatalf("index %d, want the shared one", q.index)
	}
}

func TestHistogramBuckets(t *testing.T) {
	var h histogram
	for nanos, bucket := range map[int64]int{-5: 0, 0: 0, 999: 0, 1000: 1, 1999: 1, 2000: 2, 4_000_000: 12, 1 << 62: 27} {
		h = histogram{}
		h.observe(nanos, 3)
		if h.buckets[bucket].get() != 3 {
			t.Errorf("%d ns is not in bucket %d", nanos, bucket)
		}
	}
}

// A context's id is its own: equal bytes, equal id, and never another's.
func TestContexts(t *testing.T) {
	var c contexts
	seen := map[uint64]int{}
	for i := range maxContexts/(3+contextOverhead) + 10 { // past the bound
		id := c.id([]byte{byte(i), byte(i >> 8), byte(i >> 16)})
		if other, ok := seen[id]; ok {
			t.Fatalf("contexts %d and %d share id %d", other, i, id)
		}
		seen[id] = i
	}
	if first, again := c.id([]byte("x")), c.id([]byte("x")); first != again {
		t.Fatal("the same context has two ids")
	}
}
