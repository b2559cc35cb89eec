package planner

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"freshet/cache/feed"
)

// A write runs more than its text says: triggers, rules, defaults, constraints
// and what these call. In PostgreSQL that may change the session, and the
// session must then be asked what it has become. Asking costs a round trip, so
// it is left out in databases that have no such code, which is most.
//
// Whether there is any is judged over all code that users wrote, not over what
// a write reaches: what is reached is a matter of many catalogs, and a new
// trigger on an old function would go unnoticed. It is known for as long as a
// fingerprint of those catalogs has not moved. That is read every second while
// somebody wants to know, and a change of the schema that passes through this
// process, or that the feed sees, drops what is known at once.

const (
	// hiddenRecheck is the age in nanoseconds from which the fingerprint is
	// compared again, hiddenExpiry that from which it no longer counts.
	hiddenRecheck = 1e9
	hiddenExpiry  = 5e9
	// hiddenRetry is how long a catalog that could not be read is left alone.
	hiddenRetry = 1e9
	// hiddenSource bounds the bytes of code that are read; a database with more
	// is taken to have some that changes sessions.
	hiddenSource = 32 << 20
	// maxHiddenSettings bounds the names that are kept.
	maxHiddenSettings = 24
)

// Hidden is what a database's own code may do to the session of a statement
// that runs it.
type Hidden struct {
	// Able: it may change the session.
	Able bool
	// Settings are the customised options that it sets, sorted. They are not in
	// pg_settings, so they must be asked for by name.
	Settings []string
	// Unnamed: it sets options whose names it computes. UnnamedByWrites: so does
	// code that runs without being called by a statement.
	Unnamed, UnnamedByWrites bool

	print   string
	checked atomic.Int64 // feed.Now() when the newest comparison of print began
	fact
}

// Standing is what became of a Hidden that was relied on.
type Standing uint8

const (
	Unproven Standing = iota // not compared since
	Proven                   // it still held at some time since
	Lost                     // dropped before it was compared
)

// Since tells whether h still held at some time after at, a feed.Now().
func (h *Hidden) Since(at int64) Standing {
	switch {
	case h.checked.Load() > at:
		return Proven
	case h.dropped.Load():
		return Lost
	}
	return Unproven
}

// hiddenCode keeps the newest Hidden. It is registered before it is read from
// the catalog, so that a drop meanwhile is not lost.
type hiddenCode struct {
	now     atomic.Pointer[Hidden] // complete once checked is not 0
	last    atomic.Pointer[Hidden] // the newest that was ever complete
	reading atomic.Bool            // somebody reads without being waited for
	turn    sync.Mutex             // of whoever reads
	retry   atomic.Int64
}

func (c *hiddenCode) drop() {
	if h := c.now.Swap(nil); h != nil {
		h.dropped.Store(true)
	}
}

// Hidden tells what is known of the database's code, or nil: then it is being
// read, and a statement that may run code is to be taken to change the session.
// It does not block.
func (p *Planner) Hidden() *Hidden {
	c := &p.catalog.hidden
	h, age := c.newest()
	if age > hiddenRecheck && feed.Now() >= c.retry.Load() && c.reading.CompareAndSwap(false, true) {
		go func() {
			defer c.reading.Store(false)
			c.turn.Lock()
			defer c.turn.Unlock()
			p.readHidden()
		}()
	}
	return h
}

// newest is what is known, nil if it does not count, and its age.
func (c *hiddenCode) newest() (h *Hidden, age int64) {
	h, age = c.now.Load(), hiddenExpiry
	if h == nil {
		return nil, age
	}
	if at := h.checked.Load(); at != 0 {
		age = feed.Now() - at
	}
	if age >= hiddenExpiry || h.dropped.Load() {
		return nil, max(age, hiddenExpiry)
	}
	return h, age
}

// AwaitHidden calls done on another goroutine once something is known, or
// could not be read, be it by somebody else a moment ago.
func (p *Planner) AwaitHidden(done func()) {
	go func() {
		c := &p.catalog.hidden
		c.turn.Lock()
		if h, _ := c.newest(); h == nil && feed.Now() >= c.retry.Load() {
			p.readHidden()
		}
		c.turn.Unlock()
		done()
	}()
}

// LastHidden is what was last known, even if it may be outdated; nil if nothing
// ever was.
func (p *Planner) LastHidden() *Hidden { return p.catalog.hidden.last.Load() }

// HiddenChanged drops what is known of the database's code: a statement that
// may have changed it has taken effect.
func (p *Planner) HiddenChanged() { p.catalog.hidden.drop() }

// readHidden compares the fingerprint, and reads the code if it moved. It is
// called in turn.
func (p *Planner) readHidden() {
	c := &p.catalog.hidden
	ctx, cancel := context.WithTimeout(context.Background(), makeTimeout)
	defer cancel()
	if err := p.catalog.readHidden(ctx); err != nil {
		c.drop()
		c.retry.Store(feed.Now() + hiddenRetry)
		p.log.Debug("the database's code could not be read", "cause", err)
	}
}

func (k *catalog) readHidden(ctx context.Context) error {
	begun := feed.Now()
	rows, err := k.query(ctx, 2, hiddenPrintSQL)
	if err != nil {
		return err
	}
	if len(rows) != 1 {
		return fmt.Errorf("the catalog answered %d fingerprints", len(rows))
	}
	print := text(rows[0][0])
	h := k.hidden.now.Load()
	if h != nil && h.checked.Load() != 0 && h.print == print {
		h.checked.Store(begun)
		return nil
	}
	k.hidden.drop()
	// The code is read after the fingerprint: what changed in between is seen
	// by the next comparison.
	h = &Hidden{print: print}
	k.hidden.now.Store(h)
	if size, err := strconv.ParseInt(text(rows[0][1]), 10, 64); err != nil || size > hiddenSource {
		h.Able, h.Unnamed, h.UnnamedByWrites = true, true, true
	} else if err := k.readCode(ctx, h); err != nil {
		return err
	}
	k.hidden.last.Store(h)
	h.checked.Store(begun)
	return nil
}

// readCode reads what users wrote.
func (k *catalog) readCode(ctx context.Context, h *Hidden) error {
	rows, err := k.query(ctx, 6, k.hiddenCodeSQL())
	if err != nil {
		return err
	}
	functions := make([]function, 0, len(rows))
	for _, r := range rows {
		f := function{name: text(r[0]), language: text(r[1]), source: text(r[2]), extension: isTrue(r[4]), rooted: isTrue(r[5])}
		if config := text(r[3]); strings.Contains(config, ".") {
			h.Able = true // it leaves an empty option behind
			for line := range strings.SplitSeq(config, "\n") {
				if name, _, _ := strings.Cut(line, "="); strings.Contains(name, ".") {
					h.Settings = append(h.Settings, name)
				}
			}
		}
		if f.changes() {
			h.Able = true
			names, all := settingsIn(f.source)
			h.Settings = append(h.Settings, names...)
			f.unnamed = !all && !f.extension // an extension's names are its own, or are set back
		}
		functions = append(functions, f)
	}
	slices.Sort(h.Settings)
	h.Settings = slices.Compact(h.Settings)
	if len(h.Settings) > maxHiddenSettings {
		h.Settings, h.Unnamed, h.UnnamedByWrites = h.Settings[:maxHiddenSettings], true, true
		return nil
	}
	h.Unnamed, h.UnnamedByWrites = callers(functions)
	return nil
}

func isTrue(cell *string) bool { return strings.HasPrefix(text(cell), "t") }

// hiddenPrintSQL is the fingerprint, and how many bytes of code there are.
const hiddenPrintSQL = `SELECT pg_catalog.concat_ws('|',
	(SELECT concat_ws(':', count(*), sum(oid::bigint), sum(xmin::text::bigint)) FROM pg_catalog.pg_proc WHERE oid >= 16384),
	(SELECT concat_ws(':', count(*), sum(oid::bigint), sum(xmin::text::bigint)) FROM pg_catalog.pg_rewrite WHERE oid >= 16384),
	(SELECT concat_ws(':', count(*), sum(oid::bigint), sum(xmin::text::bigint)) FROM pg_catalog.pg_attrdef),
	(SELECT concat_ws(':', count(*), sum(oid::bigint), sum(xmin::text::bigint)) FROM pg_catalog.pg_constraint WHERE contype = 'c'),
	(SELECT concat_ws(':', count(*), sum(oid::bigint), sum(xmin::text::bigint)) FROM pg_catalog.pg_trigger WHERE NOT tgisinternal),
	(SELECT concat_ws(':', count(*), sum(oid::bigint), sum(xmin::text::bigint)) FROM pg_catalog.pg_policy),
	(SELECT concat_ws(':', count(*), sum(oid::bigint), sum(xmin::text::bigint)) FROM pg_catalog.pg_type WHERE typtype = 'd' AND oid >= 16384)),
	(SELECT coalesce(sum(octet_length(prosrc)), 0) FROM pg_catalog.pg_proc WHERE oid >= 16384)`

// hiddenCodeSQL lists functions (name, language, source, settings, whether an
// extension's, whether an object that is no function rests on it), and without
// name and language the expressions, stored as trees, that call a built-in
// function that changes the session, or name pg_settings, which can be updated.
// What is written in C is taken not to.
func (k *catalog) hiddenCodeSQL() string {
	trees := []string{
		"adbin::text, pg_get_expr(adbin, adrelid) FROM pg_catalog.pg_attrdef",
		"conbin::text, pg_get_constraintdef(oid) FROM pg_catalog.pg_constraint WHERE contype = 'c'",
		"tgqual::text, pg_get_triggerdef(oid) FROM pg_catalog.pg_trigger WHERE NOT tgisinternal",
		"polqual::text, pg_get_expr(polqual, polrelid) FROM pg_catalog.pg_policy",
		"polwithcheck::text, pg_get_expr(polwithcheck, polrelid) FROM pg_catalog.pg_policy",
		"ev_qual::text, pg_get_ruledef(oid) FROM pg_catalog.pg_rewrite WHERE oid >= 16384",
		"ev_action::text, pg_get_ruledef(oid) FROM pg_catalog.pg_rewrite WHERE oid >= 16384",
		"typdefaultbin::text, typdefault FROM pg_catalog.pg_type WHERE typtype = 'd' AND oid >= 16384",
		"proargdefaults::text, pg_get_function_arguments(oid) FROM pg_catalog.pg_proc WHERE oid >= 16384",
	}
	if atLeast(k.config.Version, 14, 0) {
		trees = append(trees, "prosqlbody::text, pg_get_function_sqlbody(oid) FROM pg_catalog.pg_proc WHERE oid >= 16384")
	}
	return `SELECT p.proname, l.lanname, p.prosrc, array_to_string(p.proconfig, E'\n'),
			EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass
				AND d.objid = p.oid AND d.deptype = 'e'),
			EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass
				AND d.refobjid = p.oid AND d.classid <> d.refclassid)
		FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
		WHERE p.oid >= 16384 AND (l.lanname NOT IN ('internal', 'c') OR p.proconfig IS NOT NULL)
		UNION ALL SELECT '', '', t.source, '', false, true FROM (SELECT ` + strings.Join(trees, " UNION ALL SELECT ") + `) t (tree, source),
		(SELECT ':funcid (' || string_agg(oid::text, '|') || ') |:relid ' || 'pg_catalog.pg_settings'::pg_catalog.regclass::oid || ' '
			FROM pg_catalog.pg_proc WHERE oid < 16384 AND proname IN (` + changingList() + `)) c (calls)
		WHERE t.tree ~ c.calls`
}
