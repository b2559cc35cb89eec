package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"freshet/planner/query"
)

// resolver turns the names of one analysis into followed tables.
type resolver struct {
	planner  *Planner
	template *template
	scope    Scope
	analysis *query.Analysis
	basis    basis
	// tables are the relations each of analysis.Tables may stand for: one, or
	// several when the search path leaves it open.
	tables  [][]*relation
	foreign bool // values of types that are not built in are about
	// views are the resolvers of the views among them; viewed counts all that
	// were met for one statement.
	views  map[*relation]*resolver
	viewed *int
	// within tells that MIN or MAX stand around a view.
	within bool
	// policed are the columns that the policies of a table read.
	policed map[*relation][]int
}

// resolve completes a template with what the catalog says. What it cannot
// settle makes the plan not cacheable, never wrong.
func (p *Planner) resolve(ctx context.Context, t *template, s Scope, a *query.Analysis, declared []uint32) {
	r := &resolver{planner: p, template: t, scope: s, analysis: a}
	if p.config.Dialect == Postgres {
		r.postgres(ctx, declared)
	} else {
		r.mysql(ctx)
	}
	r.judge(ctx)
	if len(a.Tables) == 0 {
		a.Refuse("it reads no table")
	}
	if a.Reason == "" && r.follow() {
		r.refer()
		r.textOnly()
		r.catalogNames()
	}
	r.write()
}

// judge looks at what the tables' definitions say of the statement.
func (r *resolver) judge(ctx context.Context) {
	r.expand(ctx)
	if r.analysis.Class != ClassRead {
		r.analysis.Refuse("not a read")
	}
	r.attributes()
	if r.analysis.Reason == "" {
		r.times()
		if !r.template.postgres {
			r.held(ctx)
		}
	}
}

// write puts the outcome into the template's plan.
func (r *resolver) write() {
	t, a := r.template, r.analysis
	plan := &t.plan
	plan.Class, plan.ReadsSession, plan.Reason = a.Class, a.ReadsSession, a.Reason
	plan.Cacheable = a.Reason == ""
	plan.Tables = r.names()
	if len(r.basis.facts) > 0 || !r.basis.until.IsZero() {
		b := r.basis
		b.tables = t.tables
		plan.basis = &b
	}
	if !plan.Cacheable {
		t.tables, t.refs, t.textOnly, t.checks, t.mixed = nil, nil, nil, nil, nil
		if plan.basis != nil {
			plan.basis.tables = nil
		}
		return
	}
	plan.Tracking, plan.Explain = t.explain(func(i int) narrowing { return t.refs[i].full() })
}

// catalogNames refuses answers with values that are shown by names which the
// catalog gives them now: that those change is in no table's log.
func (r *resolver) catalogNames() {
	for _, ref := range r.template.refs {
		for i, c := range ref.relation.columns {
			if c.names && (ref.reads == nil || slices.Contains(ref.reads, i)) {
				r.analysis.Refuse("the column " + c.name + " holds what the catalog names")
			}
		}
	}
}

// names lists the tables in words, as far as they are known.
func (r *resolver) names() []string {
	var out []string
	for i, t := range r.analysis.Tables {
		if i < len(r.tables) && len(r.tables[i]) > 0 {
			for _, rel := range r.tables[i] {
				out = append(out, rel.String())
				if v := r.views[rel]; v != nil {
					out = append(out, v.names()...)
				}
			}
			continue
		}
		out = append(out, t.Name.String())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// passing refuses for a reason that may not last.
func (r *resolver) passing(reason string) {
	r.analysis.Refuse(reason)
	r.basis.until = time.Now().Add(retryAfter)
}

// catalogFailed notes that the catalog could not be read.
func (r *resolver) catalogFailed(err error) {
	r.passing("the catalog could not be read: " + err.Error())
	r.planner.log.Debug("the catalog could not be read", "cause", err)
}

func (r *resolver) rely(f *fact) {
	if f != nil && !slices.Contains(r.basis.facts, f) {
		r.basis.facts = append(r.basis.facts, f)
	}
}

// mysql looks the tables up; what was refused or is no read needs no catalog.
func (r *resolver) mysql(ctx context.Context) {
	a := r.analysis
	if a.Reason != "" || a.Class != ClassRead {
		return
	}
	if mode := r.planner.mode(r.scope); mode.Foreign != "" {
		a.Refuse("sql_mode " + mode.Foreign + " has a grammar of its own")
		return
	}
	r.mysqlTables(ctx)
}

func (r *resolver) mysqlTables(ctx context.Context) {
	a, k := r.analysis, r.planner.catalog
	set, err := k.mysqlSettings(ctx)
	if err != nil {
		r.catalogFailed(err)
		return
	}
	for _, t := range a.Tables {
		schema := t.Schema
		if schema == "" {
			schema = r.scope.Database
		}
		switch {
		case schema == "":
			a.Refuse("no database is selected")
			return
		case slices.Contains(systemSchemas, strings.ToLower(schema)):
			a.Refuse("a system table")
			return
		}
		l, err := k.mysqlTable(ctx, set.value.foldTables, schema, t.Name.Name)
		if err != nil {
			r.catalogFailed(err)
			return
		}
		r.rely(&l.fact)
		r.tables = append(r.tables, l.value)
		if len(l.value) == 0 {
			r.passing(fmt.Sprintf("the table %s.%s does not exist", schema, t.Name.Name))
			return
		}
		if rel := l.value[0]; rel.reason != "" {
			a.Refuse(rel.String() + ": " + rel.reason)
			return
		}
	}
}

// postgres looks the tables up, then has the catalog vouch for functions,
// types and operators; functions matter to the class even of what is refused.
func (r *resolver) postgres(ctx context.Context, declared []uint32) {
	a, k := r.analysis, r.planner.catalog
	if a.Class.Worse(ClassSchema) != ClassSchema || a.Calls() == 0 && a.Reason != "" {
		return
	}
	if err := r.lookup(ctx); err != nil {
		if a.Calls() > 0 {
			a.Class = query.ClassOther
		}
		r.catalogFailed(err)
		return
	}
	b, err := k.builtIn(ctx)
	if err == nil {
		var e *once[extras]
		if e, err = k.added(ctx); err == nil {
			r.rely(&e.fact)
			r.vouching(&b.value, &e.value).vouch(a)
		}
	}
	if err != nil {
		a.Class = query.ClassOther
		r.catalogFailed(err)
		return
	}
	for _, oid := range declared {
		if oid >= firstUserOID || registered(oid) {
			a.Refuse("a parameter of a type whose meaning is in the catalog")
		}
	}
}

func (r *resolver) vouching(b *builtins, e *extras) *vouching {
	return &vouching{builtins: b, extras: e, foreign: r.foreign, builtIn: r.builtIn}
}

// builtIn tells whether every column of a name in the statement's tables is of a
// built-in type, and there is one.
func (r *resolver) builtIn(c query.Column) bool {
	found := false
	for _, rels := range r.tables {
		for _, rel := range rels {
			if i, ok := rel.byName[c.Name]; ok {
				if found = true; !rel.columns[i].builtIn {
					return false
				}
			}
		}
	}
	return found
}

// registered tells whether an OID is one of the reg… types (pg_type.dat),
// whose values are looked up in the catalog.
func registered(oid uint32) bool {
	switch oid {
	case 24, 2202, 2203, 2204, 2205, 2206, 3734, 3769, 4089, 4096, 4191:
		return true
	}
	return false
}

// lookup finds what the names of tables may stand for.
func (r *resolver) lookup(ctx context.Context) error {
	a, k := r.analysis, r.planner.catalog
	if len(a.Tables) == 0 {
		return nil
	}
	path, f, err := k.searchPath(ctx, r.scope)
	if err != nil {
		return err
	}
	r.rely(f)
	for _, t := range a.Tables {
		l, err := k.postgresTables(ctx, t.Name.Name)
		if err != nil {
			return err
		}
		r.rely(&l.fact)
		rels := candidates(l.value, t.Schema, path)
		if t.Only {
			rels = withoutHeirs(rels)
		}
		r.tables = append(r.tables, rels)
		if len(rels) == 0 {
			r.foreign = true
			r.passing("the table " + t.Name.String() + " does not exist")
		}
		for _, rel := range rels {
			r.foreign = r.foreign || rel.foreign
			if rel.reason != "" {
				a.Refuse(rel.String() + ": " + rel.reason)
			}
			if rel.shielded {
				if err := r.police(ctx, rel); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// candidates lists the relations that a name may stand for. Schemas of the
// search path that the user may not use are passed over by the server, so that
// each of several may be meant; but nothing comes before the system's own.
func candidates(all []*relation, schema string, path []string) []*relation {
	var out []*relation
	if schema != "" {
		path = []string{schema}
	}
	for _, p := range path {
		for _, rel := range all {
			if rel.schema == p && !slices.Contains(out, rel) {
				out = append(out, rel)
			}
		}
		if p == "pg_catalog" && len(out) > 0 {
			break
		}
	}
	return out
}

// withoutHeirs are the relations as ONLY reads them.
func withoutHeirs(rels []*relation) []*relation {
	out := slices.Clone(rels)
	for i, rel := range out {
		if rel.only != nil {
			out[i] = rel.only
		}
	}
	return out
}

// attributes refuses names that are selected from a row but are no columns:
// `row.f` calls the function f.
func (r *resolver) attributes() {
	if r.analysis.Class.Worse(ClassSchema) != ClassSchema {
		return
	}
	for _, name := range r.analysis.Attributes {
		if !slices.ContainsFunc(r.tables, func(rels []*relation) bool {
			return slices.ContainsFunc(rels, func(rel *relation) bool { _, ok := rel.byName[name]; return ok })
		}) {
			r.analysis.Class = r.analysis.Class.Worse(query.ClassOther)
			r.analysis.Refuse(name + " is no column of these tables, and may be a function")
		}
	}
}
