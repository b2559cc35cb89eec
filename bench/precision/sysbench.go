package precision

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"freshet/bench/versus"
)

// sysbench is oltp_read_write of sysbench 1.0 without its transactions around
// the reads (--skip_trx, as otherwise everything is forwarded): ten point
// reads, four ranges, then an update of k, an update of c, a delete and an
// insert of one id, by statements of the same text.
type sysbench struct {
	rng  *rand.Rand
	rows int
	// id draws the row of a point read or a write, start the first of a range.
	id, start func() int
}

const (
	sbTable     = "sbtest1"
	sbRange     = 100 // --range_size
	sbPoints    = 10  // --point_selects
	sbRowsAtOne = 200 // rows of one INSERT
)

// distribution says how ids are drawn.
type distribution func(b *sysbench)

// special is sysbench's own default, --rand-type=special: three of four values
// are in the middle hundredth of the table, the others the mean of twelve even
// ones. What is read most is changed most, so ranges can hardly be hit.
func special(b *sysbench) {
	b.id = func() int {
		if b.rng.IntN(4) > 0 {
			hot := max(1, b.rows/100)
			return 1 + (b.rows-hot)/2 + b.rng.IntN(hot)
		}
		total := 0
		for range 12 {
			total += b.rng.IntN(b.rows)
		}
		return 1 + total/12
	}
	b.start = b.id
}

// spreadStarts is of how many ranges each is read again and again.
const spreadStarts = 100

// spread writes evenly over the table, --rand-type=uniform, and reads so many
// ranges over and over: of these most hits are at stake.
func spread(b *sysbench) {
	b.id = func() int { return 1 + b.rng.IntN(b.rows) }
	var starts []int
	for range spreadStarts {
		starts = append(starts, 1+b.rng.IntN(b.rows-sbRange))
	}
	b.start = func() int { return starts[b.rng.IntN(len(starts))] }
}

var sbRanges = []string{"simple range", "sum range", "order range", "distinct range"}

func newSysbench(name string, rng *rand.Rand, rows int, d distribution) *workload {
	b := &sysbench{rng: rng, rows: max(rows, 10*sbRange)}
	d(b)
	return &workload{name: name, tables: []string{sbTable}, setUp: b.setUp, reads: b.reads, writes: b.writes,
		targets: []target{{"ranges", sbRanges, leastRangeHits}}}
}

// leastRangeHits is the promise for ranges.
const leastRangeHits = 0.80

func (b *sysbench) setUp(ctx context.Context, s *stage) error {
	script := []string{
		"CREATE TABLE " + sbTable + " (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL)",
		"CREATE INDEX k_1 ON " + sbTable + " (k)",
	}
	for id := 1; id <= b.rows; id += sbRowsAtOne {
		var values []string
		for i := id; i < id+sbRowsAtOne && i <= b.rows; i++ {
			values = append(values, b.row(i))
		}
		script = append(script, "INSERT INTO "+sbTable+" (id, k, c, pad) VALUES "+strings.Join(values, ","))
	}
	return versus.Exec(ctx, s.directDSN, script...)
}

func (b *sysbench) row(id int) string {
	return fmt.Sprintf("(%d, %d, '%s', '%s')", id, 1+b.rng.IntN(b.rows), b.digits(10), b.digits(5))
}

// digits are groups of eleven digits, as sysbench fills c and pad with.
func (b *sysbench) digits(groups int) string {
	parts := make([]string, groups)
	for i := range parts {
		parts[i] = fmt.Sprintf("%011d", b.rng.Int64N(1e11))
	}
	return strings.Join(parts, "-")
}

func (b *sysbench) reads() []read {
	var out []read
	for range sbPoints {
		out = append(out, read{"point select", fmt.Sprintf("SELECT c FROM %s WHERE id=%d", sbTable, b.id())})
	}
	for i, shape := range []string{"SELECT c FROM %s WHERE id BETWEEN %d AND %d", "SELECT SUM(k) FROM %s WHERE id BETWEEN %d AND %d",
		"SELECT c FROM %s WHERE id BETWEEN %d AND %d ORDER BY c", "SELECT DISTINCT c FROM %s WHERE id BETWEEN %d AND %d ORDER BY c"} {
		from := b.start()
		out = append(out, read{sbRanges[i], fmt.Sprintf(shape, sbTable, from, from+sbRange-1)})
	}
	return out
}

func (b *sysbench) writes(_ context.Context, s *stage) error {
	id := b.id()
	return write(s.direct,
		fmt.Sprintf("UPDATE %s SET k=k+1 WHERE id=%d", sbTable, b.id()),
		fmt.Sprintf("UPDATE %s SET c='%s' WHERE id=%d", sbTable, b.digits(10), b.id()),
		fmt.Sprintf("DELETE FROM %s WHERE id=%d", sbTable, id),
		fmt.Sprintf("INSERT INTO %s (id, k, c, pad) VALUES %s", sbTable, b.row(id)))
}
