package feed

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"freshet/cache"
	"freshet/cache/canon"
	"freshet/cache/feed/binlog"
	"freshet/cache/feed/pgoutput"
)

// applyTexts is how many rows BenchmarkApply changes in turn, applyKeys of how
// many of them each shape has an answer: of one in ten.
const (
	applyTexts = 20_000
	applyKeys  = applyTexts / 10
)

// applyShapes are shapes as an application of one table, (id, k, c, pad), has
// them; the first one is the only one of the short run.
func applyShapes(n int) (specs []ShapeSpec) {
	specs = []ShapeSpec{
		{Equal: []int{0}, Range: -1}, {Equal: []int{0}, Range: -1, Reads: []int{1}}, {Equal: []int{0}, Range: -1, Reads: []int{2}},
		{Equal: []int{0}, Range: -1, Reads: []int{2, 3}}, {Equal: []int{1}, Range: -1}, {Equal: []int{1}, Range: -1, Reads: []int{0}},
		{Equal: []int{1}, Range: -1, Reads: []int{2}}, {Equal: []int{0, 1}, Range: -1}, {Equal: []int{0, 1}, Range: -1, Reads: []int{3}},
		{Range: -1, Reads: []int{1}}, {Range: -1, Reads: []int{3}}, {Equal: []int{1}, Range: 0, Level: 4},
	}
	for level := uint8(0); len(specs) < n; level += 2 {
		specs = append(specs, ShapeSpec{Range: 0, Level: level, Reads: []int{2}}, ShapeSpec{Range: 1, Level: level, Reads: []int{2}})
	}
	return specs[:n]
}

// applyBench is an applier with a real store, and a table with shapes whose
// keys are in use.
type applyBench struct {
	bench
	store *cache.Store
	tb    *Table
}

func newApplyBench(b testing.TB, shapes int) *applyBench {
	store, err := cache.New(cache.Options{LimitBytes: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(store.Close)
	a := &applyBench{store: store}
	a.tracker = NewTracker(store)
	a.tracker.attach(a)
	a.applier = &applier{marks: store, tracker: a.tracker, log: slog.New(slog.DiscardHandler),
		onSchema: func(string, string) {}, onProven: func(uint64, int64) {}}
	a.applier.start(1, nil)
	store.SetVisible(store.Applied())
	// Everything is visible at once, so that nothing waits.
	a.applier.ledger.open = true
	a.applier.ledger.newest = &probe{sighting: byHand{func(*commit) bool { return true }, 0, true}}
	spec := TableSpec{Schema: "s", Name: "t", OID: 1, Columns: []Column{{Name: "id", Kind: canon.Int}, {Name: "k", Kind: canon.Int},
		{Name: "c", Kind: canon.FoldASCII, Charset: "latin1"}, {Name: "pad", Kind: canon.FoldASCII, Charset: "latin1"}}}
	if a.tb, err = a.tracker.Follow(spec); err != nil {
		b.Fatal(err)
	}
	a.tracker.takeUp([]*Table{a.tb})
	for _, spec := range applyShapes(shapes) {
		a.use(b, a.tracker.ShapeOf(a.tb, spec))
	}
	return a
}

// use keeps answers that depend on the shape's keys.
func (a *applyBench) use(b testing.TB, sh *Shape) {
	for i := range applyKeys {
		i *= applyTexts / applyKeys
		var h cache.KeyHasher
		h.Begin(sh.ID)
		for range sh.spec.Equal {
			h.Value(canon.AppendInt(nil, int64(i)))
		}
		if sh.spec.Range >= 0 {
			n, _ := canon.Ordinal(canon.Int, canon.AppendInt(nil, int64(i)))
			h.Value(binary.BigEndian.AppendUint64(nil, n>>sh.spec.Level))
		}
		f, claimed := a.store.Claim(fmt.Appendf(nil, "%d %d", sh.ID, i), []cache.Dep{cache.DepOfShape(sh.ID), h.Dep()}, 0, [2]uint64{}, false, nil)
		if claimed != cache.Leader || !f.Append([]byte("answer")) || !f.Finish() {
			b.Fatal("an answer is not kept")
		}
	}
}

// applyRow is the n-th row before or after its change: k changes, or c does.
func applyRow(n, side int) (id, k int, c, pad string) {
	id, k, c, pad = n, n/2, "c-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789", "pad-0123456789-0123456789-0123456789"
	if side == after {
		if k++; n%2 == 0 {
			k, c = n/2, "c-9876543210-0123456789-0123456789-0123456789-0123456789-0123456789"
		}
	}
	return id, k, c, pad
}

// mysqlApply applies transactions of one row as the binary log has them.
func mysqlApply(a *applyBench) func(rows int) error {
	source := &mysqlSource{feed: &Feed{applier: a.applier}}
	r := &mysqlReader{source: source, txn: newTxn(a.applier), started: true, checksum: true, file: "binlog.000001",
		maps: map[uint64]*mapped{}, parsed: map[uint64]*mapped{}}
	event := func(kind binlog.Type, body ...byte) []byte {
		e := binary.LittleEndian.AppendUint32([]byte{1, 2, 3, 4, byte(kind), 9, 0, 0, 0}, uint32(binlog.HeaderSize+len(body)+4))
		e = append(append(e, 0, 0, 0, 0, 0, 0), body...)
		return binary.LittleEndian.AppendUint32(e, crc32.ChecksumIEEE(e))
	}
	gtid := event(binlog.GTIDEvent, make([]byte, 42)...)
	begin := event(binlog.QueryEvent, append(make([]byte, 13), "\x00BEGIN"...)...)
	table := event(binlog.TableMapEvent, append([]byte("\x07\x00\x00\x00\x00\x00\x01\x00\x01s\x00\x01t\x00\x04"),
		3, 3, 254, 254, 4, 254, 120, 254, 60, 0)...)
	xid := event(binlog.XIDEvent, make([]byte, 8)...)
	var rows [][]byte
	for n := range applyTexts {
		e := []byte{7, 0, 0, 0, 0, 0, 1, 0, 2, 0, 4, 0xff, 0xff}
		for side := range 2 {
			id, k, c, pad := applyRow(n, side)
			e = binary.LittleEndian.AppendUint32(append(e, 0), uint32(id))
			e = binary.LittleEndian.AppendUint32(e, uint32(k))
			e = append(append(e, byte(len(c))), c...)
			e = append(append(e, byte(len(pad))), pad...)
		}
		rows = append(rows, event(binlog.UpdateRowsV2, e...))
	}
	return func(n int) error {
		for i := range n {
			for _, e := range [][]byte{gtid, begin, table, rows[i%len(rows)], xid} {
				if err := r.event(e, false); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// postgresApply applies transactions of one row as pgoutput sends them,
// replica identity FULL.
func postgresApply(a *applyBench) func(rows int) error {
	r := &pgReader{line: &pgLine{}, txn: newTxn(a.applier), relations: map[uint32]*pgRelation{}}
	relation := &pgoutput.Relation{OID: 1, Identity: 'f'}
	for _, c := range a.tb.Spec.Columns {
		relation.Columns = append(relation.Columns, pgoutput.Column{Key: true, Name: c.Name})
	}
	r.relations[1] = &pgRelation{Relation: relation}
	message := func(body ...byte) []byte { return append(make([]byte, 24), body...) }
	begin, end := message(append([]byte{'B'}, make([]byte, 20)...)...), message(append([]byte{'C'}, make([]byte, 25)...)...)
	var rows [][]byte
	for n := range applyTexts {
		m := []byte{'U', 0, 0, 0, 1}
		for side := range 2 {
			id, k, c, pad := applyRow(n, side)
			m = append(m, "ON"[side], 0, 4)
			for _, text := range []string{fmt.Sprint(id), fmt.Sprint(k), c, pad} {
				m = binary.BigEndian.AppendUint32(append(m, 't'), uint32(len(text)))
				m = append(m, text...)
			}
		}
		rows = append(rows, message(m...))
	}
	return func(n int) error {
		for i := range n {
			binary.BigEndian.PutUint64(end[24+10:], uint64(i)+10)
			for _, m := range [][]byte{begin, rows[i%len(rows)], end} {
				data, err := pgoutput.ParseData(m)
				if err == nil {
					err = r.logical(data[0], data[1:])
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// cpuTime is the processor's time that the process has taken.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var appliers = map[string]func(*applyBench) func(rows int) error{"mysql": mysqlApply, "postgres": postgresApply}

// BenchmarkApply decodes and applies transactions that update one row, from the
// bytes of the stream to the store's cells.
func BenchmarkApply(b *testing.B) {
	for dialect, apply := range appliers {
		for _, shapes := range []int{1, 20} {
			b.Run(fmt.Sprintf("%s/shapes=%d", dialect, shapes), func(b *testing.B) {
				run := apply(newApplyBench(b, shapes))
				b.ReportAllocs()
				b.ResetTimer()
				began := cpuTime(b)
				if err := run(b.N); err != nil {
					b.Fatal(err)
				}
				// Of the processor's time, for others may share the machine.
				b.ReportMetric(float64(b.N)/(cpuTime(b)-began).Seconds(), "rows/cpu-s")
			})
		}
	}
}

// TestAppliedRowsFindAnswers: what BenchmarkApply times is applied.
func TestAppliedRowsFindAnswers(t *testing.T) {
	for dialect, apply := range appliers {
		a := newApplyBench(t, 1)
		if err := apply(a)(1000); err != nil {
			t.Fatal(err)
		}
		if got := a.store.Stats().MarksHit; got < 100 {
			t.Errorf("%s: %d marks found an answer", dialect, got)
		}
	}
}
