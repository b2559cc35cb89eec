package precision

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"

	"freshet/bench/metrics"
	"freshet/bench/versus"
)

// KeysConfig is how many answers are kept and how many rows are changed.
type KeysConfig struct {
	Config
	Keys, Updates int
}

// Keys is what became of the kept answers.
type Keys struct {
	Keys, Updates int
	// Kept is how many were answered from memory before the updates, as they
	// all should be.
	Kept int
	// Misses is how many were not, after them.
	Misses int
	// Wrong is how many answers were not the row's value.
	Wrong int
}

// moreMisses is the share of misses beyond one for each update that is allowed.
const moreMisses = 0.01

// Failed says whether the promise was broken: as many misses as rows changed,
// or a hundredth more.
func (k Keys) Failed() bool {
	return k.Kept != k.Keys || k.Wrong > 0 || k.Misses < k.Updates || float64(k.Misses) > float64(k.Updates)*(1+moreMisses)
}

// Print writes the report.
func (k Keys) Print(w io.Writer) error {
	word := "kept"
	if k.Failed() {
		word = "MISSED"
	}
	_, err := fmt.Fprintf(w, "keys: %d keys, %d of them answered from memory; after %d single-row updates made directly upstream %d were not (%+.2f %%, promised at most +%.0f %%: %s), %d answers wrong\n",
		k.Keys, k.Kept, k.Updates, k.Misses, 100*(float64(k.Misses)/float64(max(1, k.Updates))-1), 100*moreMisses, word, k.Wrong)
	return err
}

const (
	keysTable = "freshet_bench_keys"
	// keysReaders share the keys.
	keysReaders = 4
	// keysExtend is after how many reads a session's life is prolonged.
	keysExtend = 5000
)

// RunKeys keeps the answers to Keys different keys, changes the rows of Updates
// of them and reads all again.
func RunKeys(ctx context.Context, cfg KeysConfig) (report Keys, err error) {
	report = Keys{Keys: cfg.Keys, Updates: cfg.Updates}
	s, err := openStage(ctx, cfg.Direct, cfg.Through)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	defer func() { err = errors.Join(err, dropTables(context.WithoutCancel(ctx), s, []string{keysTable})) }()
	if err := fillKeys(ctx, s, cfg.Keys); err != nil {
		return report, err
	}
	k := &keysRun{cfg: cfg, values: make([]int64, cfg.Keys)}
	// The first pass reads before the feed has taken the table up, and fills.
	for pass := 0; pass < 3 && report.Kept < cfg.Keys; pass++ {
		if err := s.pass(ctx); err != nil {
			return report, err
		}
		missed, wrong, err := k.readAll(ctx)
		if err != nil {
			return report, err
		}
		report.Kept, report.Wrong = cfg.Keys-missed, report.Wrong+wrong
	}
	if err := k.update(s); err != nil {
		return report, err
	}
	if err := s.pass(ctx); err != nil {
		return report, err
	}
	missed, wrong, err := k.readAll(ctx)
	report.Misses, report.Wrong = missed, report.Wrong+wrong
	return report, err
}

func fillKeys(ctx context.Context, s *stage, keys int) error {
	script := []string{"DROP TABLE IF EXISTS " + keysTable, "CREATE TABLE " + keysTable + " (id INT PRIMARY KEY, v BIGINT NOT NULL)"}
	const atOnce = 1000
	for id := 0; id < keys; id += atOnce {
		var rows []string
		for i := id; i < min(id+atOnce, keys); i++ {
			rows = append(rows, fmt.Sprintf("(%d,0)", i))
		}
		script = append(script, "INSERT INTO "+keysTable+" VALUES "+strings.Join(rows, ","))
	}
	return versus.Exec(ctx, s.directDSN, script...)
}

type keysRun struct {
	cfg    KeysConfig
	values []int64
}

// update changes one row by each statement, no row twice.
func (k *keysRun) update(s *stage) error {
	rng := rand.New(rand.NewPCG(k.cfg.Seed, 13))
	for n, id := range rng.Perm(k.cfg.Keys)[:k.cfg.Updates] {
		if n%keysExtend == 0 {
			if err := s.live(); err != nil {
				return err
			}
		}
		k.values[id] = int64(n) + 1
		if err := write(s.direct, fmt.Sprintf("UPDATE %s SET v = %d WHERE id = %d", keysTable, k.values[id], id)); err != nil {
			return err
		}
	}
	return nil
}

// readAll reads every key once; missed is how many were not answered from
// memory by the proxy's own count, wrong how many answers are not the row's.
func (k *keysRun) readAll(ctx context.Context) (missed, wrong int, err error) {
	before, err := metrics.Read(ctx, k.cfg.HTTP)
	if err != nil {
		return 0, 0, err
	}
	type result struct {
		wrong int
		err   error
	}
	results := make(chan result, keysReaders)
	for reader := range keysReaders {
		go func() {
			wrong, err := k.readPart(ctx, reader)
			results <- result{wrong, err}
		}()
	}
	for range keysReaders {
		r := <-results
		wrong, err = wrong+r.wrong, errors.Join(err, r.err)
	}
	if err != nil {
		return 0, 0, err
	}
	after, err := metrics.Read(ctx, k.cfg.HTTP)
	if err != nil {
		return 0, 0, err
	}
	return k.cfg.Keys - int(after.Hits()-before.Hits()), wrong, nil
}

func (k *keysRun) readPart(ctx context.Context, reader int) (wrong int, err error) {
	c, err := versus.Dial(ctx, k.cfg.Through)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for n, id := 0, reader; id < k.cfg.Keys; n, id = n+1, id+keysReaders {
		if n%keysExtend == 0 {
			if err := errors.Join(ctx.Err(), c.Extend()); err != nil {
				return wrong, err
			}
		}
		rows, err := c.Query(fmt.Sprintf("SELECT v FROM %s WHERE id = %d", keysTable, id))
		if err != nil {
			return wrong, err
		}
		if len(rows) != 1 || len(rows[0]) != 1 || string(rows[0][0]) != strconv.FormatInt(k.values[id], 10) {
			wrong++
		}
	}
	return wrong, nil
}
