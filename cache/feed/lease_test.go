package feed

import (
	"testing"
	"time"

	"freshet/cache"
)

// place is an end of the log that raw positions reach.
type place uint64

func (p place) covered(l *ledger) bool { return l.raw >= uint64(p) }

// waits is a promise of a server that gives up after ten seconds.
func waits(end place, switches uint64) promise {
	return promise{patience: 10 * time.Second, switches: switches, end: end}
}

func leaseRig() (*lessor, *applier) {
	store := newStore()
	a := &applier{marks: store, tracker: NewTracker(store), onSchema: func(string, string) {}, onProven: func(uint64, int64) {}}
	a.run, a.live = 1, true
	a.ledger.open = true
	return &lessor{run: 1}, a
}

// ask puts one answer to the lessor, as leaseOnce does.
func (l *lessor) ask(a *applier, asked int64, p promise) (until int64, same bool) {
	ripe, ok := l.ripest(a)
	until, _, same = l.answer(asked, p, ripe, ok)
	return until, same
}

// reach lets the stream come to a place, and readers to another.
func (a *applier) reachFor(raw uint64, visible cache.Position) {
	a.ledger.raw, a.ledger.applied, a.ledger.visible = raw, cache.Position(raw), visible
}

func wantsUntil(t *testing.T, what string, got int64, same bool, want int64) {
	t.Helper()
	if same {
		got = -1
	}
	if got != want {
		t.Errorf("%s: lease until %d, want %d", what, got, want)
	}
}

// TestLeaseNeedsOldWaitersGone: a commit that waits when the question is asked
// may end its server's patience at any time after.
func TestLeaseNeedsOldWaitersGone(t *testing.T) {
	l, a := leaseRig()
	a.reachFor(100, 90)
	until, same := l.ask(a, 10, waits(100, 0))
	wantsUntil(t, "the first answer", until, same, 0)
	until, same = l.ask(a, 20, waits(110, 0))
	wantsUntil(t, "the second", until, same, -1)
	a.reachFor(105, 105)
	until, same = l.ask(a, 30, waits(110, 0))
	wantsUntil(t, "the end not applied", until, same, -1)
	a.reachFor(120, 105)
	until, same = l.ask(a, 40, waits(120, 0))
	wantsUntil(t, "applied, not readable", until, same, -1)
	a.reachFor(120, 119)
	until, same = l.ask(a, 50, waits(120, 0))
	wantsUntil(t, "not all readable", until, same, -1)
	a.reachFor(120, 120)
	until, same = l.ask(a, 60, waits(120, 0))
	wantsUntil(t, "readable", until, same, 50+int64(leaseMost))
}

// TestLeaseForgetsSwitches: the counter tells that waiting was off in between.
func TestLeaseForgetsSwitches(t *testing.T) {
	l, a := leaseRig()
	a.reachFor(100, 100)
	l.ask(a, 10, waits(100, 0))
	l.ask(a, 20, waits(100, 0))
	until, same := l.ask(a, 30, waits(100, 1))
	wantsUntil(t, "switched off and on", until, same, 0)
	until, same = l.ask(a, 40, waits(100, 1))
	wantsUntil(t, "after that", until, same, -1)
	until, same = l.ask(a, 50, waits(100, 1))
	wantsUntil(t, "steady again", until, same, 40+int64(leaseMost))
	until, same = l.ask(a, 60, promise{refusal: "no"})
	wantsUntil(t, "refused", until, same, 0)
	until, same = l.ask(a, 70, waits(100, 1))
	wantsUntil(t, "after a refusal", until, same, 0)
}

// TestLeaseIsShort: half the upstream's patience, if that is less.
func TestLeaseIsShort(t *testing.T) {
	l, a := leaseRig()
	a.reachFor(100, 100)
	short := waits(100, 0)
	short.patience = 600 * time.Millisecond
	l.ask(a, 10, waits(100, 0))
	l.ask(a, 20, waits(100, 0))
	until, same := l.ask(a, 30, short)
	wantsUntil(t, "patience that became short", until, same, 20+int64(300*time.Millisecond))
	until, same = l.ask(a, 40, waits(100, 0))
	wantsUntil(t, "patience that was short", until, same, 30+int64(300*time.Millisecond))
}

// TestLeaseOfEndless needs no readers: nothing is let go before we confirm it.
func TestLeaseOfEndless(t *testing.T) {
	l, a := leaseRig()
	a.reachFor(100, 0)
	a.ledger.open = false
	endless := promise{endless: true, end: place(100)}
	l.ask(a, 10, endless)
	l.ask(a, 20, endless)
	until, same := l.ask(a, 30, endless)
	wantsUntil(t, "endless", until, same, 20+int64(leaseMost))
}

// TestLeaseOfOtherRun: what was asked of one run of the stream says nothing of
// another, and an answer that comes after the lease was ended is too late.
func TestLeaseOfOtherRun(t *testing.T) {
	l, a := leaseRig()
	a.reachFor(100, 100)
	l.ask(a, 10, waits(100, 0))
	l.ask(a, 20, waits(100, 0))
	for _, spoil := range []func(){func() { a.run++ }, func() { a.live = false }, func() { a.doubted = true }} {
		a.run, a.live, a.doubted = 1, true, false
		spoil()
		if _, ok := l.ripest(a); ok {
			t.Error("a promise to a stream that ended is ripe")
		}
	}
	var lease lease
	epoch, _ := lease.state(1)
	lease.end("cut")
	lease.set(epoch, 100, "")
	if lease.until.Load() != 0 {
		t.Error("a lease that was ended came back")
	}
	epoch, why := lease.state(1)
	if why != "cut" {
		t.Errorf("why: %q", why)
	}
	lease.set(epoch, 100, "")
	if _, why := lease.state(99); why != "" {
		t.Errorf("held, and yet: %q", why)
	}
	if _, why := lease.state(100); why == "" {
		t.Error("run out, and nobody says so")
	}
}

func TestStandbyRule(t *testing.T) {
	for _, c := range []struct {
		setting string
		waits   bool   // for "freshet"
		with    string // the setting that does; "" not looked at
	}{
		{"", false, `FIRST 1 ("freshet")`},
		{"freshet", true, ""},
		{"Freshet", true, ""},
		{`"freshet"`, true, ""},
		{"a, freshet", false, `FIRST 2 ("freshet", "a")`},
		{"freshet, a", true, ""},
		{"1 (freshet, a)", true, ""},
		{"FIRST 2 (a, freshet, b)", true, ""},
		{"first 1 (a, freshet)", false, `FIRST 2 ("freshet", "a")`},
		{"FIRST 2(a,b,freshet)", false, `FIRST 3 ("freshet", "a", "b")`},
		{"ANY 1 (freshet, a)", false, `FIRST 2 ("freshet", "a")`},
		{"ANY 2 (freshet, a)", true, ""},
		{"any 1 (freshet)", true, ""},
		{"*", false, `FIRST 2 ("freshet", *)`},
		{"freshet, *", true, ""},
		{"FIRST 2 (*, freshet)", false, ""},
		{"ANY 2 (freshet, *)", false, ""},
		{`FIRST 1 ("fre""shet")`, false, `FIRST 2 ("freshet", "fre""shet")`},
		{`FIRST 1 ("first", freshet)`, false, ""},
	} {
		rule, err := parseStandbyRule(c.setting)
		if err != nil {
			t.Errorf("%q: %v", c.setting, err)
			continue
		}
		if why := rule.refuse("freshet"); (why == "") != c.waits {
			t.Errorf("%q: %q", c.setting, why)
		}
		if c.with == "" {
			continue
		}
		if got := rule.with("freshet"); got != c.with {
			t.Errorf("%q: %s, want %s", c.setting, got, c.with)
		}
		after, err := parseStandbyRule(c.with)
		if err != nil || after.refuse("freshet") != "" {
			t.Errorf("%q does not wait: %v, %q", c.with, err, after.refuse("freshet"))
		}
	}
	for _, bad := range []string{"a b", "a,", ",a", "FIRST (a)", "FIRST 0 (a)", "2 (a", "2 a)", `"a`, "ANY x (a)", "(a)", "FIRST 1 (a) b", "FIRST 1 ()", "FIRST 1 ((a))"} {
		if rule, err := parseStandbyRule(bad); err == nil {
			t.Errorf("%q was read as %+v", bad, rule)
		}
	}
}

func FuzzStandbyRule(f *testing.F) {
	f.Add(`FIRST 2 ("a""b", c, *)`)
	f.Add("ANY 1 (x)")
	f.Fuzz(func(t *testing.T, text string) {
		rule, err := parseStandbyRule(text)
		if err != nil {
			return
		}
		after, err := parseStandbyRule(rule.with("freshet"))
		if err != nil || after.refuse("freshet") != "" {
			t.Fatalf("%q becomes %q, which does not wait: %v, %q", text, rule.with("freshet"), err, after.refuse("freshet"))
		}
	})
}

func TestSemiHeader(t *testing.T) {
	strip := func(l *semiLine, data []byte, event string, wants bool) {
		t.Helper()
		got, w, err := l.strip(data)
		if err != nil || string(got) != event || w != wants {
			t.Errorf("%q: %q, %v, %v", data, got, w, err)
		}
	}
	strip(&semiLine{}, []byte{semiMagic, 1, 'x'}, "\xef\x01x", false) // a time that looks like one
	l := &semiLine{asked: true}
	strip(l, []byte{semiMagic, 0, 0, 0}, "\x00\x00", false)
	strip(l, []byte{semiMagic, 1, 'x'}, "x", true)
	for _, bad := range [][]byte{{}, {semiMagic}, {'x', 1, 'x'}} {
		if _, _, err := l.strip(bad); err == nil {
			t.Errorf("%q was taken for an event with a header", bad)
		}
	}
	l = &semiLine{asked: true}
	strip(l, []byte{0, 0, 'x'}, "\x00\x00x", false) // no plugin
	strip(l, []byte{semiMagic, 1, 'x'}, "\xef\x01x", false)
}

func TestSemiState(t *testing.T) {
	status := [][]string{{"Rpl_semi_sync_source_status", "ON"}, {"Rpl_semi_sync_source_clients", "1"}, {"Rpl_semi_sync_source_no_times", "7"}}
	good := []string{"ON", "AFTER_SYNC", "1", "10000", "1"}
	st, err := parseSemiState(newSemiWords, [][]string{good}, status)
	if err != nil || st.refuse(false, newSemiWords) != "" || st.switches != 7 || st.timeout != 10*time.Second {
		t.Errorf("%+v, %v", st, err)
	}
	for i, value := range []string{"OFF", "AFTER_COMMIT", "0", "100", "0"} {
		vars := append([]string(nil), good...)
		vars[i] = value
		st, err := parseSemiState(newSemiWords, [][]string{vars}, status)
		if err != nil || st.refuse(false, newSemiWords) == "" {
			t.Errorf("variable %d is %s: %+v, %v", i, value, st, err)
		}
	}
	for i := range status {
		if _, err := parseSemiState(newSemiWords, [][]string{good}, append(append([][]string(nil), status[:i]...), status[i+1:]...)); err == nil {
			t.Errorf("nobody misses %s", status[i][0])
		}
	}
}
