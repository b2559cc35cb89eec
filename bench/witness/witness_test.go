package witness

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"testing"
	"time"

	"freshet/bench/program"
	"freshet/bench/upstream"
)

func TestMain(m *testing.M) { os.Exit(program.Clean(upstream.Main(m))) }

var (
	small = Size{Rows: 1000, Events: 200, Threads: 4, Seconds: 1, Transactions: 200, Probes: 100}
	full  = Size{Rows: 10_000, Events: 2000, Threads: 16, Seconds: 10, Transactions: 2000, Warehouses: 1, Probes: 1000}
)

// maxStaleness is Freshet's default bound: a read that begins this long after
// the last write must show it.
const maxStaleness = time.Second

// The parts of FRESHET_WITNESS.
const (
	wantFull   = "full"
	wantDirect = "direct"
)

func TestWitness(t *testing.T) {
	for _, kind := range upstream.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			size, first := small, kind == upstream.MariaDB || kind == upstream.Postgres15
			if os.Getenv("FRESHET_WITNESS") == wantFull {
				size, first = full, true
			} else if first {
				size.Warehouses = 1
			}
			s := newStage(t, kind)
			for i, load := range loads(t, s.twin.Dialect, size) {
				if !first && i%4 != 0 && i%4 != 3 {
					continue // half of them still have every script, and both ways of sending, alone and in a crowd
				}
				t.Run(load.Name, func(t *testing.T) { s.play(t, load) })
			}
		})
	}
}

func loads(t *testing.T, dialect string, size Size) []Load {
	all := sysbenchLoads(size)
	if dialect == upstream.DialectPostgres {
		all = append(all, pgbenchLoads(size)...)
	}
	if size.Warehouses > 0 {
		program, err := GoTPC()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tpccLoad(program, dialect, size))
	}
	return all
}

// stage is two equal servers, one of them behind Freshet.
type stage struct {
	freshet                        *Freshet // nil when Freshet is left out
	twin, behind, through          Endpoint
	twinDB, behindText, behindPrep *sql.DB
}

func newStage(t *testing.T, kind upstream.Kind) *stage {
	memory := upstream.WithSettings("innodb-buffer-pool-size=512M")
	if kind == upstream.Postgres15 || kind == upstream.Postgres18 {
		memory = upstream.WithSettings("shared_buffers=512MB")
	}
	twin, behind := upstream.Own(t, kind), upstream.Own(t, kind, memory)
	s := &stage{twin: Direct(twin), behind: Direct(behind), through: Direct(behind)}
	if os.Getenv("FRESHET_WITNESS") != wantDirect {
		var err error
		if s.freshet, err = Serve(program.Path(t), behind.DSN(), t.TempDir()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.freshet.Stop(); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Logf("Freshet's log:\n%s", s.freshet.Log())
			}
		})
		t.Log(s.freshet.Greeting)
		if s.through, err = s.behind.At(s.freshet.Address); err != nil {
			t.Fatal(err)
		}
	}
	s.twinDB = open(t, s.twin, Text)
	s.behindText, s.behindPrep = open(t, s.behind, Text), open(t, s.behind, Prepared)
	return s
}

func open(t *testing.T, e Endpoint, mode Mode) *sql.DB {
	db, err := e.Open(mode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// play runs one load on the stage, from an empty database to an empty database.
func (s *stage) play(t *testing.T, load Load) {
	through := map[Mode]*sql.DB{Text: open(t, s.through, Text), Prepared: open(t, s.through, Prepared)}
	s.must(t, "prepare", s.through, load.Prepare)
	defer s.must(t, "cleanup", s.through, load.Cleanup)
	for _, statement := range load.Tune {
		if _, err := through[Text].ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if load.Repeatable {
		// The tools fill tables with rows that differ from time to time, whatever the seed.
		s.must(t, "prepare the twin", s.twin, load.Prepare)
		defer s.must(t, "cleanup of the twin", s.twin, load.Cleanup)
		if err := copyRows(t.Context(), s.twin.Dialect, s.behindText, s.twinDB); err != nil {
			t.Fatalf("copying to the twin: %v", err)
		}
	}
	s.compare(t, load, through, time.Now())
	hitsBefore := s.hits(t)

	s.must(t, "run", s.through, load.Run)
	ended := time.Now()
	hits := s.hits(t) - hitsBefore
	if s.freshet != nil && hits < float64(load.MustHit) {
		t.Errorf("%.0f statements of the run were answered from memory, want %d or more", hits, load.MustHit)
	}
	if load.Repeatable {
		s.must(t, "run on the twin", s.twin, load.Run)
	}
	rows := s.compare(t, load, through, ended)
	t.Logf("%d rows equal, %.0f hits in the run", rows, hits)
}

// must runs commands; an error ends the test of this load.
func (s *stage) must(t *testing.T, what string, e Endpoint, commands func(Endpoint) []Command) {
	t.Helper()
	// Not the test's own context, which has ended when deferred calls run late.
	if err := doAll(context.Background(), commands(e)); err != nil {
		t.Fatalf("%s through %s: %v", what, e, err)
	}
}

func (s *stage) hits(t *testing.T) float64 {
	t.Helper()
	if s.freshet == nil {
		return 0
	}
	n, err := s.freshet.Queries("hit")
	if err != nil {
		t.Error(err)
	}
	return n
}

// compareLimit ends a comparison that hangs, which is how a proxy fails that
// loses an answer on the way.
const compareLimit = 5 * time.Minute

// rereadRows is the size up to which whole databases are read a second time.
const rereadRows = 20_000

// compare reads everything through Freshet and directly, the probes in both
// modes and twice so that what the first reading filled is hit; and the tables
// of the twin.
func (s *stage) compare(t *testing.T, load Load, through map[Mode]*sql.DB, written time.Time) (rows int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), compareLimit)
	defer cancel()
	direct := map[Mode]*sql.DB{Text: s.behindText, Prepared: s.behindPrep}
	for range 2 {
		for mode := range through {
			for _, p := range load.Probes {
				fresh(t, written, func() error { return p.same(ctx, s.behind, mode, direct[mode], through[mode]) })
			}
		}
		if rows > rereadRows {
			break
		}
		fresh(t, written, func() (err error) {
			rows, err = sameTables(ctx, s.behind.Dialect, s.behindText, through[Text], nil)
			return err
		})
	}
	if load.Repeatable {
		// pgbench's history has the time of each transaction.
		if _, err := sameTables(ctx, s.twin.Dialect, s.twinDB, s.behindText, []string{"mtime"}); err != nil {
			t.Errorf("the twin's data: %v", err)
		}
	}
	return rows
}

// fresh repeats a comparison that fails while an old answer is still within the
// promised bound; one that began later has to succeed.
func fresh(t *testing.T, written time.Time, same func() error) {
	t.Helper()
	for {
		late := time.Since(written) > maxStaleness
		err := same()
		if err == nil {
			return
		}
		if late || !errors.Is(err, errDiffer) {
			t.Errorf("%s after the last write: %v", time.Since(written).Round(time.Millisecond), err)
			return
		}
	}
}
