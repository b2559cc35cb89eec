package upstream

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
)

// The servers of this test binary, one of each kind, started when first needed.
var shared struct {
	sync.Mutex
	servers map[Kind]*sharedServer
	skipped map[Kind]int // how many tests went without
}

type sharedServer struct {
	once   sync.Once
	server *Server
	err    error
}

// Main is for TestMain: it runs the tests, stops the servers that Need started
// and says loudly how many tests went without a server.
//
//	func TestMain(m *testing.M) { os.Exit(upstream.Main(m)) }
func Main(m *testing.M) int {
	code := m.Run()
	shared.Lock()
	servers, skipped := shared.servers, shared.skipped
	shared.servers = nil
	shared.Unlock()
	for kind, s := range servers {
		if s.server == nil {
			continue
		}
		if err := s.server.Stop(); err != nil {
			fmt.Fprintf(os.Stderr, "upstream: stopping %s: %v\n", kind, err)
			code = max(code, 1)
		}
	}
	for kind, n := range skipped {
		fmt.Fprintf(os.Stderr, "upstream: %d TESTS SKIPPED FOR WANT OF A SERVER: %s\n", n, kind)
	}
	return code
}

// Need gives the test binary's shared server of the kind. Tests that share it
// use tables or databases of their own. When the kind is not available the test
// is skipped, loudly and counted; MariaDB and Postgres15 are the machine's own
// and never skipped: their lack fails the test. With -short, tests that need a
// server are left out.
func Need(t testing.TB, kind Kind) *Server {
	t.Helper()
	leaveOut(t)
	shared.Lock()
	if shared.servers == nil {
		shared.servers = make(map[Kind]*sharedServer)
	}
	s := shared.servers[kind]
	if s == nil {
		s = new(sharedServer)
		shared.servers[kind] = s
	}
	shared.Unlock()
	s.once.Do(func() { s.server, s.err = Start(context.Background(), kind) })
	check(t, kind, s.err)
	return s.server
}

// Own starts a server for one test alone, for instance one that will be killed,
// and stops it when the test ends. It skips and fails as Need does.
func Own(t testing.TB, kind Kind, opts ...Option) *Server {
	t.Helper()
	leaveOut(t)
	s, err := Start(context.Background(), kind, opts...)
	check(t, kind, err)
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stopping %s: %v", kind, err)
		}
	})
	return s
}

func leaveOut(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("upstream: needs a server; left out by -short")
	}
}

func check(t testing.TB, kind Kind, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if !errors.Is(err, ErrUnavailable) || kind == MariaDB || kind == Postgres15 {
		t.Fatalf("upstream: %s must be here: %v", kind, err)
	}
	countSkip(t, kind)
	t.Skipf("upstream: SKIPPED, no %s: %v", kind, err)
}

// countSkip counts for Main, and for `make test`, which names a file in
// FRESHET_SKIPS and adds up its lines over all test binaries.
func countSkip(t testing.TB, kind Kind) {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.skipped == nil {
		shared.skipped = make(map[Kind]int)
	}
	shared.skipped[kind]++
	path := os.Getenv("FRESHET_SKIPS")
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatalf("upstream: counting a skip: %v", err)
	}
	defer file.Close()
	if _, err := fmt.Fprintf(file, "%s %s\n", kind, t.Name()); err != nil {
		t.Fatalf("upstream: counting a skip: %v", err)
	}
}

// forget takes a stopped server out of the shared ones, so that a test that
// stopped it by mistake shows in the next Need and not in a connection error.
func forget(s *Server) {
	shared.Lock()
	defer shared.Unlock()
	if entry := shared.servers[s.Kind]; entry != nil && entry.server == s {
		delete(shared.servers, s.Kind)
	}
}

// DB opens a pool to the server that is closed when the test ends.
func (s *Server) DB(t testing.TB) *sql.DB {
	t.Helper()
	db, err := s.Open()
	if err != nil {
		t.Fatalf("upstream: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("upstream: closing: %v", err)
		}
	})
	return db
}
