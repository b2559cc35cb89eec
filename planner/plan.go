package planner

import (
	"context"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"freshet/planner/mysql"
	"freshet/planner/postgres"
	"freshet/planner/query"
	"freshet/planner/scan"
)

const (
	// retryAfter is when a plan that was refused because the catalog could not
	// be read, or a table not followed, is made again.
	retryAfter = 2 * time.Second
	// longScanBytes bounds how much of a long text is scanned for the
	// statements in it; one that is longer has an unknown effect.
	longScanBytes = 64 << 20
)

// knownOptions says how text is read in a scope, if that is known without
// asking the server.
func (p *Planner) knownOptions(s Scope) (scan.Options, bool) {
	if p.config.Dialect == Postgres {
		return scan.Options{Postgres: true, AnsiQuotes: true, NoBackslash: s.SQLMode != "off"}, true
	}
	if s.SQLMode == "" {
		known, ok := p.catalog.knownSettings()
		return mysql.ParseMode(known.sqlMode).Options(), ok
	}
	return mysql.ParseMode(s.SQLMode).Options(), true
}

// plan makes the plan of a text. It may ask the catalog.
func (p *Planner) plan(ctx context.Context, id ScopeID, s Scope, sql string, declared []uint32) *Plan {
	if p.config.Dialect != Postgres && s.SQLMode == "" {
		// The scanner needs the server's sql_mode; should this fail, it is
		// said below, where tables are looked up.
		if _, err := p.catalog.mysqlSettings(ctx); err != nil {
			return p.unparsed(sql, scan.Options{}, "the server's sql_mode could not be read: "+err.Error(), true)
		}
	}
	opt, _ := p.knownOptions(s)
	switch {
	case len(sql) > maxTextBytes:
		return p.unparsed(sql, opt, "the text is longer than 16 KiB", false)
	case id == 0:
		return p.unparsed(sql, opt, "there are too many distinct settings of search_path, sql_mode or database", false)
	case len(declared) > maxParams:
		return p.unparsed(sql, opt, "more parameters than the protocol has", false)
	}
	d := scan.Take(sql, opt)
	if reason := unreadable(&d, s, p.config.Dialect); reason != "" {
		return p.unparsed(sql, opt, reason, false)
	}
	key := templateKey(nil, id, declared, &d)
	if t, ok := p.templates.get(key); ok && !t.plan.basis.outdated() {
		return t.bind(p.config.Tracker, &d, declared)
	}
	t, reusable := p.newTemplate(ctx, s, sql, &d, opt, declared)
	if t == nil {
		return p.unparsed(sql, opt, "it could not be parsed", false)
	}
	if reusable && !t.plan.basis.outdated() {
		p.templates.put(key, t)
	}
	return t.bind(p.config.Tracker, &d, declared)
}

// unreadable says why a text is not given to a parser.
func unreadable(d *scan.Digest, s Scope, dialect Dialect) string {
	switch {
	case d.Exec:
		return "an executable comment, whose meaning depends on the server's version"
	case d.Broken:
		return "the text has no proper end"
	case dialect == Postgres && s.SQLMode == "off" && strings.IndexByte(d.Plain, '\\') >= 0:
		return "standard_conforming_strings is off, and the text has a backslash"
	case dialect != Postgres && multibyte(s.Charset) && strings.ContainsFunc(d.Plain, func(r rune) bool { return r >= 0x80 }):
		return "a character set whose letters may hold a backslash"
	}
	return ""
}

// multibyte are client character sets in which the second byte of a letter may
// look like ASCII.
func multibyte(charset string) bool {
	switch charset {
	case "big5", "cp932", "gb18030", "gbk", "sjis":
		return true
	}
	return false
}

// parse analyses a text. err means that the dialect's parser refused it.
func (p *Planner) parse(s Scope, sql string, d *scan.Digest) (*query.Analysis, error) {
	if p.config.Dialect == Postgres {
		return postgres.Analyse(sql, d.Depth, d.Chain)
	}
	return mysql.Analyse(sql, p.mode(s))
}

func (p *Planner) mode(s Scope) mysql.Mode {
	if s.SQLMode != "" {
		return mysql.ParseMode(s.SQLMode)
	}
	known, _ := p.catalog.knownSettings()
	return mysql.ParseMode(known.sqlMode)
}

// templated are the statements whose skeleton is parsed instead of the text.
var templated = map[string]bool{
	"SELECT": true, "WITH": true, "INSERT": true, "UPDATE": true, "DELETE": true, "REPLACE": true, "VALUES": true,
	"MERGE": true, "TABLE": true,
}

// newTemplate parses, and asks the catalog. reusable is false when the
// template holds for this text alone. nil means that the text does not parse.
func (p *Planner) newTemplate(ctx context.Context, s Scope, sql string, d *scan.Digest, opt scan.Options, declared []uint32) (t *template, reusable bool) {
	reusable = len(d.Leading) == 1 && templated[d.Leading[0]]
	var a *query.Analysis
	var err error
	if reusable {
		a, err = p.parse(s, d.Skeleton, d)
	}
	if !reusable || err != nil {
		reusable = false
		if a, err = p.parse(s, d.Plain, d); err != nil {
			return nil, false
		}
		// The literals are in the tree: parameters are the client's alone.
		a.ForgetValues()
	}
	if reusable && len(a.Params) != len(d.Slots) {
		a.Refuse("its parameters are read in two ways")
	}
	t = &template{postgres: p.config.Dialect == Postgres, charset: s.Charset}
	if !reusable {
		t.slotOf = []int{}
		for i, slot := range d.Slots {
			if slot >= 0 {
				t.slotOf = append(t.slotOf, i)
			}
		}
	}
	t.plan = Plan{Class: a.Class, Keyword: keyword(d), CreatesTemp: a.CreatesTemp, ReadsSession: a.ReadsSession}
	t.plan.name(scan.Normalise(sql, opt))
	hints := scan.ReadHints(d.Hints)
	t.plan.NoCache, t.plan.TTLMillis = hints.NoCache, hints.TTLMillis
	if hints.SetVar {
		a.Refuse("a SET_VAR hint")
	}
	p.resolve(ctx, t, s, a, declared)
	return t, reusable
}

func (p *Plan) name(normalised string) {
	p.Query = normalised
	p.QueryID = xxhash.Sum64String(normalised)
}

func keyword(d *scan.Digest) string {
	if len(d.Leading) == 0 {
		return ""
	}
	return d.Leading[0]
}

// unsettled is the plan while the schema changes faster than plans are made.
func (p *Planner) unsettled(st *Statement) *Plan {
	opt, _ := p.knownOptions(st.Scope)
	return p.unparsed(st.Text, opt, "the schema is changing", true)
}

// unparsed is the plan of a text that no parser looked at: its class is told
// by the first word of each statement. passing tells that another try, later,
// may do better.
func (p *Planner) unparsed(sql string, opt scan.Options, reason string, passing bool) *Plan {
	plan := &Plan{Reason: reason}
	if passing {
		plan.basis = &basis{until: time.Now().Add(retryAfter)}
	}
	leading, plain := firstWords(sql, opt)
	plan.Class = classByWords(leading, plain)
	if len(leading) > 0 {
		plan.Keyword = leading[0]
	}
	if len(sql) > maxTextBytes {
		plan.name(plan.Keyword + " … (longer than 16 KiB)")
		return plan
	}
	plan.name(scan.Normalise(sql, opt))
	return plan
}
