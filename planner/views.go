package planner

import (
	"context"
	"errors"

	"freshet/planner/mysql"
	"freshet/planner/postgres"
	"freshet/planner/query"
	"freshet/planner/scan"
)

// maxViews bounds the views that one statement is resolved through, at any depth.
const maxViews = 64

// expand resolves the views among the tables: each is a query of its own, whose
// tables, functions and columns are judged like the statement's. An answer
// depends on the tables at the bottom, by the columns that the views read; what
// the statement asks of a view does not narrow them.
//
// That a view still means the same rests on the catalog's facts, like all else:
// every change of a view drops them (MySQL: the feed sees the statement;
// PostgreSQL: its probes see the catalog's rows), and with them the plans and
// the answers.
func (r *resolver) expand(ctx context.Context) {
	for _, rels := range r.tables {
		for _, rel := range rels {
			if rel.definition != "" && r.views[rel] == nil {
				r.view(ctx, rel)
			}
		}
	}
}

func (r *resolver) view(ctx context.Context, rel *relation) {
	if r.viewed == nil {
		r.viewed = new(int)
	}
	*r.viewed++
	a, err := r.analyseView(rel)
	if err != nil {
		// What it calls is not known.
		r.analysis.Class = r.analysis.Class.Worse(query.ClassOther)
		r.analysis.Refuse("the view " + rel.String() + ": " + err.Error())
		return
	}
	v := &resolver{planner: r.planner, template: r.template, scope: r.scope, analysis: a, viewed: r.viewed,
		within: r.within || r.analysis.Extremes}
	if r.template.postgres {
		v.scope.SearchPath = "pg_catalog"
		v.postgres(ctx, nil)
	} else if a.Reason == "" && a.Class == ClassRead {
		v.scope.Database = rel.schema
		v.mysqlTables(ctx)
	}
	v.judge(ctx)
	if r.views == nil {
		r.views = make(map[*relation]*resolver)
	}
	r.views[rel] = v
	r.foreign = r.foreign || v.foreign
	for _, f := range v.basis.facts {
		r.rely(f)
	}
	if until := v.basis.until; !until.IsZero() && (r.basis.until.IsZero() || until.Before(r.basis.until)) {
		r.basis.until = until
	}
	r.analysis.Class = r.analysis.Class.Worse(a.Class)
	r.analysis.ReadsSession = r.analysis.ReadsSession || a.ReadsSession
	if len(a.Tables) == 0 {
		a.Refuse("it reads no table")
	}
	if a.Reason != "" {
		r.analysis.Refuse("the view " + rel.String() + ": " + a.Reason)
	}
}

// analyseView parses a view's definition. The error says why it cannot.
func (r *resolver) analyseView(rel *relation) (a *query.Analysis, err error) {
	if *r.viewed > maxViews {
		return nil, errors.New("too many views stand in one another")
	}
	opt := scan.Options{}
	if r.template.postgres {
		opt = scan.Options{Postgres: true, AnsiQuotes: true, NoBackslash: true}
	}
	d := scan.Take(rel.definition, opt)
	if d.Exec || d.Broken || len(rel.definition) > maxTextBytes {
		return nil, errors.New("its definition is too long, or cannot be read")
	}
	if r.template.postgres {
		a, err = postgres.Analyse(d.Plain, d.Depth, d.Chain)
	} else {
		a, err = mysql.Analyse(d.Plain, mysql.Mode{})
	}
	if err != nil {
		return nil, errors.New("its definition could not be parsed")
	}
	a.ForgetValues()
	return a, nil
}
