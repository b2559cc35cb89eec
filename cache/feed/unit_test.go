package feed

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"freshet/bench/seed"
	"freshet/cache"
	"freshet/cache/canon"
	"freshet/cache/feed/binlog"
	"freshet/cache/feed/row"
)

// bench is an applier without an upstream.
type bench struct {
	t       *testing.T
	store   *store
	tracker *Tracker
	applier *applier
	proven  uint64
	told    []nameKey
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, store: newStore()}
	b.tracker = NewTracker(b.store)
	b.tracker.attach(b)
	b.applier = &applier{marks: b.store, tracker: b.tracker, log: slog.New(slog.DiscardHandler),
		onSchema: func(s, n string) { b.told = append(b.told, nameKey{schema: s, name: n}) },
		onProven: func(ticket uint64, _ int64) { b.proven = ticket }}
	t.Cleanup(func() { b.store.check(t) })
	return b
}

func (b *bench) vet(*TableSpec) error            { return nil }
func (b *bench) wake()                           {}
func (b *bench) key(schema, name string) nameKey { return nameKey{schema: schema, name: name} }

func (b *bench) table(name string, columns int) *Table {
	b.t.Helper()
	spec := TableSpec{Schema: "s", Name: name}
	for i := range columns {
		spec.Columns = append(spec.Columns, Column{Name: fmt.Sprint("c", i), Kind: canon.Int})
	}
	tb, err := b.tracker.Follow(spec)
	if err != nil {
		b.t.Fatal(err)
	}
	b.tracker.learn(tb, tableFacts{derived: make([]bool, columns)})
	b.tracker.takeUp([]*Table{tb})
	return tb
}

var intLayout = layout{canonical: func(dst []byte, _ int, raw []byte) ([]byte, bool) {
	return canon.AppendText(canon.Int, dst, raw)
}}

// TestMarksOfRandomChanges takes random rows, leaves random columns out of the
// images, as logs do, and checks the marks: the key before and the key after
// must be marked, or the whole shape; and where all is known, nothing else.
func TestMarksOfRandomChanges(t *testing.T) {
	seed := seed.Of(t, "FRESHET_SEED", 1)
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 5))
	b := newBench(t)
	b.applier.start(100, nil)
	const columns = 4
	tb := b.table("t", columns)
	shapes := make([]*Shape, 0, 8)
	for _, spec := range []ShapeSpec{{Equal: []int{0}, Range: -1}, {Equal: []int{1, 2}, Range: -1},
		{Equal: []int{1}, Range: -1, Reads: []int{3}}, {Equal: []int{3, 0}, Range: -1, Reads: []int{0}},
		{Range: -1, Reads: []int{2}}, {Range: -1}, {Range: 3, Reads: []int{1}}, {Equal: []int{2}, Range: 0, Level: 1}} {
		shapes = append(shapes, b.tracker.ShapeOf(tb, spec))
	}
	l := intLayout
	l.at = []int{0, 1, 2, 3}
	tx := newTxn(b.applier)
	for raw := uint64(101); raw < 5000; raw++ {
		kind := row.Kind(1 + rng.IntN(3))
		var before, after [columns]row.Value
		value := func() row.Value {
			if rng.IntN(8) == 0 {
				return row.Value{State: row.Null}
			}
			return row.Value{State: row.Present, Raw: fmt.Append(nil, rng.IntN(3))}
		}
		for i := range columns {
			before[i] = value()
			after[i] = before[i]
			if rng.IntN(2) == 0 {
				after[i] = value()
			}
		}
		images := partly(rng, kind, before[:], after[:])
		tx.begin()
		f := tx.view.byName[nameKey{schema: "s", name: "t"}]
		if !tx.wantsRows(f, kind) {
			t.Fatal("rows of a followed table are not wanted")
		}
		tx.row(f, kind, &l, &images)
		if err := tx.end(commit{raw: raw}); err != nil {
			t.Fatal(err)
		}
		at := b.store.applied
		for n, sh := range shapes {
			whole := b.store.at(cache.DepOfShape(sh.ID)) == at
			for _, side := range []struct {
				is     bool
				values [columns]row.Value
			}{{kind != row.Insert, before}, {kind != row.Delete, after}} {
				dep, ok := hashOf(sh, side.values[:])
				if !side.is || !ok {
					continue
				}
				read := kind != row.Update || sh.spec.Reads == nil
				for _, i := range sh.spec.Reads {
					read = read || string(before[i].Raw) != string(after[i].Raw) || before[i].State != after[i].State
				}
				if read && !whole && b.store.at(dep) != at {
					t.Fatalf("step %d, kind %d, shape %d: key is not marked; old %v new %v images %v", raw, kind, n, before, after, images)
				}
			}
		}
		if b.store.at(cache.DepOfTable(tb.ID)) != at {
			t.Fatalf("step %d: the table is not marked", raw)
		}
	}
}

// partly leaves columns out of a change's images, as logs do.
func partly(rng *rand.Rand, kind row.Kind, before, after []row.Value) row.Images {
	images := row.Images{Old: append([]row.Value{}, before...), New: append([]row.Value{}, after...)}
	for i := range before {
		same := before[i].State == after[i].State && string(before[i].Raw) == string(after[i].Raw)
		switch rng.IntN(6) {
		case 0:
			images.Old[i] = row.Value{}
		case 1:
			if kind == row.Update && same {
				images.New[i] = row.Value{State: []row.State{row.Absent, row.Unchanged}[rng.IntN(2)]}
			}
		case 2:
			if kind == row.Update && !same {
				images.New[i] = row.Value{State: row.Altered}
			}
		case 3:
			if kind == row.Update && same {
				images.Old[i], images.New[i] = row.Value{}, row.Value{}
			}
		}
	}
	if kind == row.Insert {
		images.Old = make([]row.Value, len(before))
	}
	if kind == row.Delete {
		images.New = make([]row.Value, len(before))
	}
	return images
}

// hashOf is the key of a row of integers, as ShapeSpec's contract has it.
func hashOf(sh *Shape, values []row.Value) (cache.Dep, bool) {
	var h cache.KeyHasher
	h.Begin(sh.ID)
	for _, i := range sh.spec.Equal {
		if values[i].State != row.Present {
			return 0, false
		}
		canonical, ok := canon.AppendText(canon.Int, nil, values[i].Raw)
		if !ok {
			return 0, false
		}
		h.Value(canonical)
	}
	if i := sh.spec.Range; i >= 0 {
		n, err := strconv.ParseInt(string(values[i].Raw), 10, 64)
		if values[i].State != row.Present || err != nil {
			return 0, false
		}
		h.Value(binary.BigEndian.AppendUint64(nil, (uint64(n)+1<<63)>>sh.spec.Level))
	}
	return h.Dep(), true
}

// view is a sighting made by hand.
type byHand struct {
	seen func(*commit) bool
	upTo uint64
	ok   bool
}

func (s byHand) sees(c *commit) bool    { return s.seen(c) }
func (s byHand) covered(l *ledger) bool { return l.raw >= s.upTo }
func (s byHand) opens() bool            { return s.ok }

// TestLedger plays a short history.
func TestLedger(t *testing.T) {
	b := newBench(t)
	b.applier.start(10, nil)
	run, _ := b.applier.current()
	tx := newTxn(b.applier)
	end := func(raw uint64, xid uint32) cache.Position {
		tx.begin()
		if err := tx.end(commit{raw: raw, xid: xid}); err != nil {
			t.Fatal(err)
		}
		return b.store.applied
	}
	sight := func(ticket uint64, upTo uint64, open bool, xids ...uint32) {
		b.applier.sighted(run, probe{ticket: ticket, sighting: byHand{func(c *commit) bool {
			return strings.Contains(fmt.Sprint(xids), fmt.Sprint(c.xid))
		}, upTo, open}})
	}
	want := func(what string, visible cache.Position, proven uint64) {
		t.Helper()
		if b.store.visible != visible || b.proven != proven {
			t.Errorf("%s: visible %d proven %d, want %d and %d", what, b.store.visible, b.proven, visible, proven)
		}
	}
	first := end(20, 1)
	sight(1, 15, false, 1)
	want("a probe before all of before has ended", 0, 1)
	sight(2, 20, true, 1)
	want("the first that opens", first, 2)
	end(30, 2)
	third := end(40, 3)
	want("two more, unseen", first, 2)
	sight(3, 45, true, 1, 3)
	want("only the later one is seen, and the stream is behind", first, 2)
	b.applier.advance(50)
	want("the stream catches up", first, 3)
	sight(4, 50, true, 1, 2, 3)
	want("both are seen", b.store.applied, 4)
	if b.store.visible <= third {
		t.Error("visible does not follow what was sent without transactions")
	}
	fourth := end(60, 4)
	want("a new one", fourth-10, 4)
	sight(5, 60, true, 1, 2, 3, 4, 5)
	fifth := end(70, 5)
	want("one that the last probe saw already", fifth, 5)
	b.applier.cut()
	b.applier.sighted(run, probe{ticket: 9, sighting: byHand{func(*commit) bool { return true }, 0, true}})
	want("a probe of a stream that was cut", fifth, 5)
	b.applier.lost()
	want("the place is lost", 0, 5)
	b.applier.start(5, nil)
	if b.store.applied <= fifth {
		t.Errorf("positions fell to %d", b.store.applied)
	}
	if end(6, 6) <= fifth {
		t.Error("positions fell")
	}
}

// TestDoubt has the place found lost while the stream still runs: no probe
// counts until it runs anew, not one that waited for the stream either.
func TestDoubt(t *testing.T) {
	b := newBench(t)
	b.applier.start(10, nil)
	run, _ := b.applier.current()
	all := func(*commit) bool { return true }
	b.applier.sighted(run, probe{ticket: 1, sighting: byHand{all, 10, true}})
	b.applier.sighted(run, probe{ticket: 2, sighting: byHand{all, 20, true}})
	b.applier.doubt()
	b.applier.sighted(run, probe{ticket: 3, sighting: byHand{all, 5, true}})
	b.applier.advance(30)
	if b.proven != 1 {
		t.Errorf("ticket %d is proven by a stream whose place is lost", b.proven)
	}
	for ticket, begin := range map[uint64]func(){4: b.applier.resume, 5: func() { b.applier.start(40, nil) }} {
		b.applier.doubt()
		begin()
		run, _ = b.applier.current()
		b.applier.sighted(run, probe{ticket: ticket, sighting: byHand{all, 5, true}})
		if b.proven != ticket {
			t.Errorf("ticket %d is proven, want %d", b.proven, ticket)
		}
	}
}

// TestProbesWait keeps the oldest and the newest of too many.
func TestProbesWait(t *testing.T) {
	var l ledger
	for i := range uint64(1000) {
		l.sighted(probe{ticket: i + 1, sighting: byHand{func(*commit) bool { return true }, i + 1, true}})
	}
	if len(l.pending) > maxPending || l.pending[0].ticket != 1 || l.pending[len(l.pending)-1].ticket != 1000 {
		t.Errorf("%d pending, from %d to %d", len(l.pending), l.pending[0].ticket, l.pending[len(l.pending)-1].ticket)
	}
	l.raw = 1000
	if p, ok := l.proven(); !ok || p.ticket != 1000 || len(l.pending) != 0 {
		t.Error("not all are proven")
	}
}

// TestRegistrationWaitsForTheTransaction registers in the middle of one.
func TestRegistrationWaitsForTheTransaction(t *testing.T) {
	b := newBench(t)
	b.applier.start(10, nil)
	tb := b.table("t", 2)
	if _, up := tb.Since(); !up {
		t.Fatal("not taken up between transactions")
	}
	tx := newTxn(b.applier)
	tx.begin()
	sh := b.tracker.ShapeOf(tb, ShapeSpec{Equal: []int{0}, Range: -1})
	if again := b.tracker.ShapeOf(tb, ShapeSpec{Equal: []int{0}, Range: -1}); again != sh {
		t.Error("the same shape twice")
	}
	if _, up := sh.Since(); up {
		t.Error("taken up in the middle of a transaction")
	}
	if err := tx.end(commit{raw: 20}); err != nil {
		t.Fatal(err)
	}
	if since, up := sh.Since(); !up || since != b.store.applied {
		t.Errorf("since %d, %v", since, up)
	}
	for _, spec := range []ShapeSpec{{Equal: []int{5}, Range: -1}, {Range: 2}, {Range: 0, Level: 64}, {Range: -1, Reads: []int{-1}}} {
		if _, up := b.tracker.ShapeOf(tb, spec).Since(); up {
			t.Errorf("%+v does not fit, and was taken up", spec)
		}
	}
	if b.tracker.ShapeOf(tb, ShapeSpec{Range: 1, Level: 2}) == b.tracker.ShapeOf(tb, ShapeSpec{Range: 1, Level: 4}) {
		t.Error("two levels are one shape")
	}
	if b.tracker.ShapeOf(tb, ShapeSpec{Range: 1, Reads: []int{0}}) != b.tracker.ShapeOf(tb, ShapeSpec{Range: 1, Reads: []int{1, 0}}) {
		t.Error("a compared column that is named as read makes another shape")
	}
}

// TestOldDefinitionsAreMarked changes a table whose definition is gone: a
// session may be about to use what it knew.
func TestOldDefinitionsAreMarked(t *testing.T) {
	b := newBench(t)
	b.applier.start(10, nil)
	tb := b.table("t", 2)
	sh := b.tracker.ShapeOf(tb, ShapeSpec{Equal: []int{0}, Range: -1})
	tx := newTxn(b.applier)
	step := func(raw uint64, do func()) cache.Position {
		tx.begin()
		do()
		if err := tx.end(commit{raw: raw}); err != nil {
			t.Fatal(err)
		}
		return b.store.applied
	}
	key := nameKey{schema: "s", name: "t"}
	at := step(20, func() { tx.redefine(key) })
	marked := func(at cache.Position) {
		t.Helper()
		if b.store.at(cache.DepOfTable(tb.ID)) != at || b.store.at(cache.DepOfShape(sh.ID)) != at {
			t.Errorf("marked at %d and %d, want %d", b.store.at(cache.DepOfTable(tb.ID)), b.store.at(cache.DepOfShape(sh.ID)), at)
		}
	}
	marked(at)
	if !tb.Gone() || len(b.told) == 0 || b.told[len(b.told)-1] != key {
		t.Error("not gone, or not told")
	}
	next := b.table("t", 3)
	if next.ID == tb.ID {
		t.Error("the new definition has the old one's ID")
	}
	at = step(30, func() { tx.wantsRows(tx.view.byName[key], row.Insert) })
	marked(at)
	if b.store.at(cache.DepOfTable(next.ID)) != at {
		t.Error("the new definition is not marked")
	}
	b.applier.expire(b.tracker.expired(time.Now().Add(2 * retireFor)))
	marked(at + 1)
	step(40, func() { tx.wantsRows(tx.view.byName[key], row.Insert) })
	marked(at + 1)
}

func TestDDL(t *testing.T) {
	d := newDDLReader()
	for text, want := range map[string]string{
		"TRUNCATE TABLE t":                                  "db.t",
		"truncate other.t":                                  "other.t",
		"ALTER TABLE `t` ADD c INT":                         "db.t",
		"ALTER TABLE t RENAME TO u, ADD c INT":              "db.t db.u",
		"ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u":   "db.t db.u",
		"RENAME TABLE a TO b, x.c TO y.d":                   "db.a db.b x.c y.d",
		"CREATE TABLE t (id INT)":                           "db.t",
		"CREATE TABLE t LIKE u":                             "db.t",
		"DROP TABLE `a`,`o`.`b` /* generated by server */":  "db.a o.b",
		"DROP TEMPORARY TABLE IF EXISTS a":                  "nothing",
		"CREATE TEMPORARY TABLE a (id INT)":                 "nothing",
		"CREATE INDEX i ON t (c)":                           "db.t",
		"DROP INDEX i ON t":                                 "db.t",
		"/* from an application */ ALTER TABLE t ADD c INT": "db.t",
		"ANALYZE TABLE t":                                   "nothing",
		"FLUSH TABLES":                                      "nothing",
		"FLUSH PRIVILEGES":                                  "everything",
		"GRANT SELECT ON t TO u":                            "everything",
		"CREATE VIEW v AS SELECT 1":                         "everything",
		"DROP VIEW v":                                       "everything",
		"DROP DATABASE d":                                   "everything",
		"UPDATE t SET a = 1":                                "everything",
		"ALTER TABLE t /*!50100 RENAME TO u */":             "everything",
		"ALTER TABLE t /*M! RENAME TO u */":                 "everything",
		"ALTER TABLE t COMMENT 'é'":                         "everything",
		"ALTER TABLE t ADD c INT; DROP TABLE u":             "everything",
		"no statement at all":                               "everything",
		"":                                                  "everything",
		strings.Repeat("(", 1<<17):                          "everything",
	} {
		v := d.read(&binlog.Query{Schema: "db", SQLModeKnown: true}, text)
		got := "everything"
		if v.nothing {
			got = "nothing"
		} else if v.tables != nil {
			var names []string
			for _, ref := range v.tables {
				names = append(names, ref.schema+"."+ref.name)
			}
			got = strings.Join(names, " ")
		}
		if got != want {
			t.Errorf("%.60s: %s, want %s", text, got, want)
		}
	}
	quoted := `ALTER TABLE "t" ADD c INT`
	if v := d.read(&binlog.Query{Schema: "db", SQLModeKnown: true, SQLMode: modeANSIQuotes}, quoted); len(v.tables) != 1 {
		t.Error("ANSI_QUOTES is not heeded")
	}
	if v := d.read(&binlog.Query{Schema: "db"}, "TRUNCATE t"); v.tables != nil || v.nothing {
		t.Error("a statement of unknown sql_mode was trusted")
	}
}

func TestSnapshots(t *testing.T) {
	s, err := parseSnapshot("4294967290:4294967310:4294967291,4294967300")
	if err != nil {
		t.Fatal(err)
	}
	for xid, want := range map[uint64]bool{4294967289: true, 4294967290: true, 4294967291: false, 4294967300: false,
		4294967301: true, 4294967309: true, 4294967310: false, 4294967400: false, 4294967296: true} {
		if s.sees(uint32(xid)) != want {
			t.Errorf("%d: %v", xid, !want)
		}
	}
	for _, bad := range []string{"", "1", "1:2", "1:x:", "a:2:", "1:2:x", "1:2:3:4"} {
		if _, err := parseSnapshot(bad); err == nil {
			t.Errorf("%q is a snapshot", bad)
		}
	}
}

func TestPlaces(t *testing.T) {
	if raw, err := rawPlace("mysql-bin.000123", 4567); err != nil || raw != 123<<40|4567 {
		t.Errorf("%d, %v", raw, err)
	}
	for _, bad := range []string{"", "binlog", "binlog.", "binlog.x", "binlog.99999999999999"} {
		if bad == "binlog." {
			continue // file number 0
		}
		if raw, err := rawPlace(bad, 4); err == nil {
			t.Errorf("%q is at %d", bad, raw)
		}
	}
	for id, want := range map[string]string{
		"XA COMMIT X'6162',X'',1":           "X'6162',X'',1",
		"XA COMMIT x'AB', X'0c' ,7":         "X'ab',X'0c',7",
		"XA COMMIT X'61',X'62',3 ONE PHASE": "X'61',X'62',3",
		"XA COMMIT 'plain'":                 "",
		"XA COMMIT":                         "",
	} {
		if got, _ := xaID(strings.Fields(id)); got != want {
			t.Errorf("%s: %q", id, got)
		}
	}
}
