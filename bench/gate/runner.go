package gate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"freshet/bench/wire"
)

// lane is one session of a pair. An error is about the connection; what the
// server refuses is part of the reply.
type lane interface {
	run(c call) ([]wire.Message, error)
	// hello is what the server told at connect, as messages to compare.
	hello() []wire.Message
	close() error
}

// dialect is what differs between the two protocols.
type dialect struct {
	setup    func(ctx context.Context, pairs int) error
	teardown func(ctx context.Context) error
	// connect opens pair n's session on one side; variant n chooses its options.
	connect func(ctx context.Context, n int, through bool) (lane, error)
	// logins are connects that must fail alike.
	logins []login
	reads  []template
	writes []template
	// scenes are sequences that belong together, with their weights.
	scenes []scene
	modes  []mode
	// binary: results can be asked for in text and in binary.
	binary bool
}

// login is a connection attempt; run gives the refusal on one side.
type login struct {
	name string
	run  func(ctx context.Context, through bool) ([]wire.Message, error)
}

// pair is a session on each side, in the same state.
type pair struct {
	n               int
	direct, through lane
	// foreignAt is when somebody else last changed a shared table; zero when
	// the pair's own session through has written since, which must show at once
	// its write and all before it.
	foreignAt time.Time
	// seen holds, for each read, the number of shared writes at which the answer
	// through was last found right: until the next one it must stay right.
	seen map[string]int
	// spoilt: the server has refused something in the open write transaction.
	spoilt bool
}

// runner plays scenes on pairs. It is one goroutine: nothing is written while
// a call is compared.
type runner struct {
	cfg    Config
	d      *dialect
	rng    *rand.Rand
	pairs  []*pair
	other  lane
	writes int
	report Report
}

func (r *runner) connectAll(ctx context.Context) error {
	var err error
	if r.other, err = r.d.connect(ctx, 0, false); err != nil {
		return fmt.Errorf("direct: %w", err)
	}
	for n := 0; n < r.cfg.Sessions; n++ {
		p := &pair{n: n}
		if err := r.connectPair(ctx, p); err != nil {
			return err
		}
		r.pairs = append(r.pairs, p)
	}
	for _, l := range r.d.logins {
		direct, err := l.run(ctx, false)
		if err != nil {
			return fmt.Errorf("direct: %s: %w", l.name, err)
		}
		through, err := l.run(ctx, true)
		r.report.Calls++
		r.judge(nil, call{sql: "login: " + l.name}, direct, through, err)
	}
	return nil
}

func (r *runner) connectPair(ctx context.Context, p *pair) error {
	var err error
	if p.direct, err = r.d.connect(ctx, p.n, false); err != nil {
		return fmt.Errorf("direct: %w", err)
	}
	if p.through, err = r.d.connect(ctx, p.n, true); err != nil {
		return fmt.Errorf("through: %w", err)
	}
	p.seen = make(map[string]int)
	if r.report.Calls < r.cfg.Calls {
		r.report.Calls++
	}
	r.judge(p, call{sql: "connect"}, p.direct.hello(), p.through.hello(), nil)
	return nil
}

// play runs a scene's calls in order on p. After a difference the rest of the
// scene has no meaning and both sessions start again.
func (r *runner) play(ctx context.Context, p *pair, calls []call) error {
	for _, c := range calls {
		if err := ctx.Err(); err != nil {
			return err
		}
		if r.report.Calls == r.cfg.Calls {
			return nil
		}
		r.report.Calls++
		whole, err := r.step(p, c)
		if err != nil {
			return err
		}
		if !whole {
			r.closePair(p)
			return r.connectPair(ctx, p)
		}
		if c.settles {
			p.foreignAt = time.Time{}
		}
	}
	return nil
}

// step makes one call; it is false when the pair has to start again.
func (r *runner) step(p *pair, c call) (whole bool, err error) {
	if c.class == write {
		return r.write(p, c)
	}
	return r.compare(p, c), nil
}

// write runs c once. The session's settings may make the server refuse it (an
// encoding that cannot show a RETURNING, a search path); through the proxy
// only if it is refused direct, too. It is false when the connection through broke.
func (r *runner) write(p *pair, c call) (whole bool, err error) {
	by := map[writer]lane{byThrough: p.through, byDirect: p.direct, byOther: r.other}[c.by]
	reply, err := by.run(c)
	if err != nil && c.by == byThrough {
		r.judge(p, c, nil, nil, err)
		c.open = false // whether it was done, nobody knows
		r.wrote(p, c, true)
		return false, nil
	}
	if err == nil && c.by == byOther {
		err = refusal(reply)
	}
	refused := refusal(reply) != nil
	if err == nil && refused && c.by == byThrough && !p.spoilt {
		var direct []wire.Message
		// In a transaction the status that follows the refusal differs by right.
		if direct, err = p.direct.run(c); err == nil && (!c.inside || refusal(direct) == nil) {
			r.judge(p, c, direct, reply, nil)
		}
	}
	if err != nil {
		return true, fmt.Errorf("seed %d, call %d, session %d: %s: %w", r.cfg.Seed, r.report.Calls, p.n, c, err)
	}
	r.wrote(p, c, refused)
	return true, nil
}

// wrote notes what the pairs may now see. A refused write may have done its
// first half (several statements in one text), and a refusal inside a
// transaction may have undone it: the session's own commit then promises no
// more than another's.
func (r *runner) wrote(p *pair, c call, refused bool) {
	p.spoilt = refused || p.spoilt && c.inside
	if c.open {
		return
	}
	r.report.Writes++
	r.writes++
	now := time.Now()
	for _, q := range r.pairs {
		q.foreignAt = now
	}
	if c.by == byThrough && !p.spoilt {
		p.foreignAt = time.Time{}
	}
	p.spoilt = false
}

// compare runs c on both sides. It is false when they differ or a connection
// broke: the sessions' states may differ from here on, and one fault must not
// be told twice, so the pair starts again.
func (r *runner) compare(p *pair, c call) bool {
	var behindSince time.Time
	for {
		direct, derr := p.direct.run(c)
		through, terr := p.through.run(c)
		what := ""
		if derr == nil && terr == nil {
			what = diff(direct, through)
		}
		if derr == nil && terr == nil && what == "" {
			r.right(p, c, behindSince)
			return true
		}
		if derr != nil {
			terr = fmt.Errorf("direct connection: %w", derr)
		}
		now := time.Now()
		if terr == nil && r.mayBeBehind(p, c, now) {
			if behindSince.IsZero() {
				behindSince = now
			}
			time.Sleep(time.Millisecond)
			continue
		}
		r.judge(p, c, direct, through, terr)
		return false
	}
}

// right notes that the answer to c was found equal.

func (r *runner) right(p *pair, c call, behindSince time.Time) {
	if c.class != read {
		return
	}
	r.report.Reads++
	p.seen[c.key()] = r.writes
	if !behindSince.IsZero() {
		r.report.Retried++
		r.report.Longest = max(r.report.Longest, time.Since(behindSince))
	}
}

// mayBeBehind says whether a read that differs may only be late: somebody else
// wrote less than MaxStaleness ago, and this session has not seen the new
// answer yet.
func (r *runner) mayBeBehind(p *pair, c call, now time.Time) bool {
	if c.class != read || p.foreignAt.IsZero() || now.Sub(p.foreignAt) > r.cfg.MaxStaleness {
		return false
	}
	at, ok := p.seen[c.key()]
	return !ok || at != r.writes
}

// judge prints and counts a difference, if there is one.
func (r *runner) judge(p *pair, c call, direct, through []wire.Message, terr error) {
	what := ""
	if terr != nil {
		what = "through: " + terr.Error()
	} else if what = diff(direct, through); what == "" {
		return
	}
	r.report.Differences++
	session := -1
	if p != nil {
		session = p.n
	}
	// Where the report goes is the caller's; a broken pipe there must not end the run early.
	_, err := fmt.Fprintf(r.cfg.Out, "difference %d: seed %d call %d session %d: %s\n  %s\n",
		r.report.Differences, r.cfg.Seed, r.report.Calls, session, c, what)
	if err != nil {
		r.cfg.Out = discard{}
	}
}

// discard swallows output that nobody reads any more.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func (r *runner) closePair(p *pair) {
	for _, l := range []lane{p.direct, p.through} {
		if l == nil {
			continue
		}
		// A connection that is being given up may be broken already: that was judged.
		if err := l.close(); err != nil {
			continue
		}
	}
}

func (r *runner) closeAll() {
	for _, p := range r.pairs {
		r.closePair(p)
	}
	if r.other != nil {
		r.closePair(&pair{direct: r.other})
	}
}
