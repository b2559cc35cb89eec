// Package feed follows an upstream's change stream (MySQL's and MariaDB's
// binary log, PostgreSQL's logical replication) and marks in the store what
// every transaction changed. It also probes the upstream, to tell which of the
// received transactions can already be read, and up to which moment everything
// that could be read has been applied.
//
// The way of a change: a source (mysql*.go, postgres*.go) decodes the stream
// into calls of a txn (txn.go), which collects dependencies for the shapes of
// the tracker's view (tracker.go, view.go) and, at the transaction's end, has
// the applier mark them (applier.go). Which transactions are visible and which
// probes are proven is the ledger's business (ledger.go).
package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"freshet/cache"
)

// Config says what to follow. Store, Tracker and DSN are required.
type Config struct {
	Dialect string // "mysql" (MariaDB too) or "postgres"; "" takes the DSN's scheme
	DSN     string // mysql://, mariadb://, postgres:// or postgresql://
	// From is the DSN of a replica of the upstream to take the change stream
	// from; "" takes it from the upstream itself. Whatever else is asked is
	// asked of the upstream. It cannot be had together with Synchronous.
	From    string
	Store   Marks // a *cache.Store
	Tracker *Tracker
	Log     *slog.Logger
	// ProbeEvery is how often staleness is proven when nobody asks for it;
	// 100 ms when 0.
	ProbeEvery time.Duration
	// OnSchemaChange is told of every table whose definition changed, after
	// all that depends on it was marked; table "" stands for all of them. It
	// is called on the feed's goroutines and must not wait for the feed.
	OnSchemaChange func(schema, table string)
	// Synchronous has the upstream, which must be set up for it (see
	// CheckSynchronous), hold each commit back until it is marked: LeaseUntil.
	// While the feed is away, the upstream waits.
	Synchronous bool
}

// source is one upstream's dialect.
type source interface {
	follower
	// check asks once whether the upstream can be followed; its errors say how
	// to mend what is missing.
	check(ctx context.Context) error
	// stream follows until the line or ctx ends. It calls the applier's start
	// or resume once it stands in the stream.
	stream(ctx context.Context) error
	// keeps tells whether the place in the stream is still good after such an
	// end.
	keeps(err error) bool
	// forget makes the next stream begin anew.
	forget()
	// probe asks the upstream for a snapshot, on a line of its own. One that is
	// not asked to be whole may leave out what takes the upstream long, that no
	// definition has changed, and says so: then it proves nothing.
	probe(ctx context.Context, whole bool) (seen sighting, isWhole bool, err error)
	// nudge is called while some probe waits for the stream, ever less often.
	nudge(ctx context.Context, waited time.Duration)
	// inspect compares tables with the catalog and makes the upstream publish
	// them.
	inspect(ctx context.Context, tables []*Table) (verdict, error)
	// promise asks how the upstream's commits wait for the stream that runs.
	promise(ctx context.Context) (promise, error)
	// tend puts right, now and then, what the source did to the upstream.
	tend(ctx context.Context)
	// close ends the lines that probe and inspect use, and takes away what
	// the source left on the upstream.
	close(ctx context.Context)
	describe(st *Status)
}

// Feed follows one upstream. Its methods are for any goroutine.
type Feed struct {
	cfg     Config
	applier *applier
	source  source
	log     *slog.Logger
	journal journal
	lease   lease

	provenAt     atomic.Int64
	provenTicket atomic.Uint64
	begun        atomic.Uint64 // the newest probe's number
	kick, look   chan struct{} // the prober is asked, see Kick and Look
	woken        chan struct{}
	awaiting     awaiting

	stop    context.CancelFunc
	running sync.WaitGroup
	closed  sync.Once

	mu        sync.Mutex
	interrupt context.CancelCauseFunc // ends the stream that runs
}

var processStart = time.Now()

// Now is the monotonic time since the process started, in nanoseconds.
func Now() int64 { return int64(time.Since(processStart)) }

// Open checks the upstream and starts following it. An error says what the
// upstream lacks and the statement that mends it. The stream itself starts in
// the background: Status().Up tells when it runs.
func Open(ctx context.Context, cfg Config) (*Feed, error) {
	if cfg.ProbeEvery <= 0 {
		cfg.ProbeEvery = 100 * time.Millisecond
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.OnSchemaChange == nil {
		cfg.OnSchemaChange = func(string, string) {}
	}
	f := &Feed{cfg: cfg, log: cfg.Log, kick: make(chan struct{}, 1), look: make(chan struct{}, 1), woken: make(chan struct{}, 1)}
	f.journal.log = f.log
	f.applier = &applier{marks: cfg.Store, tracker: cfg.Tracker, log: cfg.Log,
		onSchema: cfg.OnSchemaChange, onProven: f.proven}
	var err error
	if f.source, err = newSource(f, cfg); err != nil {
		return nil, err
	}
	if err := f.source.check(ctx); err != nil {
		f.source.close(ctx)
		return nil, err
	}
	ctx, f.stop = context.WithCancel(context.Background())
	cfg.Tracker.attach(f.source)
	f.running.Add(3)
	go f.followLoop(ctx)
	go f.probeLoop(ctx)
	go f.keepLoop(ctx)
	if cfg.Synchronous {
		f.running.Add(1)
		go f.leaseLoop(ctx)
	}
	return f, nil
}

func newSource(f *Feed, cfg Config) (source, error) {
	if cfg.From != "" && cfg.Synchronous {
		return nil, errors.New("feed: commits cannot be held back for a stream that comes from a replica")
	}
	switch scheme, _, _ := strings.Cut(cfg.DSN, "://"); scheme {
	case "mysql", "mariadb":
		return newMySQL(f, cfg.DSN, cfg.From)
	case "postgres", "postgresql":
		return newPostgres(f, cfg.DSN, cfg.From)
	default:
		return nil, fmt.Errorf("feed: %q is not a DSN of a server that can be followed", scheme)
	}
}

// Close stops following and takes away what the feed left on the upstream.
// Nothing can be followed any more; what was kept stays as it is.
func (f *Feed) Close() {
	f.closed.Do(func() {
		f.cfg.Tracker.detach()
		f.stop()
		f.running.Wait()
		f.lease.end("the feed is closed")
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		f.source.close(ctx)
		f.applier.lost()
	})
}

// proven is called by the applier, with rising tickets.
func (f *Feed) proven(ticket uint64, begun int64) {
	f.provenAt.Store(begun)
	f.provenTicket.Store(ticket)
	f.awaiting.proven(ticket)
	f.wake()
}

// ProvenAt is a time, as Now gives it, such that everything that was visible
// upstream then has been applied; 0 while there is none.
func (f *Feed) ProvenAt() int64 { return f.provenAt.Load() }

// ProvenTicket is the number of the newest probe that is proven.
func (f *Feed) ProvenTicket() uint64 { return f.provenTicket.Load() }

// Ticket returns a number such that ProvenTicket() >= it implies that a probe
// which began after this call is proven: whatever was visible upstream when
// Ticket was called has been applied.
//
// A probe's number is counted up before its question is sent, so the one that
// comes after the number read here begins after this call.
func (f *Feed) Ticket() uint64 { return f.begun.Load() + 1 }

// Kick asks for a probe that proves something, now. Kicks are shared; probes
// leave the server's core alone in between, see turn.
func (f *Feed) Kick() { post(f.kick) }

// Look asks only what can be read by now: fills wait for it. It costs the
// upstream less than Kick.
func (f *Feed) Look() { post(f.look) }

// wake has the keeper look for work.
func (f *Feed) wake() { post(f.woken) }

func post(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// errPlaceLost wraps every end of a stream after which the place in it is lost.
var errPlaceLost = errors.New("the place in the change stream is lost")

// lose ends the running stream, its place lost. Whoever found that out may ask
// the next question before the stream has ended; what it proves counts no more.
func (f *Feed) lose(why error) {
	f.applier.doubt()
	f.lease.end("the place in the change stream is lost")
	f.cut(fmt.Errorf("%w: %w", errPlaceLost, why))
}

// cut ends the running stream with this error.
func (f *Feed) cut(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.interrupt != nil {
		f.interrupt(why)
	}
}

const (
	backoffLeast = 50 * time.Millisecond
	backoffMost  = 5 * time.Second
)

// followLoop keeps a stream running until ctx ends.
func (f *Feed) followLoop(ctx context.Context) {
	defer f.running.Done()
	backoff := backoffLeast
	for ctx.Err() == nil {
		began := time.Now()
		err := f.followOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		f.journal.ended(err)
		if time.Since(began) > backoffMost {
			backoff = backoffLeast
		}
		select {
		case <-ctx.Done():
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, backoffMost)
	}
}

func (f *Feed) followOnce(ctx context.Context) error {
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f.mu.Lock()
	f.interrupt = cancel
	f.mu.Unlock()
	err := f.source.stream(run)
	if cause := context.Cause(run); cause != nil {
		err = cause
	}
	if err == nil {
		err = errStreamEnded
	}
	f.applier.cut()
	f.lease.end("the change stream does not run")
	if !f.source.keeps(err) {
		f.source.forget()
		f.applier.lostPlace()
	}
	return err
}

// Status is what the feed can say of itself.
type Status struct {
	Up           bool
	Dialect      string
	Server       string // as the server names its version
	Position     cache.Position
	Visible      cache.Position // 0 while not known
	PositionText string         // the position as the upstream writes it
	ProvenAt     int64          // as Now gives it
	LastError    string
	LastErrorAt  time.Time
	Publication  string // PostgreSQL
	Slot         string // PostgreSQL
	From         string // host:port that the change stream comes from
	Replica      bool   // that is a replica of the upstream

	Rows, Transactions uint64 // rows looked at, transactions received
	// Marked counts what was marked, by kind.
	Marked struct{ Key, Range, Shape, Table, Database, All uint64 }
	Tables int // tables followed

	Synchronous bool   // Config.Synchronous
	LeaseUntil  int64  // as LeaseUntil gives it
	NoLease     string // why there is no lease now; "" when there is one
}

// Status reports the feed's state.
func (f *Feed) Status() Status {
	a := f.applier
	st := Status{ProvenAt: f.ProvenAt()}
	a.mu.Lock()
	st.Up = a.live
	st.Position = a.ledger.applied
	if a.ledger.open {
		st.Visible = a.ledger.visible
	}
	a.mu.Unlock()
	c := &a.counts
	st.Rows, st.Transactions = c.rows.Load(), c.transactions.Load()
	st.Marked.Key, st.Marked.Range = c.key.Load(), c.block.Load()
	st.Marked.Shape, st.Marked.Table = c.shape.Load(), c.table.Load()
	st.Marked.Database, st.Marked.All = c.database.Load(), c.all.Load()
	st.Tables = len(a.tracker.all())
	if at, err := f.journal.latest(); err != nil {
		st.LastError, st.LastErrorAt = err.Error(), at
	}
	if st.Synchronous = f.cfg.Synchronous; st.Synchronous {
		st.LeaseUntil = f.LeaseUntil()
		_, st.NoLease = f.lease.state(Now())
	}
	f.source.describe(&st)
	return st
}
