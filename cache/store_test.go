package cache

import (
	"bytes"
	"strings"
	"testing"
)

const small = 8 << 20

func TestFillThenGet(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: small})
	r := s.NewReader()
	want(t, r, "k", "", Cold)
	s.SetVisible(7)
	f, c := s.Claim([]byte("k"), []Dep{1, 2}, 7, [2]uint64{3, 4}, true, nil)
	if c != Leader || f.FilledAt() != 7 {
		t.Fatalf("claim %d at %d", c, f.FilledAt())
	}
	for _, p := range []string{"a", "", "bc"} {
		if !f.Append([]byte(p)) {
			t.Fatal("append refused")
		}
	}
	f.SetMeta([2]uint64{5, 6})
	want(t, r, "k", "", Cold)
	if !f.Finish() {
		t.Fatal("not stored")
	}
	r.Enter()
	hit, l := r.Get([]byte("k"))
	if l != Found || string(hit.Value) != "abc" || hit.Meta != [2]uint64{5, 6} || hit.FilledAt != 7 {
		t.Fatalf("%d %+v", l, hit)
	}
	if cap(hit.Value) != len(hit.Value) {
		t.Fatal("appending to the value would write into the store")
	}
	r.Leave()
	want(t, r, "k2", "", Cold)
	want(t, r, "", "", Cold)
	if f.Finish() {
		t.Fatal("a second Finish stored")
	}
	f.Abandon()
	if f.Append(nil) {
		t.Fatal("append to a fill that is over")
	}
	check(t, s)
}

func TestMarkMakesStale(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: small})
	r := s.NewReader()
	s.SetVisible(10)
	mustFill(t, s, "k", "v", 1, 2)
	mustFill(t, s, "other", "w", 1)
	s.Mark(2, 10) // what the answer has seen already
	s.Mark(3, 11)
	want(t, r, "k", "v", Found)
	s.Mark(2, 11)
	want(t, r, "k", "", Stale)
	want(t, r, "other", "w", Found)
	s.SetVisible(11)
	mustFill(t, s, "k", "v2", 1, 2)
	want(t, r, "k", "v2", Found)
	if st := s.Stats(); st.Entries != 2 || st.Cells != 2 || st.MarksHit != 2 || st.MarksMissed != 1 {
		t.Fatalf("%+v", st)
	}
	check(t, s)
}

// A change that is marked but not yet visible upstream makes a fill useless,
// whether its cell is there already or not.
func TestClaimBehindIsRefused(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: small})
	s.SetVisible(10)
	s.Mark(5, 11)
	claim := func(since Position, deps ...Dep) Claim {
		f, c := s.Claim([]byte("k"), deps, since, [2]uint64{}, true, &recorder{})
		if f != nil {
			f.Abandon()
		}
		return c
	}
	if claim(0, 5) != Refused {
		t.Fatal("leads although a dependency changed after what is visible")
	}
	if claim(11, 6) != Refused {
		t.Fatal("leads although since is after what is visible")
	}
	s.SetVisible(11)
	if claim(11, 5) != Leader || claim(11, 6) != Leader {
		t.Fatal("refused though visible has caught up")
	}
	s.SetVisible(0)
	if claim(0, 5) != Refused {
		t.Fatal("leads although nothing is known to be visible")
	}
	if claim(1) != Refused || claim(0) != Leader {
		t.Fatal("without dependencies only since needs visible")
	}
	check(t, s)
}

func TestChangeDuringFill(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: small})
	r := s.NewReader()
	f := lead(t, s, "k", 1)
	f.Append([]byte("old"))
	s.Mark(1, 2)
	if f.Finish() {
		t.Fatal("stored an answer that changed while it was fetched")
	}
	want(t, r, "k", "", Cold)
	g := lead(t, s, "j", spread(2))
	g.Append([]byte("old"))
	s.Flush()
	if g.Finish() {
		t.Fatal("stored an answer from before a flush")
	}
	want(t, r, "j", "", Cold)
	check(t, s)
}

func TestFlush(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: small})
	r := s.NewReader()
	for i := range 1000 {
		mustFill(t, s, keyOf(i), "v", Dep(i))
	}
	s.Flush()
	if st := s.Stats(); st.Entries != 0 || st.Flushes != 1 {
		t.Fatalf("%+v", st)
	}
	for i := range 1000 {
		want(t, r, keyOf(i), "", Stale)
	}
	before := s.Stats().Bytes
	value := strings.Repeat("x", 1000)
	for i := range 1000 {
		mustFill(t, s, keyOf(i), value, Dep(i))
	}
	for i := range 1000 {
		want(t, r, keyOf(i), value, Found)
	}
	if st := s.Stats(); st.Entries != 1000 {
		t.Fatalf("%+v, %d bytes before", st, before)
	}
	check(t, s)
}

func TestJoin(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: small})
	key := []byte("k")
	join := func(can bool, since Position) (*recorder, *Fill, Claim) {
		w := &recorder{}
		f, c := s.Claim(key, []Dep{1}, since, [2]uint64{}, can, w)
		return w, f, c
	}
	_, first, _ := join(true, 0)
	a, _, c := join(true, 0)
	if c != Joined {
		t.Fatalf("%d, want Joined", c)
	}
	_, second, c := join(false, 0) // may not join: leads beside the first
	if c != Leader {
		t.Fatalf("%d, want Leader", c)
	}
	b, _, c := join(true, 0)
	if c != Joined {
		t.Fatalf("%d, want Joined", c)
	}
	first.Append([]byte("1"))
	if first.Finish() {
		t.Fatal("stored although another fill took the lead")
	}
	a.want(t, "1", true)
	if b.calls != 0 {
		t.Fatal("the second fill's waiter was told of the first")
	}
	s.SetVisible(2)
	if _, f, c := join(true, 2); c != Leader {
		t.Fatal("joined a fill from before since")
	} else {
		f.Abandon()
	}
	s.Mark(1, 2)
	d, third, c := join(true, 0)
	if c != Leader {
		t.Fatal("joined a fill whose dependency changed")
	}
	second.Append([]byte("2"))
	if second.Finish() {
		t.Fatal("stored a stale answer")
	}
	b.want(t, "2", true) // it joined before the change
	e, _, _ := join(true, 0)
	third.Abandon()
	e.want(t, "", false)
	if d.calls != 0 {
		t.Fatal("a leader was told of its own fill")
	}
	check(t, s)
}

func TestFlushEndsJoining(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: small})
	f := lead(t, s, "k")
	s.Flush()
	g, c := s.Claim([]byte("k"), nil, 0, [2]uint64{}, true, &recorder{})
	if c != Leader {
		t.Fatal("joined a fill from before the flush")
	}
	g.Append([]byte("new"))
	if f.Finish() || !g.Finish() {
		t.Fatal("wrong fill stored")
	}
	check(t, s)
}

// Of two fills side by side only the one that began later is kept.
func TestNewerAnswerStays(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: small})
	r := s.NewReader()
	old := lead(t, s, "k", 1)
	s.SetVisible(5)
	mustFill(t, s, "k", "new", 1)
	old.Append([]byte("old"))
	if old.Finish() {
		t.Fatal("an older answer replaced a newer one")
	}
	want(t, r, "k", "new", Found)

	s.Mark(1, 5)
	old = lead(t, s, "k", 1)
	lead(t, s, "k", 1).Abandon()
	old.Append([]byte("old"))
	if old.Finish() {
		t.Fatal("an answer was kept although a younger fill may have shown a newer one")
	}
	check(t, s)
}

func TestTooLarge(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: small, MaxEntryBytes: 10000})
	w := &recorder{}
	f := lead(t, s, "k", 1)
	s.Claim([]byte("k"), []Dep{1}, 0, [2]uint64{}, true, w)
	if !f.Append(make([]byte, 10000)) {
		t.Fatal("refused what fits exactly")
	}
	if f.Append([]byte{1}) {
		t.Fatal("took more than MaxEntryBytes")
	}
	w.want(t, "", false)
	if f.Finish() || w.calls != 1 {
		t.Fatal("a dead fill was finished")
	}
	if st := s.Stats(); st.Fills != 0 || st.Cells != 0 || st.FillBytes != 0 {
		t.Fatalf("%+v", st)
	}
	check(t, s)
}

func TestLargestParts(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: 64 << 20})
	r := s.NewReader()
	key := bytes.Repeat([]byte("k"), MaxKeyBytes)
	deps := make([]Dep, MaxDeps)
	for i := range deps {
		deps[i] = Dep(i) * 0x9E3779B97F4A7C15
	}
	if got := s.MaxEntryBytes(); got != 1<<20 {
		t.Fatalf("MaxEntryBytes %d", got)
	}
	value := strings.Repeat("v", 1<<20)
	mustFill(t, s, string(key), value, deps...)
	want(t, r, string(key), value, Found)
	mustFill(t, s, "", "", deps[0])
	want(t, r, "", "", Found)
	s.Mark(deps[MaxDeps-1], 2)
	want(t, r, string(key), "", Stale)
	if _, c := s.Claim(append(key, 'k'), nil, 0, [2]uint64{}, false, nil); c != Refused {
		t.Fatal("key too long, not refused")
	}
	if _, c := s.Claim(nil, append(deps, 0), 0, [2]uint64{}, false, nil); c != Refused {
		t.Fatal("too many dependencies, not refused")
	}
	check(t, s)
}

// Two keys with one hash are two keys.
func TestHashCollision(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: small})
	const hash = uint64(0xABCDEF0123456789)
	sh := s.shardOf(hash)
	look := func(key string) string {
		if e, _ := sh.table.Load().get(s.arena, tagOf(hash), []byte(key)); e != nil {
			return string(e.value())
		}
		return "-"
	}
	put := func(key string) bool {
		f, c := sh.claim(hash, []byte(key), nil, 0, [2]uint64{}, true, &recorder{})
		if c != Leader {
			t.Fatalf("claim of %q: %d", key, c)
		}
		f.Append([]byte("of " + key))
		return f.Finish()
	}
	// Running at once: the second does not join the first, which is not kept.
	f, _ := sh.claim(hash, []byte("a"), nil, 0, [2]uint64{}, true, &recorder{})
	put("b")
	f.Append([]byte("of a"))
	if f.Finish() || look("a") != "-" {
		t.Fatal("two fills with one hash are kept")
	}
	put("a")
	if look("a") != "of a" || look("b") != "of b" || look("c") != "-" {
		t.Fatal(look("a"), look("b"), look("c"))
	}
	for _, k := range []string{"c", "d", "e", "f", "g", "h", "i"} {
		put(k)
	}
	if put("j") || look("j") != "-" {
		t.Fatal("no bound on keys with one hash")
	}
	for _, k := range []string{"a", "b", "c"} {
		if look(k) != "of "+k {
			t.Fatalf("%q: %q", k, look(k))
		}
	}
}

func TestFillsAreBounded(t *testing.T) {
	s := newTestStore(t, Options{LimitBytes: small})
	var fills []*Fill
	for i := range 1 << 20 {
		f, c := s.Claim([]byte(keyOf(i)), []Dep{Dep(i)}, 0, [2]uint64{}, false, nil)
		if c == Refused {
			break
		}
		fills = append(fills, f)
		if !f.Append(make([]byte, 3000)) {
			break
		}
	}
	st := s.Stats()
	if n := len(fills); n < 50 || n > 500 || st.FillBytes > small/16 {
		t.Fatalf("%d fills run with %d bytes", n, st.FillBytes)
	}
	check(t, s, fills...)
	for _, f := range fills {
		f.Abandon()
	}
	if st := s.Stats(); st.FillBytes != 0 || st.Fills != 0 || st.Cells != 0 {
		t.Fatalf("%+v", st)
	}
	mustFill(t, s, "k", "v", 1)
	check(t, s)
}

func TestLimits(t *testing.T) {
	if _, err := New(Options{LimitBytes: 1 << 20}); err == nil {
		t.Fatal("no error for a limit that holds nothing")
	}
	for _, limit := range []int64{2 << 20, 3<<20 + 12345, 8 << 20, 100 << 20, 1 << 30} {
		s, err := New(Options{LimitBytes: limit})
		if err != nil {
			t.Fatalf("limit %d: %v", limit, err)
		}
		s.SetVisible(1)
		mustFill(t, s, "k", "v", 1)
		want(t, s.NewReader(), "k", "v", Found)
		check(t, s)
		s.Close()
		if checkedMemory {
			break // a gigabyte of real memory
		}
	}
}
